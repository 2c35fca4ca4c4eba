"""The settings of one share group, which the broker reads at each request of a member."""

from __future__ import annotations

from dataclasses import dataclass

from hmb.coordinator.modern.settings import ModernGroupSettings

EARLIEST, LATEST, BY_DURATION = "earliest", "latest", "by_duration:"  # values of `share.auto.offset.reset`


@dataclass(frozen=True, slots=True)
class ShareGroupSettings(ModernGroupSettings):
    """The settings `share.*` of one share group. Times are in ms.

    - `lock_duration`: how long an acquisition lock lasts. During this time, only the member with the lock gets the
      record.
    - `delivery_limit`: the largest number of deliveries of one record. If the last delivery also fails, the broker
      archives the record: the group never gets it again.
    - `max_locks`: the largest number of records of one partition that may be in flight. A record is in flight from
      its first delivery until the group has finished this record and all earlier records.
    - `offset_reset`: where the group begins to read a partition: `earliest`, `latest` or `by_duration:PT1H`.
    """

    lock_duration: int
    delivery_limit: int
    max_locks: int
    offset_reset: str
    reads_committed: bool
    allows_renew: bool
