"""The page of a running broker draws the broker's partitions, groups and requests in a browser while they change.

`hmb broker --ui` serves one HTML page with a style and a few scripts (static/). The page reads only from the broker
that serves it, and it changes nothing in this broker. The browser sends these requests to the broker:
    what the browser shows        request           what the broker does
    the page itself               GET /             `routes.py` serves index.html, page.css and page.js
    the state of the broker       GET /changes      `feed.py` sends the parts of the state that have changed
    one segment, batch, look-up   GET /segment ...  `log_views.py` reads the log when the user opens one of these
    the requests of clients       GET /requests     `recent_requests.py` records requests while a page shows them

The feed divides the state into parts, for example one part for each partition and one for each segment. Suppose that a
producer appends 10 records to orders-0. The next event of the feed contains two parts: the partition with its new high
watermark, and the active segment with its new size. The page moves the line of the high watermark, and makes the bar
of the segment longer.

*Security.* The broker prints a link to the page, and the link contains a token. The first request exchanges this token
for a cookie, so that the browser's address line does not show the token. Because of the header Content-Security-Policy,
the browser loads the page's scripts and styles only from this broker, and lets the page send requests only to this
broker. The scripts put names, keys and values into the page only as text, so HTML tags in a name, key or value have no
effect.

*Cost.* While no page is connected, the broker sends no changes and records no requests. While a page is connected, the
feed needs at most 20 % of one processor, unless one collection of the state takes more than 0.5 s. After such a long
collection, the feed rests for only 2 s, so it needs more than 20 %. For a broker with 100 partitions, the feed needs
1.9 % of one processor.

Read in this order: `feed.py`, `log_views.py`, `recent_requests.py`, `routes.py`,
`own_broker.py`, and then `static/page.js`.
"""
