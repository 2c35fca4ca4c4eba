"""Shows in steps what happens when the network loses the response of a Produce request.

When the response of a Produce request is lost, the producer sends the request again. Sequence numbers prevent a
duplicate in the log.

The network is simulated, but the logs are real logs of HMB. The tuple `SENT` contains the requests of an
idempotent producer. The tuple `WITHOUT_IDS` contains the requests of a producer without idempotence. The
field `fate` of a request describes what the network loses: the request, its response, or nothing.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, NamedTuple

from drawing import Drawing, Tone
from step_by_step import Step

from hmb.protocol.errors import KafkaError
from hmb.records import Record, RecordBatch, TimestampType, encode_batch, read_records
from hmb.storage.config import LogConfig
from hmb.storage.log import Log
from hmb.storage.producer_state import BatchMetadata

Fate = Literal["arrives", "request lost", "response lost"]
PRODUCER_ID = 7
NO_ID = -1
WIDTH, HEIGHT, CELL = 480, 330, 112


class Sent(NamedTuple):
    """One request of the producer: its producer id, its sequence number, and what the network does with it."""

    producer_id: int
    sequence: int
    fate: Fate
    caption: str


SENT = (
    Sent(PRODUCER_ID, 0, "arrives", "The producer sends order 1 with sequence number 0. The log appends the batch."),
    Sent(
        PRODUCER_ID, 1, "response lost",
        "The log appends the batch with sequence number 1. The network loses the response, so the producer does "
        "not know whether the log has the batch.",
    ),
    Sent(
        PRODUCER_ID, 1, "arrives",
        "The producer sends the batch with sequence number 1 again. The log remembers this number, so it appends "
        "nothing. The response contains the offset of the first append.",
    ),
    Sent(
        PRODUCER_ID, 2, "request lost",
        "The network loses the request with sequence number 2. The producer sees the same as after a lost response: it "
        "receives no answer. The log does not have this batch.",
    ),
    Sent(
        PRODUCER_ID, 3, "arrives",
        "The next batch of the producer was already in flight. The log expects sequence number 2, but this batch has "
        "number 3. The log refuses it, because the order of the records would change.",
    ),
    Sent(
        PRODUCER_ID, 2, "arrives",
        "The producer sends the batch with sequence number 2 again. This time the log appends it, because it has never "
        "seen this number.",
    ),
    Sent(
        PRODUCER_ID, 3, "arrives",
        "The producer also repeats the refused batch with sequence number 3. The log now has every record once, and in "
        "the right order.",
    ),
)  # fmt: skip
WITHOUT_IDS = (
    Sent(
        NO_ID, 0, "response lost",
        "A producer without idempotence sends batches without a producer id and without sequence numbers. The log "
        "appends the first batch, and the network loses the response.",
    ),
    Sent(
        NO_ID, 0, "arrives",
        "A producer without idempotence sends its batch again. The log cannot recognize the batch, and appends it a "
        "second time: order 1 is a duplicate.",
    ),
)  # fmt: skip


class Outcome(NamedTuple):
    """The result of one request: the answer and the contents of the log.

    `answer` is None if the network lost the request before it reached the log.
    """

    answer: str | None
    before: int  # log end offset before the request
    values: list[str]  # values of all records in the log
    remembered: list[BatchMetadata]


def steps() -> list[Step]:
    """Return the steps of an idempotent producer, followed by the steps of a producer without idempotence."""
    return [draw(*pair) for sent in (SENT, WITHOUT_IDS) for pair in zip(sent, run(sent), strict=True)]


def run(requests: tuple[Sent, ...]) -> list[Outcome]:
    """Send requests to an empty log. Return the answer and the contents of the log after each request."""
    with TemporaryDirectory() as directory:
        log = Log(Path(directory), LogConfig(), clock=lambda: 1_000)
        outcomes = [send(log, request) for request in requests]
        log.close()
    return outcomes


def send(log: Log, sent: Sent) -> Outcome:
    """Append the batch of a request to the log, unless the network loses the request. Return the result."""
    before, answer = log.log_end_offset, None
    if sent.fate != "request lost":
        value = f"order {sent.sequence + 1}".encode()
        records = [Record(0, 1_000, None, value, (), TimestampType.CREATE_TIME)]
        has_id = sent.producer_id != NO_ID
        numbers = (sent.producer_id, 0, sent.sequence) if has_id else (NO_ID, -1, -1)
        names = ("producer_id", "producer_epoch", "base_sequence")
        try:
            batch = encode_batch(records, **dict(zip(names, numbers, strict=True)))
            result = log.append(RecordBatch.parse(batch))
            answer = f"offset {result.base_offset}"
        except KafkaError as error:
            answer = error.code.name
    stored = log.read(0, 100_000).records
    values = [(record.value or b"").decode() for record in read_records(stored.read())] if stored else []
    remembered = [batch for active in log.producers.active() for batch in active.producer.batches]
    return Outcome(answer, before, values, remembered)


def draw(sent: Sent, outcome: Outcome) -> Step:
    """Return the step that shows one request, its answer, and the log after the request."""
    drawing = Drawing(WIDTH, HEIGHT, in_words(sent, outcome))
    producer = drawing.box(8, 30, 90, 80, "producer", tone="blue")
    broker = drawing.box(382, 30, 90, 80, "broker", tone="amber")
    is_refused = outcome.answer is not None and not outcome.answer.startswith("offset")
    message(drawing, request_of(sent), producer.right.x, broker.left.x, 52, "blue", sent.fate == "request lost")
    if outcome.answer is not None:
        tone: Tone = "red" if is_refused else "amber"
        message(drawing, outcome.answer, broker.left.x, producer.right.x, 100, tone, sent.fate == "response lost")
    draw_log(drawing, outcome)
    draw_memory(drawing, sent, outcome)
    return Step(sent.caption, drawing)


def message(drawing: Drawing, words: str, start: float, end: float, y: float, tone: Tone, is_lost: bool) -> None:
    """Draw the arrow of a request or a response. The arrow of a lost message ends with a cross."""
    drawing.text((start + end) / 2, y - 9, words, size=13)
    stop = start + (end - start) * 0.75 if is_lost else end
    drawing.arrow((start, y), (stop, y), tone=tone, dashed=is_lost)
    if is_lost:
        drawing.cross(stop, y)


def draw_log(drawing: Drawing, outcome: Outcome) -> None:
    """Draw the records of the log. New records are violet, and duplicates are red."""
    drawing.text(10, 152, f"the log, with log end offset {len(outcome.values)}", anchor="start", size=13)
    for offset, value in enumerate(outcome.values):
        is_duplicate = value in outcome.values[:offset]
        tone: Tone = "red" if is_duplicate else "violet" if offset >= outcome.before else "amber"
        drawing.box(10 + CELL * offset, 162, CELL - 4, 34, value, tone=tone)
        drawing.text(10 + CELL * offset + CELL / 2 - 2, 214, str(offset), size=13)


def draw_memory(drawing: Drawing, sent: Sent, outcome: Outcome) -> None:
    """Draw each batch that the log remembers: its sequence number and offset. The request's batch is violet."""
    if sent.producer_id == NO_ID:
        drawing.text(10, 250, "the log remembers no batch without a producer id", anchor="start", size=13)
        return
    title = f"what the log remembers of producer {sent.producer_id}"
    drawing.text(10, 250, title, anchor="start", size=13)
    for number, batch in enumerate(outcome.remembered):
        tone: Tone = "violet" if batch.first_sequence == sent.sequence else "plain"
        numbers, offsets = f"sequence {batch.first_sequence}", f"offset {batch.base_offset}"
        drawing.box(10 + CELL * number, 260, CELL - 4, 50, numbers, offsets, tone=tone)


def request_of(sent: Sent) -> str:
    """Return the text above the arrow of a request, for example "order 2, sequence 1"."""
    if sent.producer_id == NO_ID:
        return "order 1, no sequence number"
    return f"order {sent.sequence + 1}, sequence {sent.sequence}"


def in_words(sent: Sent, outcome: Outcome) -> str:
    """Describe one step in words, for readers who cannot see its picture."""
    ends = {"arrives": "arrives", "request lost": "is lost", "response lost": "arrives, and its response is lost"}
    answer = "No response reaches the producer." if sent.fate != "arrives" else f"The response is {outcome.answer}."
    grows = f"{outcome.before} records before the request and {len(outcome.values)} after it"
    return f"The request with {request_of(sent)} {ends[sent.fate]}. {answer} The log has {grows}."
