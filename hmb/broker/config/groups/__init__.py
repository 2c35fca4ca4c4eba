"""The settings of groups: the broker's settings for each kind of group, and the settings of a single group.

The broker's setting `group.share.session.timeout.ms` applies to all share groups. A single share group can have the
setting `share.session.timeout.ms`, which overrides the broker's setting for this group. Groups of the classic protocol
have no settings of their own.

Read in this order:
1. `consumer.py`    consumer groups (KIP-848)
2. `overrides.py`   the settings of a single group, which override the broker's settings

The next three modules have the same form as `consumer.py`, so a new reader can skip them:
- `classic.py`      groups of the classic protocol
- `share.py`        share groups (KIP-932)
- `streams.py`      streams groups (KIP-1071)
"""
