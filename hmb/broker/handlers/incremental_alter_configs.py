"""IncrementalAlterConfigs: change single settings of topics, brokers, loggers, groups and client metrics.

Versions: 0-1; version 1 uses the flexible encoding (KIP-482).
Permissions: ALTER_CONFIGS on the topic or group; for other resources, on the cluster.
Behavior: the request contains changes of settings:
    - *Operations.* SET sets a value. DELETE resets a setting to its default. APPEND adds items to a list, and
      SUBTRACT removes items. The broker stores each item of a list only once.
    - *Operations for lists.* If a setting is not a list, APPEND and SUBTRACT get INVALID_CONFIG. For the level
      of a logger, APPEND and SUBTRACT get INVALID_REQUEST.
    - *All or none.* Each resource, for example a topic, has its own error code. If one change of a resource is
      invalid, the broker makes no change of this resource. When the broker sends the response, the new settings
      are in use. They are also on disk, except for the levels of loggers.
    - *Invalid values.* An invalid value gets INVALID_CONFIG for a topic or a group, and INVALID_REQUEST for a
      broker. A null value gets INVALID_REQUEST for every resource, except in a DELETE.
    - *Invalid requests.* A resource gets INVALID_REQUEST if the request contains the resource twice, one of its
      settings twice, or an unknown operation.
    - *Fixed settings.* The change of a broker's setting gets INVALID_REQUEST if the setting cannot change while
      the broker runs.
Version notes: none. The versions differ only in their encoding.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.config.keys import split_list
from hmb.broker.config.resources import Resource, alter_each
from hmb.broker.context import RequestContext
from hmb.protocol.enums import ConfigOperation, ConfigType, ResourceType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

Wanted = IncrementalAlterConfigsRequest.AlterConfigsResource
Change = Wanted.AlterableConfig
ResourceResponse = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse


def handle(request: IncrementalAlterConfigsRequest, context: RequestContext) -> IncrementalAlterConfigsResponse:
    responses = alter_each(
        request.resources, ResourceResponse, _changed, context.broker, validate_only=request.validate_only
    )
    return IncrementalAlterConfigsResponse(responses=responses)


def _changed(wanted: Wanted, resource: Resource) -> dict[str, str]:
    """Return all settings that the resource will have after the changes in the request."""
    configs = dict(resource.altered)
    if len({change.name for change in wanted.configs}) < len(wanted.configs):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the request contains a setting twice")
    for change in wanted.configs:
        try:
            operation = ConfigOperation(change.config_operation)
        except ValueError:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"operation {change.config_operation} does not exist") from None
        if operation is ConfigOperation.DELETE:
            configs.pop(change.name, None)
        elif change.value is None:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{change.name}: the value is null")
        elif operation is ConfigOperation.SET:
            configs[change.name] = change.value
        elif wanted.resource_type == ResourceType.BROKER_LOGGER:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"{operation.name} changes a list, but the level of a logger is not a list"
            )
        else:
            configs[change.name] = _edited(resource, change.name, operation, change.value)
    return configs


def _edited(resource: Resource, name: str, operation: ConfigOperation, value: str) -> str:
    """Return the new value of a list setting: APPEND adds the items of `value`, and SUBTRACT removes them."""
    entry = next((entry for entry in resource.entries() if entry.key.name == name), None)
    if entry is None or entry.key.type is not ConfigType.LIST:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"{operation.name} changes a list, but {name} is not a list")
    before, items = split_list(entry.value or ""), [item.strip() for item in value.split(",")]
    return ",".join([*before, *items] if operation is ConfigOperation.APPEND else [i for i in before if i not in items])
