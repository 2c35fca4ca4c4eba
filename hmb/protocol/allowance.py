"""Limits the memory for the decoded values of a message.

A decoded message takes more memory than its encoded bytes. For example, an array item can be encoded in one
byte, but its decoded object takes several hundred bytes. Then the broker creates another object, which
describes the same item in the response. A request of 100 MB could therefore take several gigabytes of memory.

To limit the memory of a message, a decoder reports the *cost* of each large value: it calls `ALLOWANCE.spend` with a
number of bytes. It reports the cost of a string after decoding, and every other cost before it allocates memory for
the value. The costs are:
    array            costs 1,024 bytes for each item, if the array has more than one item
    string, bytes    cost the size of the value in memory, if the value has more than 1,024 bytes
    tagged fields    cost 1,024 bytes for each field

For example, a request contains an array of 5000 topics. Before the decoder creates the items of this array, it calls
`ALLOWANCE.spend` with their cost: 5000 x 1024 bytes, about 5 MB.

Each thread has its own function `spend`, which can limit the memory for decoded messages. By default, `spend`
does nothing. Clients use this default, because they trust their broker.

`Dispatcher.begin` (broker/dispatch.py) decodes and handles a request. Before the decoding, it sets
`ALLOWANCE.spend` to a function that limits memory. This function waits if too little memory is free. It raises
ProtocolError if the values of one request take too much memory. At its end, `begin` sets `ALLOWANCE.spend` to
`pay_nothing`, which does nothing.

The decoders find `spend` in the global object ALLOWANCE. The function is not a parameter of the decoders, because a
further parameter would make every decoder slower.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

ITEM_SIZE = 1024  # bytes; an array item and its object in the response together take 200 to 1,000 bytes (measured)
SMALL = 1024  # bytes; strings and byte strings of at most this size do not count towards the memory limit

Spend = Callable[[int], None]  # The argument is a number of bytes. The function may raise ProtocolError.


def pay_nothing(size: int) -> None:
    """Do nothing. Decoders call this function by default, instead of a function that limits memory."""


class _Allowance(threading.local):
    """Stores a function `spend`, which can limit the memory that decoded messages take.

    For each large value, a decoder calls `spend` with the number of bytes that the value takes in memory. If the
    message takes too much memory, `spend` can wait, or raise ProtocolError.

    Each thread has its own `spend`.
    """

    spend: Spend = staticmethod(pay_nothing)


ALLOWANCE = _Allowance()
