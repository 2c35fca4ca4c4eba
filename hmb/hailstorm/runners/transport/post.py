"""A `Post` object delivers payloads (batches of tuples) from one processor to the mailbox of the next processor.

If a receiver runs in the same process as the sender, a `Post` object puts the payloads into the receiver's
mailbox. Otherwise it sends the payloads through a *channel*: a TCP connection that only this sender and this
receiver use.

On a shared connection, payloads for a full mailbox would delay the payloads for all other receivers. Two
processes could even wait for each other forever.

A channel carries these frames:
    sender -> receiver    ["to", receiver, sender], then payloads, one frame each (`hmb.hailstorm.wire`)

A channel delivers all payloads in order, unless its connection breaks. Some payloads can then be lost, so the
sender must not simply connect again. Instead, it stops its work in this epoch, and reports this in the
registry. The negotiator, which controls all processors, then begins a new epoch.

In a new epoch, all processors load their states from the newest complete snapshot. The spouts replay all
records whose effects are not in these states.

The registry entry of a receiver contains the receiver's address. The senders therefore also reach a receiver that was
started again on another machine. (The Hailstorm paper suggests this as future work, chapter 6.)

Source: Hailstorm, chapter 5.2, "Network Processing".
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable

from hmb.defaults import DEFAULT_HOST
from hmb.hailstorm.codec import decode
from hmb.hailstorm.errors import HailstormError
from hmb.hailstorm.master import Report
from hmb.hailstorm.payload import Payloads
from hmb.hailstorm.registry import RegistrySession
from hmb.hailstorm.registry.sessions import LIVING
from hmb.hailstorm.runners.transport.mailbox import CHECK_INTERVAL, Mailbox
from hmb.hailstorm.wire import FrameSocket

LOGGER = logging.getLogger(__name__)
RECEIVER_CONNECT_TIMEOUT = 5.0  # seconds in which a receiver must accept a connection
LOOK_INTERVAL = 0.005  # seconds after which a sender checks again whether a receiver has registered


class BrokenChannelError(HailstormError):
    """The connection between a sender and a receiver is broken, so payloads may be lost."""


class Post:
    """Puts payloads (batches of tuples) into the mailboxes of the processors in one process."""

    def __init__(self) -> None:
        self._mailboxes: dict[str, Mailbox] = {}
        self._lock = threading.Lock()  # guards the dict of mailboxes

    def open_mailbox(self, name: str) -> Mailbox:
        """Return a new mailbox for a processor that starts. If the processor has an old mailbox, close the old one."""
        mailbox = Mailbox()
        with self._lock:
            before = self._mailboxes.get(name)
            self._mailboxes[name] = mailbox
        if before is not None:
            before.close()
        return mailbox

    def deliver(self, receiver: str, payloads: Payloads, is_obsolete: Callable[[], bool]) -> None:
        """Put payloads into the receiver's mailbox, and wait while the mailbox is full.

        Drop the payloads if the receiver is not running, or if `is_obsolete` returns True during the wait. When the
        receiver starts again, the spouts replay all records that the newest complete snapshot does not include.

        Raises BrokenChannelError if the connection to a receiver in another process breaks. Payloads can then be lost.
        """
        mailbox = self._mailboxes.get(receiver)
        if mailbox is not None:
            mailbox.put(payloads, is_obsolete)

    def close(self) -> None:
        """Close the mailboxes of all processors."""
        for mailbox in list(self._mailboxes.values()):
            mailbox.close()


class RemotePost(Post):
    """Delivers payloads (tuples on their way to a processor) to processors in this process and in other processes.

    The post sends payloads to another process through a socket. Payloads from other processes arrive at `address`.
    """

    def __init__(self, session: RegistrySession, host: str = DEFAULT_HOST) -> None:
        """Listen at the address `host`. Learn the addresses of the receivers from the registry, through `session`."""
        super().__init__()
        self._listener = socket.create_server((host, 0), backlog=128)
        self.address: tuple[str, int] = self._listener.getsockname()[:2]
        self._addresses: dict[str, tuple[int, tuple[str, int]]] = {}  # receiver -> (its epoch, its address)
        self._channels: dict[tuple[str, str], Channel] = {}
        self._is_closed = False
        session.watch(LIVING, self._watch)
        threading.Thread(target=self._accept, name="hailstorm-post", daemon=True).start()

    def deliver(self, receiver: str, payloads: Payloads, is_obsolete: Callable[[], bool]) -> None:
        if receiver in self._mailboxes:
            super().deliver(receiver, payloads, is_obsolete)
            return
        channel = self._channels.get((payloads.sender, receiver))
        if channel is None or channel.epoch != payloads.epoch:
            channel = self._open(receiver, payloads, is_obsolete)
        if channel is not None:
            channel.send(payloads, is_obsolete)

    def close(self) -> None:
        self._is_closed = True
        self._listener.close()
        for channel in list(self._channels.values()):
            channel.close()
        super().close()

    def _open(self, receiver: str, payloads: Payloads, is_obsolete: Callable[[], bool]) -> Channel | None:
        """Return a new channel to the receiver for the epoch of the payloads.

        First wait until the receiver has registered its address for this epoch or for a newer epoch. Return None if the
        payloads become obsolete during the wait, or if `close` is called.
        """
        before = self._channels.pop((payloads.sender, receiver), None)
        if before is not None:
            before.close()
        while True:
            epoch, address = self._addresses.get(receiver, (0, None))
            if address is not None and epoch >= payloads.epoch:
                break
            if is_obsolete() or self._is_closed:
                return None
            time.sleep(LOOK_INTERVAL)
        channel = Channel(address, receiver, payloads.sender, payloads.epoch)
        self._channels[payloads.sender, receiver] = channel
        return channel

    def _watch(self, path: str, value: bytes | None) -> None:
        name = path.removeprefix(LIVING)
        if value is None:
            self._addresses.pop(name, None)
            return
        report = Report.from_value(decode(value))
        if report.address is not None:
            self._addresses[name] = report.epoch, report.address

    def _accept(self) -> None:
        while not self._is_closed:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(
                target=self._receive, args=(FrameSocket(connection),), name="hailstorm-channel", daemon=True
            ).start()

    def _receive(self, connection: FrameSocket) -> None:
        """Put all payloads that arrive on one channel into the receiver's mailbox, until the connection is closed."""
        try:
            what, receiver, sender = connection.receive()
            if what != "to":
                raise ValueError(f"the first frame of a channel must begin with 'to', not with {what!r}")
            LOGGER.debug("%s is connected to %s", sender, receiver)
            while not self._is_closed:
                payloads = Payloads.from_value(connection.receive())
                super().deliver(receiver, payloads, lambda: self._is_closed)
        except (OSError, HailstormError, ValueError, TypeError) as error:
            LOGGER.debug("a channel has ended: %s", error)
        finally:
            connection.close()


class Channel:
    """A connection that carries the payloads of one sender to one receiver in another process, during one epoch."""

    def __init__(self, address: tuple[str, int], receiver: str, sender: str, epoch: int) -> None:
        """Connect to the receiver. Raises BrokenChannelError if the receiver cannot be reached."""
        self.epoch = epoch
        self._receiver = receiver
        try:
            self._socket = FrameSocket.connect(address, RECEIVER_CONNECT_TIMEOUT)
            self._socket.set_timeout(CHECK_INTERVAL)
            self._socket.send(["to", receiver, sender])
        except OSError as error:
            raise BrokenChannelError(f"{receiver} cannot be reached: {error}") from error

    def send(self, payloads: Payloads, is_obsolete: Callable[[], bool]) -> None:
        """Send payloads, and wait while the receiver's mailbox is full.

        Raises BrokenChannelError if the connection breaks.
        """
        try:
            self._socket.send(payloads.to_value(), is_obsolete)
        except TimeoutError:
            self.close()  # The payloads are obsolete, because their epoch has ended, so the channel is not needed.
        except OSError as error:
            self.close()
            raise BrokenChannelError(f"the channel to {self._receiver} is broken: {error}") from error

    def close(self) -> None:
        self._socket.close()
