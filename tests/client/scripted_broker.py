"""A broker with real sockets, for tests. A test passes one function, which returns the response to each request."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from hmb.protocol.connection import ServerConnection
from hmb.protocol.errors import ProtocolError
from hmb.protocol.framing import read_frame
from hmb.protocol.messages import API_KEYS, request_class
from hmb.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from hmb.protocol.messages.metadata import MetadataRequest, MetadataResponse
from hmb.protocol.schema import Request, Response

Answer = Callable[[Request, int], "Response | None"]


class Clock:
    """A clock, in seconds, that only the test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class HangUp(Exception):
    """Raised by a test's function `answer`, so that the broker closes the connection without a response."""


class ScriptedBroker:
    """A broker that leads one partition of every topic. The broker itself answers ApiVersions and Metadata requests.

    The test's function `answer` returns all other responses.
    """

    def __init__(self, answer: Answer, versions: dict[type[Request], int] | None = None, port: int = 0) -> None:
        """Listen on a port. If `port` is 0, the system chooses it.

        For a request class in `versions`, the broker supports all versions up to the given one, or none if the given
        version is -1. For other request classes, it supports all versions.
        """
        self._answer = answer
        self._versions = versions or {}
        self.oldest_versions: dict[type[Request], int] = {}
        self.features: dict[str, int] = {}  # the level of each feature that ApiVersions reports
        self._listener = socket.create_server(("127.0.0.1", port))
        self._clients: list[socket.socket] = []
        self.port: int = self._listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        # The number of ApiVersions requests that close the connection; inf for a broker before Kafka 0.10.
        self.hang_ups: float = 0
        # All received requests except ApiVersions and Metadata, each with its version.
        self.requests: list[tuple[Request, int]] = []
        self.metadata: Callable[[MetadataRequest], MetadataResponse] = self._metadata

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop listening, and close all connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop_connections()

    def drop_connections(self) -> None:
        for client in self._clients:
            with suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._clients.append(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        protocol = ServerConnection()
        with suppress(HangUp, ProtocolError, OSError), client, client.makefile("rb") as stream:
            while (frame := read_frame(stream, 1 << 24)) is not None:
                header, request = protocol.receive(frame)
                response = self._respond(request, header.api_version)
                if response is not None:
                    client.sendall(b"".join(protocol.respond(header, response)))  # type: ignore[arg-type]

    def _respond(self, request: Request, version: int) -> Response | None:
        if isinstance(request, ApiVersionsRequest):
            if self.hang_ups:
                self.hang_ups -= 1
                raise HangUp
            keys = [
                ApiVersionsResponse.ApiVersion(
                    api_key=known.api_key,
                    min_version=self.oldest_versions.get(known, 0),
                    max_version=self._versions.get(known, known.versions[-1]),
                )
                for known in map(request_class, API_KEYS)
                if self._versions.get(known, 0) >= 0
            ]
            features = [
                ApiVersionsResponse.FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
                for name, level in self.features.items()
            ]
            return ApiVersionsResponse(api_keys=keys, finalized_features=features)
        if isinstance(request, MetadataRequest):
            return self.metadata(request)
        self.requests.append((request, version))
        return self._answer(request, version)

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        topic = MetadataResponse.MetadataResponseTopic
        partition = topic.MetadataResponsePartition(partition_index=0, leader_id=7, replica_nodes=[7], isr_nodes=[7])
        return MetadataResponse(
            brokers=[MetadataResponse.MetadataResponseBroker(node_id=7, host="127.0.0.1", port=self.port)],
            controller_id=7,
            topics=[topic(name=asked.name, partitions=[partition]) for asked in request.topics or ()],
        )
