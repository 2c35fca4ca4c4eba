"""Test cases for a transaction coordinator: valid and invalid requests.

The requests are InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, DescribeTransactions and ListTransactions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from hmb.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from hmb.protocol.messages.describe_transactions import DescribeTransactionsRequest
from hmb.protocol.messages.end_txn import EndTxnRequest
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest
from hmb.protocol.messages.list_transactions import ListTransactionsRequest
from hmb.protocol.schema import Request

from ..case import Case, Step, captured, case, made

Transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
Topic = Transaction.AddPartitionsToTxnTopic
ID, EPOCH = captured("id"), captured("epoch")
OWN_IDS = {"may_differ": ("producer_id",)}
LATER = made(lambda known: known["epoch"] + 1)
EARLIER = made(lambda known: known["epoch"] - 1)
OTHER_ID = made(lambda known: known["id"] + 1_000_000)


def ask_for_id(name: str = "<name>", timeout: int = 60_000, **known: Any) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout, **known)


def init(**options: Any) -> Step:
    """Return a step that starts a producer and captures its id.

    While an earlier transaction is still ending, the step repeats its request.
    """
    return Step(
        ask_for_id(**options),
        capture={"id": lambda answer: answer.producer_id, "epoch": lambda answer: answer.producer_epoch},
        until=lambda answer: answer.error_code != ErrorCode.CONCURRENT_TRANSACTIONS,
    )


def again() -> InitProducerIdRequest:
    """Return an InitProducerId request with the captured producer id and epoch."""
    return ask_for_id(producer_id=ID, producer_epoch=EPOCH)


def add(
    *partitions: tuple[str, int], name: str = "<name>", id: Any = ID, epoch: Any = EPOCH, verify: bool = False
) -> Callable[[int], Request]:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions or (("three", 0),):
        topics.setdefault(topic, []).append(partition)
    wanted = [Topic(name=topic, partitions=numbers) for topic, numbers in topics.items()]

    def request(version: int) -> Request:
        if version < 4:
            return AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=name,
                v3_and_below_producer_id=id,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=wanted,
            )
        one = Transaction(
            transactional_id=name, producer_id=id, producer_epoch=epoch, verify_only=verify, topics=wanted
        )
        return AddPartitionsToTxnRequest(transactions=[one])

    return request


def offsets(group: str = "<name>", name: str = "<name>", id: Any = ID, epoch: Any = EPOCH) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(transactional_id=name, producer_id=id, producer_epoch=epoch, group_id=group)


def end(commit: bool = True, name: str = "<name>", id: Any = ID, epoch: Any = EPOCH) -> EndTxnRequest:
    return EndTxnRequest(transactional_id=name, producer_id=id, producer_epoch=epoch, committed=commit)


def describe(*names: str) -> DescribeTransactionsRequest:
    return DescribeTransactionsRequest(transactional_ids=list(names or ("<name>",)))


def over() -> Step:
    """Return a step that waits until all markers are written."""
    return Step(describe(), until=lambda answer: not answer.transaction_states[0].transaction_state.startswith("Prep"))


def listed(states: Sequence[str] = (), **options: Any) -> Callable[[int], Request]:
    """Return a ListTransactions request for the transactions of this comparison only."""
    return lambda version: ListTransactionsRequest(state_filters=list(states), producer_id_filters=[ID], **options)


def of(name: str, *steps: Any, **options: Any) -> Case:
    """Make a test case that runs `steps` and then describes the transaction.

    The times in the description are not compared.
    """
    about = options.pop("about")
    may_differ = ("producer_id", "transaction_start_time_ms")
    return case(name, *steps, over(), api_key=about.api_key, may_differ=may_differ, **options)


def starting(name: str, *steps: Any, **options: Any) -> Case:
    return of(name, *steps, about=InitProducerIdRequest, **options)


def adding(name: str, *steps: Any, **options: Any) -> Case:
    return of(name, init(), *steps, about=AddPartitionsToTxnRequest, **options)


def ending(name: str, *steps: Any, **options: Any) -> Case:
    return of(name, init(), *steps, about=EndTxnRequest, **options)


STARTING = [
    starting("transactional", init()),
    *(starting(f"transactional, timeout {ms}", init(timeout=ms)) for ms in (0, -1, 1, 900_000, 900_001, 2**31 - 1)),
    starting("transactional, twice", init(), init()),
    starting("transactional, other timeout", init(), init(timeout=5_000)),
    starting("transactional, goes on", init(), again(), versions="3+"),
    starting("transactional, goes on twice with the same", init(), again(), again(), versions="3+"),
    starting("transactional, goes on after another", init(), ask_for_id(), again(), versions="3+"),
    starting("transactional, goes on after two", init(), ask_for_id(), ask_for_id(), again(), versions="3+"),
    *(
        starting(f"transactional, unknown and {what}", init(producer_id=id, producer_epoch=epoch), versions="3+")
        for what, id, epoch in (("known id", 4_000_711, 3), ("id without epoch", 5, -1), ("epoch without id", -1, 5))
    ),
    starting(
        "transactional, goes on as another", init(), ask_for_id(producer_id=OTHER_ID, producer_epoch=0), versions="3+"
    ),
    starting("transactional, goes on later", init(), ask_for_id(producer_id=ID, producer_epoch=LATER), versions="3+"),
    starting("transactional, one is open", init(), add(), ask_for_id(), init()),
    starting("transactional, one is open and it knows", init(), add(), again(), init(), versions="3+"),
    starting("transactional, after a commit", init(), add(), end(), over(), init()),
    starting("transactional, goes on after a commit", init(), add(), end(), over(), again(), versions="3+"),
]
ADDING = [
    adding("good", add()),
    adding("again", add(), add()),
    adding("another", add(), add(("two", 1), ("three", 2))),
    adding("no topics", lambda version: _without_topics(version)),
    adding("unknown topic", add(("nobody", 0))),
    adding("unknown partition", add(("three", 0), ("three", 7))),
    adding("known and unknown", add(("three", 0), ("nobody", 0), ("two", 1))),
    adding("negative partition", add(("three", -1))),
    adding("internal topic", add(("__consumer_offsets", 0))),
    adding("unknown id", add(name="<name>-nobody")),
    adding("empty id", add(name="")),
    adding("other producer", add(id=OTHER_ID)),
    adding("no producer", add(id=-1)),
    adding("earlier epoch", add(epoch=EARLIER)),
    adding("later epoch", add(epoch=LATER)),
    adding("verified, not added", add(verify=True), versions="4+"),
    adding("verified", add(), add(("three", 0), ("three", 1), verify=True), versions="4+"),
    adding("verified, earlier epoch", add(epoch=EARLIER, verify=True), versions="4+"),
    adding("verified, other producer", add(id=OTHER_ID, verify=True), versions="4+"),
    adding("verified, unknown id", add(name="<name>-nobody", verify=True), versions="4+"),
    adding("verified, empty id", add(name="", verify=True), versions="4+"),
    adding("verified, unknown topic", add(("nobody", 0), verify=True), versions="4+"),
    adding("no transactions", AddPartitionsToTxnRequest(), versions="4+"),
    adding("after a commit, the old epoch", add(), end(), over(), add()),
]


def _without_topics(version: int) -> Request:
    request: Any = add()(version)
    if version < 4:
        request.v3_and_below_topics = []
    else:
        request.transactions[0].topics = []
    result: Request = request
    return result


OFFSETS = [
    of(name, init(), *steps, about=AddOffsetsToTxnRequest)
    for name, *steps in (
        ("good", offsets()),
        ("empty group", offsets("")),
        ("twice", offsets(), offsets()),
        ("unknown id", offsets(name="<name>-nobody")),
        ("empty id", offsets(name="")),
        ("other producer", offsets(id=OTHER_ID)),
        ("earlier epoch", offsets(epoch=EARLIER)),
        ("later epoch", offsets(epoch=LATER)),
    )
]
ENDING = [
    *(
        each
        for commit, what in ((True, "commit"), (False, "abort"))
        for each in (
            ending(what, add(), end(commit)),
            ending(f"{what} of nothing", end(commit)),
            ending(f"{what}, twice", add(), end(commit), over(), end(commit)),
            ending(f"{what}, then the other", add(), end(commit), over(), end(not commit)),
            ending(f"{what}, then with the next epoch", add(), end(commit), over(), end(commit, epoch=LATER)),
            ending(
                f"{what}, then the other, with the next epoch", add(), end(commit), over(), end(not commit, epoch=LATER)
            ),
            ending(f"{what}, earlier epoch", add(), end(commit, epoch=EARLIER)),
            ending(f"{what}, later epoch", add(), end(commit, epoch=LATER)),
            ending(f"{what}, other producer", add(), end(commit, id=OTHER_ID)),
            ending(f"{what}, unknown id", add(), end(commit, name="<name>-nobody")),
            ending(f"{what}, empty id", add(), end(commit, name="")),
            ending(f"{what} of offsets", offsets(), end(commit)),
        )
    ),
    ending("after the producer is shut out", add(), init(), end(epoch=EARLIER)),
]
DESCRIBING = [
    case("unknown", describe("<name>"), **OWN_IDS),
    case("empty", describe(""), **OWN_IDS),
    case("none", DescribeTransactionsRequest(), **OWN_IDS),
    case("new", init(), describe(), **OWN_IDS),
    case("new and unknown", init(), describe("<name>", "<name>-nobody"), **OWN_IDS),
    case(
        "open",
        init(),
        add(("three", 0), ("three", 2), ("two", 1)),
        describe(),
        may_differ=("producer_id", "transaction_start_time_ms"),
    ),
]
LISTING = [
    case("of one producer", init(), listed(), **OWN_IDS),
    case("of a state", init(), listed(["Empty"]), **OWN_IDS),
    case("of another state", init(), listed(["Ongoing", "CompleteAbort"]), **OWN_IDS),
    case("of unknown states", init(), listed(["empty", "Nothing", "Nothing", ""]), **OWN_IDS),
    case("of a dead state", init(), listed(["Dead", "PrepareEpochFence"]), **OWN_IDS),
    case("of nobody", ListTransactionsRequest(producer_id_filters=[-1, 2**62]), **OWN_IDS),
    *(
        case(f"that last {ms} ms", init(), add(), listed(duration_filter=ms), versions="1+", **OWN_IDS)
        for ms in (-1, 10**9)
    ),
    case("that last 10^9 ms, not begun", init(), listed(duration_filter=10**9), versions="1+", **OWN_IDS),
    *(
        case(f"pattern {number}: {pattern}", init(), listed(transactional_id_pattern=pattern), versions="2+", **OWN_IDS)
        for number, pattern in enumerate(("", ".*", "<name>", "L.*", "nobody", "(", "a{2", "List.*v[0-9]"), 1)
    ),
]
CASES: list[Case] = [*STARTING, *ADDING, *OFFSETS, *ENDING, *DESCRIBING, *LISTING]
