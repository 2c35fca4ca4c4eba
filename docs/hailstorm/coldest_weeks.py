"""Run the topology, and print the three coldest weeks."""

import sys
from datetime import UTC, datetime

from temperatures import table, topology

from hmb.hailstorm import run

result = run(topology, sys.argv[1], until="end")
for (city, week), mean in sorted(table.items(), key=lambda row: row[1])[:3]:
    print(f"{datetime.fromtimestamp(week / 1000, UTC):%Y-%m-%d}  {city:14} {mean:5.1f} degrees Fahrenheit")
print(f"{len(table)} rows, {sum(result.completed.values()):,} records")
