from pathlib import Path

import hmb

settings = {"num.partitions": "3", "log.segment.bytes": "1048576"}
with hmb.Broker(data_dir="kept", config=settings) as broker:
    print("listening on", broker.bootstrap_servers)
print(sorted(path.name for path in Path("kept").iterdir()))  # the same files as in Kafka's data directory
