"""Lets a broker imitate an older release of Kafka: it offers only the APIs and the API versions of this release.

With an ApiVersions request, a client finds out which versions of each API the broker supports. It then uses only
these versions. For old brokers, a client often has extra code. With this module, a new broker offers only the
versions of an old release, so a test can run the extra code.

The broker `hmb.Broker(as_version="2.8")` offers only the APIs and versions of Kafka 2.8. If a client sends a request of
another API or version, the broker closes the connection, as Kafka 2.8 does.

For example, Kafka 2.8 has the versions 0 to 12 of Fetch, and does not have DescribeTopicPartitions. Kafka 0.9 and all
older releases have no ApiVersions. A client of a broker without ApiVersions often needs a setting that names the
broker's release.

The file `kafka_versions.json` contains the API versions of each release. The tool `tools/kafka_versions.py` reads these
versions from the source code of the release.

Limits: `as_version` only removes APIs and versions. The broker handles all other requests as usual, so it does
not imitate the bugs of an old release. It cannot offer an API that HMB does not have, even if the old release
has it.
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
    """Return the API versions that HMB has in common with a release of Kafka.

    `release` is a text such as "2.8". The function also accepts a patch release such as "2.8.1", and treats it as
    "2.8". Raises ConfigError if the release is unknown. The error message lists all known releases.
    """
    if not isinstance(release, str):
        raise ConfigError(f'as_version={release!r}: the value must be a text, such as "{release}"')
    table: dict[str, dict[str, list[int]]] = json.loads(TABLE.read_text(encoding="utf-8"))
    patch = re.fullmatch(r"(.+)\.\d+", release)
    ranges = table.get(release) or table.get(patch[1] if patch else "")
    if ranges is None:
        raise ConfigError(f"unknown version of Kafka {release!r}; known versions: {', '.join(table)}")
    common = {key: _common(key, *ranges[key.name]) for key in HANDLERS if key.name in ranges}
    return {key: versions for key, versions in common.items() if versions}


def _common(key: ApiKey, first: int, last: int) -> range:
    """Return the versions between `first` and `last` that HMB supports for this API."""
    known = request_class(key).versions
    if key == ApiKey.PRODUCE:  # Kafka 4 claims to support Produce 0, because old versions of librdkafka need it.
        first = 0
    return range(max(first, known[0]), min(last, known[-1]) + 1)
