"""The delivery states of a record in a share group, and the table that defines them.

A share group delivers each record to one of its members. A record is *in flight* from its first delivery until
the group has finished this record and all earlier records. For each record in flight, the broker stores one of
these states:
- Available: a member can acquire the record.
- Acquired: a member has received the record, and has locked it for a limited time (the acquisition lock).
- Acknowledged: a member has processed the record. This state is final.
- Archived: the group never delivers the record again. This state is final. For example, a member has rejected
  the record, or the record has been delivered too often.

For example, member A acquires the record at offset 7, so the record is Acquired and its delivery count is 1. Then A
hangs. After 30 s, the acquisition lock times out, and the record is Available. (If the connection of A ends, the record
is Available immediately.) Member B acquires the record, and its delivery count is 2. B accepts the record, so the
record is Acknowledged. If no member accepts a record in five deliveries (`share.delivery.count.limit`), the record is
Archived.

`InFlightRecords` looks up the next delivery state of a record in the table `DELIVERY_STATES`.

Source: KIP-932; Kafka's `RecordState`.
"""

from __future__ import annotations

from enum import Enum

from hmb.protocol.enums import LabeledEnum
from hmb.state_table import StateTable


class DeliveryState(LabeledEnum):
    """The delivery state of a record. The value is the number that represents the state in `__share_group_state`."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4

    @property
    def is_final(self) -> bool:
        """Whether this state is final. The group never again delivers a record that has reached a final state."""
        return self in FINAL_STATES


class DeliveryEvent(Enum):
    """An event that changes the delivery state of a record."""

    ACQUIRE = "a member fetches the record"
    ACCEPT = "the member accepts the record"
    RELEASE = "the member releases the record, or its share session ends"
    REJECT = "the member rejects the record"
    RENEW = "the member renews its lock"
    TIME_OUT = "the lock times out"
    REACH_LIMIT = "the record is released or times out after its last delivery"
    GAP = "the offset has no record for the group"
    DELETE = "the log start offset passes the record"


_S, _E = DeliveryState, DeliveryEvent
DELIVERY_STATES = StateTable(
    (_S.AVAILABLE, _E.ACQUIRE, _S.ACQUIRED),
    (_S.AVAILABLE, _E.GAP, _S.ARCHIVED),
    (_S.AVAILABLE, _E.DELETE, _S.ARCHIVED),
    (_S.ACQUIRED, _E.ACCEPT, _S.ACKNOWLEDGED),
    (_S.ACQUIRED, _E.RELEASE, _S.AVAILABLE),
    (_S.ACQUIRED, _E.TIME_OUT, _S.AVAILABLE),
    (_S.ACQUIRED, _E.RENEW, _S.ACQUIRED),
    (_S.ACQUIRED, _E.REJECT, _S.ARCHIVED),
    (_S.ACQUIRED, _E.REACH_LIMIT, _S.ARCHIVED),
    (_S.ACQUIRED, _E.GAP, _S.ARCHIVED),
    (_S.ACQUIRED, _E.DELETE, _S.ARCHIVED),
)
FINAL_STATES = frozenset(DeliveryState) - {transition.before for transition in DELIVERY_STATES}
