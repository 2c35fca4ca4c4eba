"""The page of a running broker: its partitions, groups and requests, drawn in a browser while they change.

`hmb broker --ui` serves one HTML page with a style and a few scripts (static/). The page reads only from the broker
that serves it, and it changes nothing in this broker. Its parts:
    browser                          broker
    index.html, page.css, page.js <- GET /             `routes.py` serves the files
    a map of parts, drawn         <- GET /changes      `feed.py` sends the changed parts of the state
    one segment, batch, look-up   <- GET /segment ...  `log_views.py` reads them when the user opens them
    the requests of clients       <- GET /requests     `recent_requests.py` records them while a page shows them

For example, a producer appends 10 records to orders-0. The next event of the feed contains two parts: the partition
with its new high watermark, and the active segment with its new size. The page moves the cursor and extends the bar.

*Security.* The link contains a token. The first request exchanges this token for a cookie, so that the browser's
address line does not show the token. The header Content-Security-Policy allows no script, no style and no address of
another host. The scripts put names, keys and values into the page only as text, so markup in them has no effect.

*Cost.* While no page listens, the broker sends no changes and records no requests. While a page listens, the feed needs
at most 20 % of one processor. For 100 partitions, the feed needs 1.9 %.

Read in this order: `feed.py`, `log_views.py`, `recent_requests.py`, `routes.py`,
`own_broker.py`, and then `static/page.js`.
"""
