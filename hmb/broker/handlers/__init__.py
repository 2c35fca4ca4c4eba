"""One module per API, and the one table of them.

Dispatch, the ApiVersions answer and the documentation all read HANDLERS, so an API is served, advertised and documented
by one line here.  A handler is `handle(request, context) -> response`, or None where no answer is wanted (acks=0).  It
translates: message -> call of the domain (topics, logs) -> message; what the domain raises as KafkaError becomes an
error code in it.

Each handler's docstring has four parts: versions, behaviour, version notes, left out.
"""

from collections.abc import Callable, Mapping
from typing import Any

from hmb.broker.handlers import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_configs,
    alter_partition_reassignments,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_partitions,
    create_topics,
    delete_groups,
    delete_records,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    describe_transactions,
    elect_leaders,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
    txn_offset_commit,
    write_txn_markers,
)
from hmb.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from hmb.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from hmb.protocol.messages.alter_configs import AlterConfigsRequest
from hmb.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from hmb.protocol.messages.api_versions import ApiVersionsRequest
from hmb.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from hmb.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from hmb.protocol.messages.create_partitions import CreatePartitionsRequest
from hmb.protocol.messages.create_topics import CreateTopicsRequest
from hmb.protocol.messages.delete_groups import DeleteGroupsRequest
from hmb.protocol.messages.delete_records import DeleteRecordsRequest
from hmb.protocol.messages.delete_topics import DeleteTopicsRequest
from hmb.protocol.messages.describe_cluster import DescribeClusterRequest
from hmb.protocol.messages.describe_configs import DescribeConfigsRequest
from hmb.protocol.messages.describe_groups import DescribeGroupsRequest
from hmb.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from hmb.protocol.messages.describe_producers import DescribeProducersRequest
from hmb.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from hmb.protocol.messages.describe_transactions import DescribeTransactionsRequest
from hmb.protocol.messages.elect_leaders import ElectLeadersRequest
from hmb.protocol.messages.end_txn import EndTxnRequest
from hmb.protocol.messages.fetch import FetchRequest
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest
from hmb.protocol.messages.heartbeat import HeartbeatRequest
from hmb.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest
from hmb.protocol.messages.join_group import JoinGroupRequest
from hmb.protocol.messages.leave_group import LeaveGroupRequest
from hmb.protocol.messages.list_groups import ListGroupsRequest
from hmb.protocol.messages.list_offsets import ListOffsetsRequest
from hmb.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from hmb.protocol.messages.list_transactions import ListTransactionsRequest
from hmb.protocol.messages.metadata import MetadataRequest
from hmb.protocol.messages.offset_commit import OffsetCommitRequest
from hmb.protocol.messages.offset_delete import OffsetDeleteRequest
from hmb.protocol.messages.offset_fetch import OffsetFetchRequest
from hmb.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from hmb.protocol.messages.produce import ProduceRequest
from hmb.protocol.messages.sync_group import SyncGroupRequest
from hmb.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from hmb.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from hmb.protocol.schema import Request

HANDLERS: Mapping[type[Request], Callable[[Any, Any], Any]] = {
    ProduceRequest: produce.handle,
    FetchRequest: fetch.handle,
    ListOffsetsRequest: list_offsets.handle,
    MetadataRequest: metadata.handle,
    OffsetCommitRequest: offset_commit.handle,
    OffsetFetchRequest: offset_fetch.handle,
    FindCoordinatorRequest: find_coordinator.handle,
    JoinGroupRequest: join_group.handle,
    HeartbeatRequest: heartbeat.handle,
    LeaveGroupRequest: leave_group.handle,
    SyncGroupRequest: sync_group.handle,
    DescribeGroupsRequest: describe_groups.handle,
    ListGroupsRequest: list_groups.handle,
    ApiVersionsRequest: api_versions.handle,
    CreateTopicsRequest: create_topics.handle,
    DeleteTopicsRequest: delete_topics.handle,
    DeleteRecordsRequest: delete_records.handle,
    InitProducerIdRequest: init_producer_id.handle,
    OffsetForLeaderEpochRequest: offset_for_leader_epoch.handle,
    AddPartitionsToTxnRequest: add_partitions_to_txn.handle,
    AddOffsetsToTxnRequest: add_offsets_to_txn.handle,
    EndTxnRequest: end_txn.handle,
    WriteTxnMarkersRequest: write_txn_markers.handle,
    TxnOffsetCommitRequest: txn_offset_commit.handle,
    DescribeConfigsRequest: describe_configs.handle,
    AlterConfigsRequest: alter_configs.handle,
    DescribeLogDirsRequest: describe_log_dirs.handle,
    CreatePartitionsRequest: create_partitions.handle,
    DeleteGroupsRequest: delete_groups.handle,
    ElectLeadersRequest: elect_leaders.handle,
    IncrementalAlterConfigsRequest: incremental_alter_configs.handle,
    AlterPartitionReassignmentsRequest: alter_partition_reassignments.handle,
    ListPartitionReassignmentsRequest: list_partition_reassignments.handle,
    OffsetDeleteRequest: offset_delete.handle,
    DescribeClusterRequest: describe_cluster.handle,
    DescribeProducersRequest: describe_producers.handle,
    DescribeTransactionsRequest: describe_transactions.handle,
    ListTransactionsRequest: list_transactions.handle,
    ConsumerGroupHeartbeatRequest: consumer_group_heartbeat.handle,
    ConsumerGroupDescribeRequest: consumer_group_describe.handle,
    DescribeTopicPartitionsRequest: describe_topic_partitions.handle,
}
