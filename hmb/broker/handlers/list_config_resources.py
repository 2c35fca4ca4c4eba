"""ListConfigResources: list the resources that have settings, such as topics and brokers.

Versions: 0-1; all use the flexible encoding (KIP-482).
Permissions: DESCRIBE_CONFIGS on the cluster.
Behavior: the request contains a list of resource types. If the list is empty, the response contains resources
    of all types: the topics, the groups for which a client has altered a setting, the client metrics, and the
    broker. The response lists the broker twice: as BROKER (for its settings) and as BROKER_LOGGER (for its log
    levels). If the request contains an unknown type, the response contains only the error UNSUPPORTED_VERSION.
Version notes: version 0 lists only client metrics.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from collections.abc import Iterable

from hmb.broker.context import BrokerContext, RequestContext
from hmb.protocol.enums import ResourceType
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.list_config_resources import (
    FIRST_LIST_CONFIG_RESOURCES_VERSION_OF_TYPES,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

Listed = ListConfigResourcesResponse.ConfigResource
# The response lists the resources in the order of these types, as in Kafka.
ORDER = (
    ResourceType.GROUP,
    ResourceType.CLIENT_METRICS,
    ResourceType.BROKER_LOGGER,
    ResourceType.BROKER,
    ResourceType.TOPIC,
)


def handle(request: ListConfigResourcesRequest, context: RequestContext) -> ListConfigResourcesResponse:
    wanted = set(request.resource_types) or set(ResourceType)
    if context.version < FIRST_LIST_CONFIG_RESOURCES_VERSION_OF_TYPES:
        wanted = {ResourceType.CLIENT_METRICS}
    if not wanted <= set(ResourceType):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    resources = [
        Listed(resource_name=name, resource_type=type)
        for type in ORDER
        if type in wanted
        for name in _names(type, context.broker)
    ]
    return ListConfigResourcesResponse(config_resources=resources)


def _names(type: ResourceType, broker: BrokerContext) -> Iterable[str]:
    match type:
        case ResourceType.TOPIC:
            return [topic.name for topic in broker.topics.all()]
        case ResourceType.BROKER | ResourceType.BROKER_LOGGER:
            return [broker.configs.name]
        case ResourceType.GROUP:
            return broker.configs.altered_groups()
        case ResourceType.CLIENT_METRICS:
            return broker.configs.client_metrics
