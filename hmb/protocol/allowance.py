"""How much memory the values of one message may take.

A message in memory is larger than on the wire: an array item of one byte becomes an object of some hundred bytes, and
the answer holds another one for it.  A request of 100 MB could so take several gigabytes.  A reader of untrusted bytes
therefore pays for what it decodes, before the memory is allocated:

    array            ITEM_SIZE for each item, if it has more than one
    string, bytes    their size in memory, if they have more than SMALL bytes
    tagged fields    ITEM_SIZE for each field

With `limited`, each payment of the current thread is a call of `spend`, which may raise.  Without it, decoding costs
nothing: a client trusts its broker.  The allowance belongs to the thread, because a parameter in every codec would slow
down every number of every message.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

ITEM_SIZE = 512  # bytes: an item and its part of the answer, measured over all APIs
SMALL = 1024  # bytes

Spend = Callable[[int], None]  # takes bytes; may raise ProtocolError


def _for_nothing(size: int) -> None:
    pass


class _Allowance(threading.local):
    """The way in which the current thread pays for what it decodes."""

    spend: Spend = staticmethod(_for_nothing)


ALLOWANCE = _Allowance()


@contextmanager
def limited(spend: Spend) -> Iterator[None]:
    """Let the current thread pay with `spend` for what it decodes."""
    ALLOWANCE.spend = spend
    try:
        yield
    finally:
        ALLOWANCE.spend = _for_nothing
