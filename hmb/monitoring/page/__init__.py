"""The page of a running broker draws the broker's partitions, groups and requests in a browser while they change.

`hmb broker --ui` serves one HTML page with a style and a few scripts (static/). The page only reads, and only
from this broker. The browser sends these requests to the broker:
    what the browser shows        request           what the broker does
    the page itself               GET /             `routes.py` serves index.html, page.css and page.js
    the state of the broker       GET /changes      `feed.py` sends the parts of the state that have changed
    a segment or a batch          GET /segment ...  `log_views.py` reads the log when the user opens one
    the search for an offset      GET /look-up      `log_views.py` searches the log for an offset or a timestamp, and
                                                    returns the steps of the search
    the requests of clients       GET /requests     `recent_requests.py` records requests while a page shows them

The feed divides the state into parts, for example one part for each partition and one for each segment.
Suppose that a producer appends 10 records to orders-0. Among other parts, the next event of the feed contains
the partition with its new high watermark, and the active segment with its new size. The page moves the line
of the high watermark, and makes the bar of the segment longer.

*Security.* The broker prints a link to the page, and the link contains a token. The first request exchanges
this token for a cookie, so that the browser's address bar does not show the token.

The broker also sends the header Content-Security-Policy. With this header, the browser loads scripts and
styles only from this broker, and the page can send requests only to this broker. The scripts insert all
names, keys and values as plain text, so HTML tags in them have no effect.

*Cost.* While a browser shows the page, the feed (a thread of the broker) collects the broker's state several
times a second. If clients send records to all 100 partitions of a broker, the feed uses 3 % of one processor.
While no browser shows the page, the feed does not run.

After each collection of the state, the feed waits at least four times as long as a collection usually takes. For
example, it works for 100 ms and waits for 400 ms, so it uses 20 % of one processor. But no wait is longer than
2 s. If each collection takes 1 s, the feed therefore uses up to 33 % (1 s of 3 s).

Read in this order: `feed.py`, `log_views.py`, `recent_requests.py`, `routes.py`,
`own_broker.py`, and then `static/page.js`.
"""
