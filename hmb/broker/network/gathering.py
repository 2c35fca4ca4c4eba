"""Gathering: the answers of several requests of one connection are sent together.

A client may send requests without waiting for the answers. The connection's thread serves them in their order. If it
finished each request before it began the next one, a Produce with acks=all would cost a sync, and each answer a system
call. So an answer that is deferred (broker/deferred.py) may wait in a queue. If the next request has arrived and is of
the same API, the connection begins that request first. Then it finishes all requests in the queue, in their order: one
sync makes the records of all of them durable, and one system call sends all answers.

A first reading of the broker can skip this module: without it, each answer would be sent at once.
"""

from __future__ import annotations

import socket

from hmb.broker.dispatch import Answer
from hmb.broker.network.sending import send
from hmb.protocol.primitives import Part

MOST_GATHERED = 64  # answers


class AnswerQueue:
    """The answers of one connection that were not sent yet, in the order of their requests."""

    def __init__(self, client: socket.socket) -> None:
        self._client = client
        self._answers: list[Answer] = []

    def add(self, answer: Answer) -> None:
        """Append the answer of the next request."""
        self._answers.append(answer)

    @property
    def may_wait(self) -> bool:
        """Whether the queue may wait for the answer of one more request."""
        return self._answers[-1].is_deferred and len(self._answers) < MOST_GATHERED

    def send(self) -> None:
        """Wait until all answers are final, and send them.

        Raises CloseConnection if an answer fails; the answers before it are sent. Raises OSError.
        """
        answers, self._answers = self._answers, []  # each answer is waited for once, also after an error
        parts: list[Part] = []
        try:
            for answer in answers:
                parts += answer.parts()
        finally:
            if parts:
                send(self._client, parts)
