"""The error for a request that the HTTP server refuses."""

from __future__ import annotations

from http import HTTPStatus


class Refused(Exception):
    """An error for a request that the server refuses. `status` is the HTTP status of the response."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status
