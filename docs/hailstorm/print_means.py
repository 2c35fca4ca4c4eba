"""Print the three coldest weeks of the table `means`."""

import sqlite3

QUERY = "SELECT city, date(week / 1000, 'unixepoch'), round(mean, 1) FROM means ORDER BY mean LIMIT 3"
for row in sqlite3.connect("means.db").execute(QUERY):
    print(*row)
