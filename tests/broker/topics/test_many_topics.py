"""Tests of requests for many topics: the broker writes each state file once, not once for each topic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.create_partitions import CreatePartitionsRequest
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.delete_topics import DeleteTopicsRequest
from hmb.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from hmb.protocol.messages.metadata import MetadataRequest
from tests.broker.conftest import Asker
from tests.broker.groups.offset_calls import commit, fetch_group

NAMES = [f"topic-{number}" for number in range(50)]
TOPIC, GROUP, SET = 2, 32, 0
New = CreateTopicsRequest.CreatableTopic
Altered = IncrementalAlterConfigsRequest.AlterConfigsResource


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Counter[str]:
    """Return a counter that counts how often the broker of this test replaces each state file.

    The keys are file names such as `topics.json`. The counter ignores files of the brokers of other tests.
    """
    counts: Counter[str] = Counter()
    rename = Path.rename

    def counting(path: Path, target: Path) -> Path:
        if path.suffix == ".tmp" and path.is_relative_to(tmp_path):
            counts[path.stem] += 1
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", counting)
    return counts


def create(ask: Asker, *names: str, partitions: int = 1) -> list[int]:
    wanted = [New(name=name, num_partitions=partitions, replication_factor=1) for name in names]
    return [answer.error_code for answer in ask(CreateTopicsRequest(topics=wanted), 7).topics]


def test_many_topics_are_created_together(make_asker: Callable[..., Asker], written: Counter[str]) -> None:
    ask = make_asker()
    written.clear()
    assert create(ask, *NAMES) == [0] * len(NAMES)
    assert (written["topics.json"], written["log-start-offset-checkpoint"]) == (1, 1)
    ask.close()
    again = make_asker()
    assert sorted(topic.name for topic in again.broker.topics.all()) == sorted(NAMES)


def test_many_topics_are_deleted_together(make_asker: Callable[..., Asker], written: Counter[str]) -> None:
    """One request deletes many topics, and the broker writes each state file once.

    Before a bug was fixed, the deletion of 3,000 topics took 111 seconds.
    """
    ask = make_asker()
    create(ask, *NAMES, "stays")
    written.clear()
    answers = ask(DeleteTopicsRequest(topic_names=[*NAMES, "nowhere"]), 5).responses
    assert [answer.error_code for answer in answers] == [0] * len(NAMES) + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert written["topics.json"] == 1
    ask.close()
    assert [topic.name for topic in make_asker().broker.topics.all()] == ["stays"]


def test_offsets_of_many_deleted_topics_are_forgotten_those_of_others_stay(make_asker: Callable[..., Asker]) -> None:
    ask = make_asker(offsets_topic_num_partitions="1")
    ask.broker.groups.make_topic()
    create(ask, "a", "b", "c")
    for topic in ("a", "b", "c"):
        assert commit(ask, {0: 7}, topic=topic) == [(0, 0)]
    ask(DeleteTopicsRequest(topic_names=["a", "b"]), 5)
    create(ask, "a")
    found = {topic: fetch_group(ask, [0], 7, "g", topic) for topic in ("a", "b", "c")}
    assert {topic: answer.topics[0].partitions[0].committed_offset for topic, answer in found.items()} == {
        "a": -1,
        "b": -1,
        "c": 7,
    }


def test_many_topics_get_more_partitions_together(make_asker: Callable[..., Asker], written: Counter[str]) -> None:
    ask = make_asker()
    create(ask, *NAMES)
    written.clear()
    wanted = [
        CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=2 if name != NAMES[3] else 1, assignments=None)
        for name in NAMES
    ]
    answers = ask(CreatePartitionsRequest(topics=wanted), 3).results
    refused = {answer.name: answer.error_code for answer in answers if answer.error_code}
    assert refused == {NAMES[3]: ErrorCode.INVALID_PARTITIONS}
    assert (written["topics.json"], written["log-start-offset-checkpoint"]) == (1, 1)
    ask.close()
    counts = Counter(len(topic.partitions) for topic in make_asker().broker.topics.all())
    assert counts == {2: len(NAMES) - 1, 1: 1}


@pytest.mark.parametrize(
    ("kind", "setting", "value", "file"),
    [(TOPIC, "retention.ms", "70000", "topics.json"), (GROUP, "consumer.session.timeout.ms", "50000", "configs.json")],
    ids=["topics", "groups"],
)
def test_many_resources_are_altered_together(
    ask: Asker, written: Counter[str], kind: int, setting: str, value: str, file: str
) -> None:
    create(ask, *NAMES)
    written.clear()
    good = [Altered.AlterableConfig(name=setting, config_operation=SET, value=value)]
    bad = [Altered.AlterableConfig(name=setting, config_operation=SET, value="often")]
    resources = [Altered(resource_type=kind, resource_name=name, configs=good) for name in NAMES]
    resources[5].configs = bad
    answers = ask(IncrementalAlterConfigsRequest(resources=resources), 1).responses
    refused = {answer.resource_name: answer.error_code for answer in answers if answer.error_code}
    assert refused == {NAMES[5]: ErrorCode.INVALID_CONFIG}
    assert written[file] == 1
    if kind == TOPIC:
        assert Counter(topic.configs.get(setting) for topic in ask.broker.topics.all()) == {value: 49, None: 1}
    else:
        assert ask.broker.configs.altered_of_group(NAMES[4]) == {setting: value}
        assert ask.broker.configs.altered_of_group(NAMES[5]) == {}


def test_new_topics_of_one_request_that_collide_in_metric_names(ask: Asker) -> None:
    assert create(ask, "a.b", "a_b", "c") == [0, ErrorCode.INVALID_TOPIC_EXCEPTION, 0]
    assert create(ask, "a_b") == [ErrorCode.INVALID_TOPIC_EXCEPTION]
    ask(DeleteTopicsRequest(topic_names=["a.b"]), 5)
    assert create(ask, "a_b") == [0]


def test_one_request_makes_at_most_10000_partitions(ask: Asker) -> None:
    """The broker refuses a request to create topics with more than 10,000 partitions in total, as Kafka does."""
    assert create(ask, "a", "b", partitions=5_001) == [ErrorCode.POLICY_VIOLATION] * 2
    assert ask.broker.topics.all() == []


def test_metadata_makes_100_partitions_in_one_request_and_more_in_the_next(make_asker: Callable[..., Asker]) -> None:
    ask = make_asker(num_partitions="4")
    request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in [*NAMES[:30], "/"]])
    for missing in (5, 0):
        codes = Counter(topic.error_code for topic in ask(request, 9).topics)
        assert codes[ErrorCode.LEADER_NOT_AVAILABLE] == missing
        assert codes == {0: 30 - missing, ErrorCode.INVALID_TOPIC_EXCEPTION: 1} | (
            {ErrorCode.LEADER_NOT_AVAILABLE: missing} if missing else {}
        )
