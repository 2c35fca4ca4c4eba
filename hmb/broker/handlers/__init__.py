"""The handlers: one module for each API, and the table of all handlers.

A handler is a function `handle(request, context)`. It calls functions of the domain layer (logs, groups, transactions),
and makes a response from their results. If the domain layer raises KafkaError, the handler puts the error code into the
response. A handler returns a response, a Deferred, or None. A Deferred is a response that must wait, for example until
records are on disk. None means that the client wants no response (acks=0).

The table HANDLERS contains the handler of each API. The broker reads this table to find the handler of a request, and
to list all APIs in the response to ApiVersions. The documentation also uses this table. Before a broker calls a handler
of this table, it calls two functions. `counted` (counting.py) measures the request. `guarded`
(security/acls/guards.py) checks the ACLs, if the broker has an authorizer. If quotas exist, a third function throttles
clients (security/quotas/throttling.py).

Two modules contain functions that several handlers use: shared_responses.py, and share_state_results.py for the states
of share-partitions.

The docstring of each module has four parts. The part "Versions" names the supported versions of the API. "Behavior"
describes the newest version. "Version notes" describes how the broker behaves differently in other versions. The
docstring of the message class describes the fields of each version. "Left out" names the parts of Kafka's behavior that
HMB does not have, and the effect on clients.

The module of a message declares in which versions the message changes. If a version adds a field, handlers get the
number of this version from the declaration of the field (`first_version`). If a change concerns only the behavior, the
message class has a constant with the version.
"""

from collections.abc import Callable, Mapping
from typing import Any

from hmb.broker.handlers import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_share_group_offsets,
    alter_user_scram_credentials,
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_share_group_offsets,
    delete_share_group_state,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_share_group_offsets,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    initialize_share_group_state,
    join_group,
    leave_group,
    list_config_resources,
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
    read_share_group_state,
    read_share_group_state_summary,
    sasl_authenticate,
    sasl_handshake,
    share_acknowledge,
    share_fetch,
    share_group_describe,
    share_group_heartbeat,
    sync_group,
    txn_offset_commit,
    update_features,
    write_share_group_state,
    write_txn_markers,
)
from hmb.protocol.api_keys import ApiKey

HANDLERS: Mapping[ApiKey, Callable[[Any, Any], Any]] = {
    ApiKey.PRODUCE: produce.handle,
    ApiKey.FETCH: fetch.handle,
    ApiKey.LIST_OFFSETS: list_offsets.handle,
    ApiKey.METADATA: metadata.handle,
    ApiKey.OFFSET_COMMIT: offset_commit.handle,
    ApiKey.OFFSET_FETCH: offset_fetch.handle,
    ApiKey.FIND_COORDINATOR: find_coordinator.handle,
    ApiKey.JOIN_GROUP: join_group.handle,
    ApiKey.HEARTBEAT: heartbeat.handle,
    ApiKey.LEAVE_GROUP: leave_group.handle,
    ApiKey.SYNC_GROUP: sync_group.handle,
    ApiKey.DESCRIBE_GROUPS: describe_groups.handle,
    ApiKey.LIST_GROUPS: list_groups.handle,
    ApiKey.SASL_HANDSHAKE: sasl_handshake.handle,
    ApiKey.API_VERSIONS: api_versions.handle,
    ApiKey.CREATE_TOPICS: create_topics.handle,
    ApiKey.DELETE_TOPICS: delete_topics.handle,
    ApiKey.DELETE_RECORDS: delete_records.handle,
    ApiKey.INIT_PRODUCER_ID: init_producer_id.handle,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: offset_for_leader_epoch.handle,
    ApiKey.ADD_PARTITIONS_TO_TXN: add_partitions_to_txn.handle,
    ApiKey.ADD_OFFSETS_TO_TXN: add_offsets_to_txn.handle,
    ApiKey.END_TXN: end_txn.handle,
    ApiKey.WRITE_TXN_MARKERS: write_txn_markers.handle,
    ApiKey.TXN_OFFSET_COMMIT: txn_offset_commit.handle,
    ApiKey.DESCRIBE_ACLS: describe_acls.handle,
    ApiKey.CREATE_ACLS: create_acls.handle,
    ApiKey.DELETE_ACLS: delete_acls.handle,
    ApiKey.DESCRIBE_CONFIGS: describe_configs.handle,
    ApiKey.ALTER_CONFIGS: alter_configs.handle,
    ApiKey.ALTER_REPLICA_LOG_DIRS: alter_replica_log_dirs.handle,
    ApiKey.DESCRIBE_LOG_DIRS: describe_log_dirs.handle,
    ApiKey.SASL_AUTHENTICATE: sasl_authenticate.handle,
    ApiKey.CREATE_PARTITIONS: create_partitions.handle,
    ApiKey.DELETE_GROUPS: delete_groups.handle,
    ApiKey.ELECT_LEADERS: elect_leaders.handle,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: incremental_alter_configs.handle,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: alter_partition_reassignments.handle,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: list_partition_reassignments.handle,
    ApiKey.OFFSET_DELETE: offset_delete.handle,
    ApiKey.DESCRIBE_QUORUM: describe_quorum.handle,
    ApiKey.UPDATE_FEATURES: update_features.handle,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: describe_client_quotas.handle,
    ApiKey.ALTER_CLIENT_QUOTAS: alter_client_quotas.handle,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: describe_user_scram_credentials.handle,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: alter_user_scram_credentials.handle,
    ApiKey.DESCRIBE_CLUSTER: describe_cluster.handle,
    ApiKey.DESCRIBE_PRODUCERS: describe_producers.handle,
    ApiKey.DESCRIBE_TRANSACTIONS: describe_transactions.handle,
    ApiKey.LIST_TRANSACTIONS: list_transactions.handle,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: consumer_group_heartbeat.handle,
    ApiKey.CONSUMER_GROUP_DESCRIBE: consumer_group_describe.handle,
    ApiKey.LIST_CONFIG_RESOURCES: list_config_resources.handle,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: describe_topic_partitions.handle,
    ApiKey.SHARE_GROUP_HEARTBEAT: share_group_heartbeat.handle,
    ApiKey.SHARE_GROUP_DESCRIBE: share_group_describe.handle,
    ApiKey.SHARE_FETCH: share_fetch.handle,
    ApiKey.SHARE_ACKNOWLEDGE: share_acknowledge.handle,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: initialize_share_group_state.handle,
    ApiKey.READ_SHARE_GROUP_STATE: read_share_group_state.handle,
    ApiKey.WRITE_SHARE_GROUP_STATE: write_share_group_state.handle,
    ApiKey.DELETE_SHARE_GROUP_STATE: delete_share_group_state.handle,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: read_share_group_state_summary.handle,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: describe_share_group_offsets.handle,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: alter_share_group_offsets.handle,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: delete_share_group_offsets.handle,
}
