"""DescribeCluster: list the brokers of the cluster, and its controller.

Versions: 0-2; all use the flexible encoding (KIP-482).
Permissions: none; the response contains only operations on the cluster that the client may perform.
Behavior: the response lists only this broker, which is also the controller. It contains the advertised address
    of the listener to which the client has connected. If the client asks for its permissions, the response also
    lists the operations that the client may perform on the cluster. If a request asks for the addresses of
    controllers, the response has the error MISMATCHED_ENDPOINT_TYPE. If the endpoint type is unknown, the
    response has the error UNSUPPORTED_ENDPOINT_TYPE.
Version notes: in version 2, a client can ask for fenced brokers. HMB never has any.
Left out: the rack of the broker. Clients use racks to choose the nearest broker, but HMB has only one broker.
"""

from __future__ import annotations

from hmb.broker.authorized import CLUSTER_OPERATIONS
from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse

BROKERS, CONTROLLERS = 1, 2


def handle(request: DescribeClusterRequest, context: RequestContext) -> DescribeClusterResponse:
    response = DescribeClusterResponse()
    with error_code_in(response):
        if request.endpoint_type == CONTROLLERS:
            raise KafkaError(
                ErrorCode.MISMATCHED_ENDPOINT_TYPE, "this is the endpoint of a broker, not of a controller"
            )
        if request.endpoint_type != BROKERS:
            raise KafkaError(ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"unknown endpoint type {request.endpoint_type}")
        _describe(request, response, context)
    return response


def _describe(request: DescribeClusterRequest, response: DescribeClusterResponse, context: RequestContext) -> None:
    broker, listener = context.broker, context.listener
    response.cluster_id = broker.cluster_id
    response.controller_id = broker.config.broker_id
    response.brokers = [
        DescribeClusterResponse.DescribeClusterBroker(
            broker_id=broker.config.broker_id, host=listener.advertised_host, port=listener.advertised_port
        )
    ]
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
