"""Older brokers: the APIs and the versions that a release of Kafka offers.

A client asks a broker for its versions (ApiVersions) and adapts to them. A test against a new broker does not run the
code that a client has for old brokers. `hmb.Broker(as_version="2.8")` offers only what Kafka 2.8 has: a client gets
Kafka 2.8's ranges, and a request of another API or version closes the connection, as in Kafka.

For example, Kafka 2.8 has Fetch 0 to 12 and no DescribeTopicPartitions. Versions up to 0.9 have no ApiVersions, so
their clients must have a setting for the version of the broker.

The ranges are in `kafka_versions.json`. `tools/kafka_versions.py` reads them from the sources of each release.

A limit: the broker answers each request as HMB answers it in this version of the API. Defects of old releases are not
imitated. HMB does not have all APIs of Kafka, and an API that HMB does not have is not offered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from hmb.broker.config.keys import ConfigError
from hmb.broker.handlers import HANDLERS
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.messages import request_class

TABLE = Path(__file__).with_name("kafka_versions.json")


def kafka_versions(release: str) -> Mapping[ApiKey, range]:
    """Return the versions of each API that both this release of Kafka and HMB have.

    `release` may have a patch level: "2.8.1" means "2.8". Raises ConfigError, which names all known releases.
    """
    table: dict[str, dict[str, list[int]]] = json.loads(TABLE.read_text(encoding="utf-8"))
    patch = re.fullmatch(r"(.+)\.\d+", release)
    ranges = table.get(release) or table.get(patch[1] if patch else "")
    if ranges is None:
        raise ConfigError(f"unknown version of Kafka {release!r}; known versions: {', '.join(table)}")
    common = {key: _common(key, *ranges[key.name]) for key in HANDLERS if key.name in ranges}
    return {key: versions for key, versions in common.items() if versions}


def _common(key: ApiKey, first: int, last: int) -> range:
    """Return the versions from `first` to `last` that HMB has."""
    known = request_class(key).versions
    if key == ApiKey.PRODUCE:  # Kafka 4 lists Produce from version 0 on, because old librdkafka expects it.
        first = 0
    return range(max(first, known[0]), min(last, known[-1]) + 1)
