"""The types of all records in `__consumer_offsets`: committed offsets, and groups of all protocols.

The packages `share` and `streams` declare the records of share groups and streams groups. This module puts all record
types into one table. The coordinator uses the table when it loads the journal, and `hmb dump-log` uses it to
show records.
"""

from __future__ import annotations

from hmb.coordinator.journal.records import KEYS, Keys
from hmb.coordinator.share.group_records import SHARE_KEYS
from hmb.coordinator.streams.records import STREAMS_KEYS

OFFSETS_KEYS: Keys = {**KEYS, **{key.record_type: key for key in (*SHARE_KEYS, *STREAMS_KEYS)}}
