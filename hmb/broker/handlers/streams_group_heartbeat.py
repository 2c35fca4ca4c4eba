"""StreamsGroupHeartbeat: join, leave or stay in a streams group (KIP-1071).

Versions: 0; in the flexible encoding (KIP-482).
Permissions: READ on the group, DESCRIBE on each topic; CREATE for new internal topics.
Behavior: the broker assigns the tasks of a Kafka Streams application to its members (coordinator/streams/). If the
    tasks of the member have changed, the response contains the new tasks. The response also contains a status for each
    problem, for example MISSING_SOURCE_TOPICS. If internal topics are missing, the broker creates them, and the next
    heartbeat finds them. The broker sends the response after the changes of the group are on disk.
Version notes: none.
Left out: static members, warm-up tasks, offsets of tasks, and regular expressions for source topics. A client that
    sends one of them gets INVALID_REQUEST, as in Kafka 4.3. Such an application must use the classic protocol. A
    topology with more than 100,000 tasks gets STREAMS_INVALID_TOPOLOGY, and the application cannot run. Kafka has no
    such limit.
"""

from __future__ import annotations

from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.handlers.streams_internal_topics import create_internal_topics
from hmb.protocol.enums import StreamsStatus
from hmb.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest, StreamsGroupHeartbeatResponse


def handle(request: StreamsGroupHeartbeatRequest, context: RequestContext) -> StreamsGroupHeartbeatResponse:
    response = StreamsGroupHeartbeatResponse()
    with error_code_in(response):
        response, missing = context.broker.streams.heartbeat(request, context.client_id, context.client_host)
        if missing and (problem := create_internal_topics(missing, context)):
            for status in response.status or ():
                if status.status_code == StreamsStatus.MISSING_INTERNAL_TOPICS:
                    status.status_detail += f"; {problem}."
    return response
