"""The allowance: a limit on the memory that the values of one message take.

A decoded message takes more memory than its bytes on the wire. An array item of one byte becomes an object of some
hundred bytes, and the response contains another object for the item. A request of 100 MB could thus take several
gigabytes. So a decoder pays for memory before it allocates it:

    array            costs ITEM_SIZE for each item, if the array has more than one item
    string, bytes    costs the size of the value in memory, if it has more than SMALL bytes
    tagged fields    cost ITEM_SIZE for each field

For example, an array of 5000 topics costs 5000 x 1024 bytes, some 5 MB.

A payment is a call of `ALLOWANCE.spend`, which may wait or raise. A thread of the broker replaces this function
before it decodes a request. By default decoding costs nothing, because a client trusts its broker. Each thread has its
own allowance. If each codec had a parameter for the allowance, every field of every message would be decoded more
slowly.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

ITEM_SIZE = 1024  # bytes for an array item and its part of the response; the measured sizes are 200 to 1,000
SMALL = 1024  # bytes

Spend = Callable[[int], None]  # The function takes a number of bytes, and may raise ProtocolError.


def pay_nothing(size: int) -> None:
    """Allow any amount of memory."""


class _Allowance(threading.local):
    """Holds, for each thread, the function with which the thread pays for the memory of decoded values."""

    spend: Spend = staticmethod(pay_nothing)


ALLOWANCE = _Allowance()
