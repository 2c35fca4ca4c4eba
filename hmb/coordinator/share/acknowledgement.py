"""Checks and interprets the acknowledgements in a ShareFetch or ShareAcknowledge request.

A member acknowledges a range of offsets. The list `types` contains one number for the whole range, or one number for
each offset. For example, the range 100 to 102 with the types [1, 1, 2] accepts the records 100 and 101, and releases
the record 102.

Source: KIP-932, KIP-1222; Kafka's `AcknowledgeType`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

from hmb.coordinator.share.states import DeliveryEvent
from hmb.protocol.enums import AcknowledgeType
from hmb.protocol.errors import ErrorCode, KafkaError

EVENTS = {
    AcknowledgeType.GAP: DeliveryEvent.GAP,
    AcknowledgeType.ACCEPT: DeliveryEvent.ACCEPT,
    AcknowledgeType.RELEASE: DeliveryEvent.RELEASE,
    AcknowledgeType.REJECT: DeliveryEvent.REJECT,
    AcknowledgeType.RENEW: DeliveryEvent.RENEW,
}


class Acknowledgement(NamedTuple):
    """The acknowledgement of the records from `first` to `last` (inclusive)."""

    first: int
    last: int
    types: Sequence[int]

    def events(self) -> Iterator[tuple[int, int, DeliveryEvent]]:
        """Yield `(first, last, event)` for each range of neighboring offsets that have the same acknowledge type.

        For example, the offsets 100 to 102 with the types [1, 1, 2] give two ranges. The event of the range 100 to 101
        is ACCEPT, and the event of the range 102 to 102 is RELEASE.
        """
        if len(self.types) == 1:
            yield self.first, self.last, EVENTS[AcknowledgeType(self.types[0])]
            return
        first = self.first
        for number, same in groupby(self.types):
            count = sum(1 for _ in same)
            yield first, first + count - 1, EVENTS[AcknowledgeType(number)]
            first += count


def check_acknowledgements(batches: Sequence[Acknowledgement], *, renews: bool) -> None:
    """Raise INVALID_REQUEST if a range of offsets or its acknowledge types are wrong.

    - The ranges must be sorted. No range is empty, and two ranges do not overlap.
    - A range has one type for all its offsets, or one type for each offset. All types are known.
    - The type RENEW, which renews an acquisition lock, is allowed only if `renews` is true. The caller gets this value
      from the field `is_renew_ack` of the request.
    """
    for batch in batches:
        count = batch.last - batch.first + 1
        if count < 1:
            raise _invalid(f"The first offset {batch.first} is greater than the last offset {batch.last}.")
        if not batch.types or (len(batch.types) > 1 and len(batch.types) != count):
            raise _invalid(f"The batch has {len(batch.types)} acknowledge types for {count} offsets.")
        if not set(batch.types) <= EVENTS.keys():
            raise _invalid(f"The batch has an unknown acknowledge type: {sorted(set(batch.types) - EVENTS.keys())}.")
        if AcknowledgeType.RENEW in batch.types and not renews:
            raise _invalid("The batch renews a lock, but is_renew_ack is false.")
    for before, after in pairwise(batches):
        if before.last >= after.first:
            raise _invalid(f"The batch that begins at {after.first} overlaps the batch before it.")


def _invalid(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, why)
