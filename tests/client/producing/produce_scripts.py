"""Scripted responses of a broker to the requests of a producer."""

from __future__ import annotations

from collections.abc import Sequence

from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from hmb.protocol.messages.metadata import MetadataRequest, MetadataResponse
from hmb.protocol.messages.produce import ProduceRequest, ProduceResponse
from hmb.protocol.schema import Request, Response
from hmb.records import RecordBatch, parse_batch, read_records
from tests.client.scripted_broker import HangUp, ScriptedBroker

TopicResponse = ProduceResponse.TopicProduceResponse
PartitionResponse = TopicResponse.PartitionProduceResponse


def produced(error: ErrorCode = ErrorCode.NONE, offset: int = 0, guilty: dict[int, str] | None = None) -> Response:
    """Return the response to one batch for t-0."""
    errors = [
        PartitionResponse.BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
        for index, message in (guilty or {}).items()
    ]
    partition = PartitionResponse(index=0, error_code=error, base_offset=offset, record_errors=errors)
    return ProduceResponse(responses=[TopicResponse(name="t", partition_responses=[partition])])


class Script:
    """Answers each Produce request with the next item of `answers`. After the last item, every request succeeds.

    If an item is True, the broker closes the connection instead of answering.
    """

    def __init__(self, *answers: Response | bool) -> None:
        self.answers = list(answers)
        self.producer_ids = 0

    def __call__(self, request: Request, version: int) -> Response | None:
        if isinstance(request, InitProducerIdRequest):
            self.producer_ids += 1
            return InitProducerIdResponse(producer_id=100 + self.producer_ids)
        assert isinstance(request, ProduceRequest)
        answer = self.answers.pop(0) if self.answers else delivered(request)
        if isinstance(answer, bool):
            raise HangUp
        return answer


def delivered(request: ProduceRequest) -> Response:
    return ProduceResponse(
        responses=[
            TopicResponse(
                name=topic.name,
                partition_responses=[PartitionResponse(index=data.index) for data in topic.partition_data],
            )
            for topic in request.topic_data
        ]
    )


def batches(broker: ScriptedBroker) -> list[RecordBatch]:
    """Return all batches that the broker has received, in order."""
    found = []
    for request, _ in broker.requests:
        if isinstance(request, ProduceRequest):
            for topic in request.topic_data:
                for data in topic.partition_data:
                    assert isinstance(data.records, memoryview)
                    batch = parse_batch(data.records)
                    assert isinstance(batch, RecordBatch)
                    found.append(batch)
    return found


def values(broker: ScriptedBroker) -> list[list[bytes | None]]:
    """Return the values of the records in each batch that the broker has received."""
    return [[record.value for record in read_records(batch.view)] for batch in batches(broker)]


def numbers(broker: ScriptedBroker) -> list[tuple[int, int, int]]:
    """Return the producer id, the epoch and the base sequence of each batch that the broker has received."""
    return [(batch.producer_id, batch.producer_epoch, batch.base_sequence) for batch in batches(broker)]


class Leaders:
    """The leaders of the partitions of topic "t". All brokers return these leaders in their Metadata responses."""

    def __init__(self, *brokers: ScriptedBroker, leaders: Sequence[int]) -> None:
        self.brokers = brokers
        self.leaders = list(leaders)  # the number of the leading broker, by partition
        self.epoch = 0
        for broker in brokers:
            broker.metadata = self.metadata

    def move(self, partition: int, leader: int) -> None:
        self.leaders[partition] = leader
        self.epoch += 1

    def metadata(self, request: MetadataRequest) -> MetadataResponse:
        topic = MetadataResponse.MetadataResponseTopic
        partitions = [
            topic.MetadataResponsePartition(partition_index=index, leader_id=leader, leader_epoch=self.epoch)
            for index, leader in enumerate(self.leaders)
        ]
        return MetadataResponse(
            brokers=[
                MetadataResponse.MetadataResponseBroker(node_id=number, host="127.0.0.1", port=broker.port)
                for number, broker in enumerate(self.brokers)
            ],
            topics=[topic(name="t", partitions=partitions)],
        )
