"""The allowance: limits the memory that the values of a decoded message take.

A decoded message takes more memory than its bytes on the wire. For example, an array item of one byte becomes an object
of several hundred bytes. The broker creates another object for this item in the response. So a request of 100 MB could
take several gigabytes of memory.

To limit the memory for a message, a decoder reports the *cost* of a value, a number of bytes, before it allocates
memory for the value. The costs are:
    array            costs 1,024 bytes for each item, if the array has more than one item
    string, bytes    cost the size of the value in memory, if the value has more than 1,024 bytes
    tagged fields    cost 1,024 bytes for each field

For example, a request contains an array of 5000 topics. Before the decoder creates the items of this array, it calls
`ALLOWANCE.spend` with their cost in memory: 5000 x 1024 bytes, about 5 MB.

To report the cost of a value, a decoder calls the function `ALLOWANCE.spend` with a number of bytes. This function can
limit the memory of a message: it can wait for free memory, or raise ProtocolError. Each thread has its own function
`spend`. The default function does nothing, so it does not limit the memory. A client uses this default, because it
trusts its broker to send no harmful message.

Before a thread of the broker decodes a request, `Dispatcher.begin` (broker/dispatch.py) replaces `ALLOWANCE.spend` for
this thread. A decoder then calls the new function before it allocates memory. The new function counts the memory of the
request. If the memory is not free, it waits or raises ProtocolError. After the request, `Dispatcher.begin` restores the
default function, which does not limit the memory.

The decoders find the function `spend` in the global object ALLOWANCE. The function could also be a parameter of each
decoder, but a further parameter would make every decoder slower.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

ITEM_SIZE = 1024  # bytes for one array item, and for the item's object in the response (measured: 200 to 1,000)
SMALL = 1024  # bytes; a string or byte string of at most this size costs nothing

Spend = Callable[[int], None]  # The argument is a number of bytes. The function may raise ProtocolError.


def pay_nothing(size: int) -> None:
    """Do nothing. A decoder calls this function by default, so the memory that a message takes is not limited."""


class _Allowance(threading.local):
    """Stores, for each thread, the function that limits the memory of decoded messages.

    For a large value, a decoder calls the function `spend` of its thread with the number of bytes that the value takes.
    If this is too much memory, `spend` can wait, or raise ProtocolError.
    """

    spend: Spend = staticmethod(pay_nothing)


ALLOWANCE = _Allowance()
