"""The drawings of the chapter on transactions: the requests of one transaction, and the records that consumers get."""

from __future__ import annotations

from drawing import Drawing, Tone
from sequence import Lane, Sequence
from tracing import Locals, Watched, add_calls, traced

import hmb
from hmb.broker.handlers import end_txn, init_producer_id
from hmb.broker.lifecycle import BrokerServer
from hmb.client import TopicPartition
from hmb.coordinator.transactions import records
from hmb.coordinator.transactions.coordinator import TransactionCoordinator
from hmb.records import ControlType, control_type
from hmb.records.reading import Batch, iter_batches
from hmb.storage.log import Log

COORDINATOR, JOURNAL = "coordinator", "__transaction_state"
SETTINGS = {"transaction.state.log.num.partitions": "1"}
WEATHER = TopicPartition("weather", 0)
TOPICS = ("weather-0", "alerts-0")


def of_log(variables: Locals) -> str:
    """Return the name of the log object `variables["self"]`, or "" if the name is not in the tuple TOPICS."""
    name: str = variables["self"].directory.name
    return name if name in TOPICS else ""


def state(variables: Locals) -> str:
    label: str = variables["transaction"].state.label
    return label


def marker(variables: Locals) -> str:
    kind: ControlType = variables["marker"].control_type
    return f"marker {kind.name}"


WATCHED = [
    Watched(init_producer_id.handle, COORDINATOR, "InitProducerId", caller="producer", reply="producer id, epoch"),
    Watched(TransactionCoordinator.add_partitions, COORDINATOR, "add the partition", caller="producer"),
    Watched(records.records_of, JOURNAL, state, tone="violet"),
    Watched(Log.append, of_log, "append a batch", caller="producer", tone="blue"),
    Watched(end_txn.handle, COORDINATOR, "EndTxn: commit", caller="producer", reply="OK"),
    Watched(Log.append_marker, of_log, marker, tone="violet"),
    Watched(Log.flush, of_log, "sync", caller="producer"),
]


def transaction() -> Drawing:
    """Draw the requests and the writes of a transaction with two partitions.

    The function runs a transaction on a real broker, and draws some of the broker's function calls.
    """
    with traced(WATCHED) as events, BrokerServer(config=SETTINGS) as broker:
        servers = broker.bootstrap_servers
        with hmb.Admin(servers) as admin:
            admin.create_topics([hmb.NewTopic("weather", 1), hmb.NewTopic("alerts", 1)])
        with hmb.Producer(servers, transactional_id="reports") as producer:
            producer.init_transactions()
            with producer.transaction():
                producer.send("weather", b"storm").result()
                producer.send("alerts", b"stay inside").result()
            # When the broker stops, it syncs its logs. The drawing must not show these syncs, so copy the events before
            # the broker stops.
            found = list(events)
    lanes: list[tuple[str, Tone]] = [
        ("producer", "blue"),
        *((name, "amber") for name in (COORDINATOR, JOURNAL, *TOPICS)),
    ]
    sequence = Sequence(*(Lane(*lane) for lane in lanes), gap=182)
    add_calls(sequence, found)
    return sequence.drawing("A transaction with two partitions is committed.")


def readers() -> Drawing:
    """Draw one log of a running broker twice: while a transaction is open, and after it was aborted."""
    with BrokerServer(config=SETTINGS) as broker:
        servers = broker.bootstrap_servers
        with (
            hmb.Producer(servers, transactional_id="slow") as slow,
            hmb.Producer(servers, transactional_id="quick") as quick,
        ):
            slow.init_transactions()
            quick.init_transactions()
            slow.begin_transaction()
            slow.send("weather", b"snow in July").result()
            with quick.transaction():
                quick.send("weather", b"rain").result()
            slow.send("weather", b"palm trees").result()
            log = broker.context.topics.log_of(WEATHER)
            open_offsets = log.last_stable_offset, log.high_watermark
            slow.abort_transaction()
        with hmb.Consumer(servers, "weather", until="end", isolation_level="read_committed") as consumer:
            visible = [record.offset for record in consumer]
        labels = [label for batch in iter_batches(log.read(0, 1 << 20).records.read()) for label in labels_of(batch)]
        ended_offsets = log.last_stable_offset, log.high_watermark
    drawing = Drawing(
        660,
        330,
        f"One partition with {len(labels)} records. While the first transaction is open, the last stable offset is "
        f"{open_offsets[0]} and the high watermark is {open_offsets[1]}. After its abort, both are {ended_offsets[0]}, "
        f"and a reader with read_committed gets the records at offsets {', '.join(map(str, visible))}.",
    )
    for y, title, (stable, high) in (
        (20, "while the transaction of the slow producer is open", open_offsets),
        (180, "after its abort", ended_offsets),
    ):
        draw_log(drawing, y, title, labels[:high], stable, high, visible)
    return drawing


def labels_of(batch: Batch) -> list[str]:
    """Return each record's value. For a record that ends a transaction, return "COMMIT" or "ABORT"."""
    if batch.is_control:
        return [control_type(record).name for record in batch.records()]
    return [(record.value or b"").decode() for record in batch.records()]


def draw_log(
    drawing: Drawing, y: float, title: str, labels: list[str], stable: int, high: int, seen: list[int]
) -> None:
    """Draw one state of the log. A record is green if a consumer with read_committed receives it."""
    left, wide = 14, 116
    drawing.text(left, y, title, anchor="start", strong=True)
    for offset, label in enumerate(labels):
        is_marker = label in ControlType.__members__
        tone: Tone = "violet" if is_marker else "green" if offset in seen and offset < stable else "gray"
        if not is_marker and offset >= stable:
            tone = "amber"
        drawing.box(left + wide * offset, y + 16, wide - 4, 34, label, tone=tone)
        drawing.text(left + wide * offset + wide / 2 - 2, y + 68, str(offset), size=13)
    for offset, name, depth in ((stable, "last stable offset", 0), (high, "high watermark", 1)):
        x, bottom = left + wide * offset - 2, y + 84 + 22 * depth
        drawing.line((x, y + 10), (x, bottom), tone="violet" if depth == 0 else "plain", dashed=True)
        before = offset > len(labels) / 2
        drawing.text(
            x + (-6 if before else 6), bottom, f"{name} {offset}", anchor="end" if before else "start", size=13
        )
