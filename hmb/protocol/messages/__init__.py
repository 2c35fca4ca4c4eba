"""Kafka's messages: one file an API, one class a request and a response, all versions in one class.

`REQUESTS` and `RESPONSES` find the class by the api key, as a header gives it.
"""

from hmb.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from hmb.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from hmb.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from hmb.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from hmb.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from hmb.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from hmb.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from hmb.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from hmb.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from hmb.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from hmb.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from hmb.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from hmb.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from hmb.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from hmb.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from hmb.protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from hmb.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from hmb.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from hmb.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from hmb.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from hmb.protocol.messages.fetch import FetchRequest, FetchResponse
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from hmb.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from hmb.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from hmb.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from hmb.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from hmb.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from hmb.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from hmb.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from hmb.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from hmb.protocol.messages.metadata import MetadataRequest, MetadataResponse
from hmb.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from hmb.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from hmb.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from hmb.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from hmb.protocol.messages.produce import ProduceRequest, ProduceResponse
from hmb.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from hmb.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from hmb.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from hmb.protocol.schema import Request, Response

MESSAGES: list[tuple[type[Request], type[Response]]] = [
    (ProduceRequest, ProduceResponse),
    (FetchRequest, FetchResponse),
    (ListOffsetsRequest, ListOffsetsResponse),
    (MetadataRequest, MetadataResponse),
    (OffsetCommitRequest, OffsetCommitResponse),
    (OffsetFetchRequest, OffsetFetchResponse),
    (FindCoordinatorRequest, FindCoordinatorResponse),
    (JoinGroupRequest, JoinGroupResponse),
    (HeartbeatRequest, HeartbeatResponse),
    (LeaveGroupRequest, LeaveGroupResponse),
    (SyncGroupRequest, SyncGroupResponse),
    (DescribeGroupsRequest, DescribeGroupsResponse),
    (ListGroupsRequest, ListGroupsResponse),
    (ApiVersionsRequest, ApiVersionsResponse),
    (CreateTopicsRequest, CreateTopicsResponse),
    (DeleteTopicsRequest, DeleteTopicsResponse),
    (DeleteRecordsRequest, DeleteRecordsResponse),
    (InitProducerIdRequest, InitProducerIdResponse),
    (OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse),
    (AddPartitionsToTxnRequest, AddPartitionsToTxnResponse),
    (AddOffsetsToTxnRequest, AddOffsetsToTxnResponse),
    (EndTxnRequest, EndTxnResponse),
    (WriteTxnMarkersRequest, WriteTxnMarkersResponse),
    (TxnOffsetCommitRequest, TxnOffsetCommitResponse),
    (DescribeConfigsRequest, DescribeConfigsResponse),
    (AlterConfigsRequest, AlterConfigsResponse),
    (DescribeLogDirsRequest, DescribeLogDirsResponse),
    (CreatePartitionsRequest, CreatePartitionsResponse),
    (DeleteGroupsRequest, DeleteGroupsResponse),
    (ElectLeadersRequest, ElectLeadersResponse),
    (IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse),
    (AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse),
    (ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse),
    (OffsetDeleteRequest, OffsetDeleteResponse),
    (DescribeClusterRequest, DescribeClusterResponse),
    (DescribeProducersRequest, DescribeProducersResponse),
    (DescribeTransactionsRequest, DescribeTransactionsResponse),
    (ListTransactionsRequest, ListTransactionsResponse),
    (ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse),
    (ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse),
    (DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse),
]

REQUESTS: dict[int, type[Request]] = {request.api_key: request for request, _ in MESSAGES}
RESPONSES: dict[int, type[Response]] = {response.api_key: response for _, response in MESSAGES}


def api_name(message: type[Request] | type[Response]) -> str:
    """The name of an API as Kafka's documentation writes it: Produce, ListOffsets ..."""
    return message.__name__.removesuffix("Request").removesuffix("Response")
