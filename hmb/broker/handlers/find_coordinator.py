"""FindCoordinator: find the broker that coordinates a group or a transactional id.

Versions: 0-6; versions 3 and later use the flexible encoding (KIP-482).
Permissions: DESCRIBE on the group or on the transactional id; CLUSTER_ACTION for share-partitions.
Behavior: this broker coordinates all groups, transactional ids and share-partitions. It stores their state in the
    topics `__consumer_offsets` (groups), `__transaction_state` (transactional ids) and `__share_group_state`
    (share-partitions). If the needed topic does not exist yet, the broker creates it.
Version notes: the client library librdkafka compresses with lz4 only if the broker supports version 0 of this API.
    HMB therefore supports version 0. From version 6 on, a client can ask for the coordinator of a share-partition.
    The key in the request then consists of the group id, the topic id and the partition, separated by colons.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.coordinator.share.coordinator import check_share_key
from hmb.protocol.enums import CoordinatorType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.find_coordinator import (
    FIRST_VERSION_OF_LISTS,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

Coordinator = FindCoordinatorResponse.Coordinator
NO_NODE = -1


def handle(request: FindCoordinatorRequest, context: RequestContext) -> FindCoordinatorResponse:
    if context.version >= FIRST_VERSION_OF_LISTS:
        found = [_find(key, request.key_type, context) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=found)
    one = _find(request.key, request.key_type, context)
    return FindCoordinatorResponse(
        error_code=one.error_code, error_message=one.error_message, node_id=one.node_id, host=one.host, port=one.port
    )


def _find(key: str, key_type: int, context: RequestContext) -> Coordinator:
    coordinator = Coordinator(key=key, node_id=NO_NODE, host="", port=NO_NODE)
    with error_code_in(coordinator):
        if key_type == CoordinatorType.GROUP:
            context.broker.groups.make_topic()
        elif key_type == CoordinatorType.TRANSACTION:
            context.broker.transactions.make_topic()
        elif key_type == CoordinatorType.SHARE and context.version >= FindCoordinatorRequest.FIRST_VERSION_OF_SHARE:
            check_share_key(key)
            context.broker.share.coordinator.make_topic()
        else:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"HMB has no coordinator for key type {key_type}")
        coordinator.node_id = context.broker.config.broker_id
        coordinator.host, coordinator.port = context.listener.advertised_host, context.listener.advertised_port
    return coordinator
