"""How much memory the values of one message may take.

A message in memory is larger than on the wire: an array item of one byte becomes an object of some hundred bytes, and
the answer holds another one for it.  A request of 100 MB could so take several gigabytes.  A reader of untrusted bytes
therefore pays for what it decodes, before the memory is allocated:

    array            ITEM_SIZE for each item, if it has more than one
    string, bytes    their size in memory, if they have more than SMALL bytes
    tagged fields    ITEM_SIZE for each field

Each payment is a call of `ALLOWANCE.spend`, which may wait or raise.  A thread sets it to its own function while it
decodes.  By default decoding costs nothing, because a client trusts its broker.  The allowance belongs to the thread: a
parameter in every codec would slow down every number of every message.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

ITEM_SIZE = 1024  # bytes: an item and its part of the answer; measured over all APIs, it is 200 to 1,000
SMALL = 1024  # bytes

Spend = Callable[[int], None]  # takes bytes; may raise ProtocolError


def pay_nothing(size: int) -> None:
    """Take the memory without a limit."""


class _Allowance(threading.local):
    """The way in which the current thread pays for what it decodes."""

    spend: Spend = staticmethod(pay_nothing)


ALLOWANCE = _Allowance()
