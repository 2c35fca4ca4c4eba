"""Send the weather events of HMB's data set to the topic `weather`."""

import sys

import hmb
from hmb.cli import demo_data

with hmb.Producer(sys.argv[1]) as producer:
    for event in demo_data.events():
        producer.send("weather", event.value, event.key, timestamp=event.timestamp)
