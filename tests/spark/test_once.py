"""Tests of exactly-once writes. Tasks die, newer runs replace tasks, and batches are repeated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

import hmb

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from hmb.bench.peers import Kafka43, PeerUnavailable  # noqa: E402
from hmb.client.metadata import Cluster  # noqa: E402
from hmb.protocol.errors import KafkaError  # noqa: E402
from hmb.spark.options import OptionError, SinkOptions  # noqa: E402
from hmb.spark.writing.once import ReplayError, check_transactions, deliver_once  # noqa: E402
from hmb.spark.writing.sending import UndeliveredError  # noqa: E402
from tests.waiting import until  # noqa: E402


@pytest.fixture(scope="module", params=["hmb", pytest.param("kafka", marks=pytest.mark.external)])
def servers(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "hmb":
        with hmb.Broker(config={"log.flush.acks.all": "false"}) as broker:
            yield broker.bootstrap_servers
        return
    with ExitStack() as stack:
        try:
            kafka = stack.enter_context(Kafka43())
        except PeerUnavailable as error:
            pytest.skip(str(error))
        yield kafka.bootstrap


@pytest.fixture
def options(servers: str, topic: str) -> SinkOptions:
    return SinkOptions(servers, topic=topic, exactly_once=True, transactional_id_prefix=topic)


def rows(*values: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"key": list(values), "value": list(values)})


def committed(options: SinkOptions) -> list[bytes | None]:
    """Return the sorted values that a consumer with read_committed reads now."""
    isolated = {"isolation_level": "read_committed"}
    with hmb.Consumer(options.bootstrap_servers, options.topic, offset="earliest", until="end", **isolated) as consumer:
        return sorted(record.value for record in consumer)


def assert_committed(options: SinkOptions, *expected: bytes) -> None:
    """Wait for the expected number of committed values, and compare the values.

    Kafka's broker answers EndTxn before it writes the commit markers of the transaction. Until the broker has written
    these markers, a consumer cannot read the records of the transaction.
    """
    until(lambda: len(committed(options)) >= len(expected), "the markers of all transactions")
    assert committed(options) == list(expected)


def test_a_repeated_batch_is_skipped(options: SinkOptions) -> None:
    for _ in range(3):
        assert deliver_once(options, "query", 7, 0, iter([rows("a"), rows("b", "c")])) == 3
    assert_committed(options, b"a", b"b", b"c")


def test_the_order_of_rows_does_not_matter(options: SinkOptions) -> None:
    deliver_once(options, "query", 7, 0, iter([rows("a", "b", "c")]))
    deliver_once(options, "query", 7, 0, iter([rows("c"), rows("b", "a")]))
    assert_committed(options, b"a", b"b", b"c")


def test_tasks_batches_and_queries_are_independent(options: SinkOptions) -> None:
    for query, batch, task in (("one", 0, 0), ("one", 0, 1), ("one", 1, 0), ("two", 0, 0)):
        deliver_once(options, query, batch, task, iter([rows("a")]))
    assert_committed(options, *[b"a"] * 4)


def test_a_repeated_batch_with_other_rows_is_an_error(options: SinkOptions) -> None:
    deliver_once(options, "query", 7, 0, iter([rows("a", "b")]))
    with pytest.raises(ReplayError, match="now has 2 rows with different contents"):
        deliver_once(options, "query", 7, 0, iter([rows("a", "c")]))
    assert_committed(options, b"a", b"b")


def test_the_error_of_changed_rows_names_its_cause_and_the_ways_out(options: SinkOptions) -> None:
    """If a repeated batch has different rows, the error names the cause and the remedies.

    Suppose that a query is not deterministic, and that a crash makes it repeat a batch. The batch then has different
    rows. Before a bug was fixed, such a query failed at each restart, and the error did not explain why.
    """
    deliver_once(options, "query", 7, 0, iter([rows("a")]))
    with pytest.raises(ReplayError) as caught:
        deliver_once(options, "query", 7, 0, iter([rows("b")]))
    for part in ("is not deterministic", "rand()", "start with a new checkpoint", "failOnChangedRows=false"):
        assert part in str(caught.value)


def test_changed_rows_are_written_at_least_once_if_the_option_allows_it(
    options: SinkOptions, caplog: pytest.LogCaptureFixture
) -> None:
    lenient = replace(options, fail_on_changed_rows=False)
    deliver_once(lenient, "query", 7, 0, iter([rows("a", "b")]))
    deliver_once(lenient, "query", 7, 0, iter([rows("a"), rows("b")]))
    assert_committed(options, b"a", b"b")
    assert not caplog.records
    deliver_once(lenient, "query", 7, 0, iter([rows("a", "c")]))
    assert "batch 7 was written with 2 rows, and now has 2 rows with different contents" in caplog.text
    deliver_once(lenient, "query", 7, 0, iter([rows("a", "c")]))
    deliver_once(options, "query", 8, 0, iter([rows("d")]))
    assert_committed(options, b"a", b"a", b"b", b"c", b"d")


def test_a_checkpoint_with_an_earlier_batch_is_an_error(options: SinkOptions) -> None:
    deliver_once(options, "query", 7, 0, iter([rows("a")]))
    with pytest.raises(ReplayError, match="the query writes batch 6, but batch 7 was written already"):
        deliver_once(options, "query", 6, 0, iter([rows("a")]))


def test_an_attempt_that_fails_leaves_nothing(options: SinkOptions) -> None:
    def fails() -> Iterator[pa.RecordBatch]:
        yield rows("a")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        deliver_once(options, "query", 7, 0, fails())
    assert_committed(options)
    deliver_once(options, "query", 7, 0, iter([rows("a")]))
    assert_committed(options, b"a")


def test_an_attempt_that_dies_leaves_nothing(options: SinkOptions) -> None:
    """A task that dies during a transaction leaves no committed records.

    The next run of the task aborts the open transaction, so a consumer with read_committed does not see its records.
    """
    producer = hmb.Producer(options.bootstrap_servers, transactional_id=f"{options.topic}-query-0")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(str(options.topic), b"of the dead").result()
    deliver_once(options, "query", 7, 0, iter([rows("a")]))
    assert_committed(options, b"a")
    producer.close()


def test_of_two_concurrent_attempts_one_is_fenced(options: SinkOptions) -> None:
    def overtaken() -> Iterator[pa.RecordBatch]:
        yield rows("a", "b")
        # A newer run of the same task writes all its rows.
        deliver_once(options, "query", 7, 0, iter([rows("a", "b", "c")]))
        yield rows("c")

    with pytest.raises((UndeliveredError, KafkaError), match=r"PRODUCER_FENCED|INVALID_PRODUCER_EPOCH"):
        deliver_once(options, "query", 7, 0, overtaken())
    assert_committed(options, b"a", b"b", b"c")


def test_a_broker_without_transactions_is_refused(options: SinkOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    check_transactions(options)
    monkeypatch.setattr(Cluster, "supports", lambda cluster, request: False)
    with pytest.raises(OptionError, match=r"exactlyOnce=true: the broker at .* has no transactions"):
        check_transactions(options)
