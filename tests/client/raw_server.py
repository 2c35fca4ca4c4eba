"""Runs a server whose answers a test chooses, for example a server that is not a Kafka broker."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def raw_server(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """Run a server that is not a Kafka broker. Yield its port. `serve` is called for each connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client:
                    serve(client)

        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
