"""A broker that throws records away: how fast a producer can be at most, with Python at the other end.

    hmb bench produce --empty

It is HMB's broker, but for Produce: the first such request of a connection goes the usual way, and its answer, with
the correlation id changed, is the answer to all that follow.  They are read from the socket and not looked at.  So
what HMB itself can gain by doing less with a request lies between its own line and this one.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from hmb.broker.dispatch import Dispatcher, Finish
from hmb.broker.network import server
from hmb.broker.network.request_memory import UNCOUNTED, Account
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.primitives import Part

from . import peers

PRODUCE = ApiKey.PRODUCE.to_bytes(2)
CORRELATION_ID = slice(4, 8)  # int16 api_key, int16 api_version, int32 correlation_id; int32 size, int32 correlation_id


class EmptyBroker(peers.Hmb):
    """A process of it."""

    name = "an empty broker"

    def command(self) -> list[str]:
        _, *arguments = super().command()
        return [sys.executable, "-m", "hmb.bench.empty_broker", *arguments]


class Forgetful(Dispatcher):
    """Answers all Produce requests of a connection but the first without looking at them."""

    _answer = b""

    def begin(self, frame: memoryview, memory: Account = UNCOUNTED) -> list[Part] | Finish | None:
        if frame[:2] != PRODUCE:
            return super().begin(frame, memory)
        if not self._answer:
            finish = super().begin(frame, memory)
            assert callable(finish)
            self._answer = b"".join(part for part in finish() if isinstance(part, bytes))
            return [self._answer]
        answer = bytearray(self._answer)
        answer[CORRELATION_ID] = frame[CORRELATION_ID]
        return lambda: [bytes(answer)]


if __name__ == "__main__":
    sys.argv[0] = str(Path(sys.executable).with_name("hmb"))
    server.Dispatcher = Forgetful  # type: ignore[attr-defined]
    import_module("hmb.cli.entry").run()
