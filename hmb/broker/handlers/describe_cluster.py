"""DescribeCluster: list the brokers of the cluster, and its controller.

Versions: 0-2; all use the flexible encoding (KIP-482).
Permissions: none; the response contains only operations on the cluster that the client may perform.
Behavior: the list of brokers contains only this broker, which is also the controller. If the client requests it, the
    response also contains the operations that the client may perform on the cluster. The broker's address is the
    advertised address of the listener that the client has connected to. A request for the addresses of controllers gets
    MISMATCHED_ENDPOINT_TYPE. A request for an unknown type of address gets UNSUPPORTED_ENDPOINT_TYPE.
Version notes: none. The versions differ only in their fields. From version 2 on, a client can also ask for fenced
    brokers, which HMB never has.
Left out: racks. A client cannot choose the nearest broker, because HMB has only one broker.
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
