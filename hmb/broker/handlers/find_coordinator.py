"""FindCoordinator: find the broker that coordinates a group or a transactional id.

Versions: 0-6, flexible from 3.
Behavior: this broker is the coordinator of all groups and transactional ids. A client that looks for a coordinator
    will use it next. So the broker creates the coordinator's topic, `__consumer_offsets` or `__transaction_state`, if
    the topic does not exist.
Version notes: librdkafka takes version 0 as a sign that the broker supports lz4, and compresses with lz4 only then.
    From version 4 on a request may contain several keys.
Left out: share groups, which get INVALID_REQUEST.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import answering
from hmb.protocol.enums import CoordinatorType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

Coordinator = FindCoordinatorResponse.Coordinator
FIRST_VERSION_OF_LISTS = FindCoordinatorRequest.first_version("coordinator_keys")
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
    answer = Coordinator(key=key, node_id=NO_NODE, host="", port=NO_NODE)
    with answering(answer):
        if key_type == CoordinatorType.GROUP:
            context.broker.groups.make_topic()
        elif key_type == CoordinatorType.TRANSACTION:
            context.broker.transactions.make_topic()
        else:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"HMB has no coordinator for key type {key_type}")
        answer.node_id = context.broker.config.broker_id
        answer.host, answer.port = context.listener.advertised_host, context.listener.advertised_port
    return answer
