"""IncrementalAlterConfigs: change single settings of topics, brokers, loggers and groups.

Versions: 0-1, flexible from 1.
Behavior: each resource has its own error code, and is changed completely or not at all. The change is on disk and
    effective when the response is sent. SET sets a value, and DELETE returns to the default. APPEND and SUBTRACT add
    items to a list and remove them; a list contains each item once (INVALID_CONFIG for other types). INVALID_REQUEST is
    the error for a resource or a setting that the request contains twice, for a null value, and for an unknown
    operation. An impossible value gets INVALID_CONFIG for a topic, and INVALID_REQUEST for a broker. A setting that
    cannot be altered while the broker runs gets INVALID_REQUEST, too.
Version notes: only the encoding differs.
Left out: settings of client metrics (INVALID_REQUEST).
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
Answer = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse


def handle(request: IncrementalAlterConfigsRequest, context: RequestContext) -> IncrementalAlterConfigsResponse:
    answers = alter_each(request.resources, Answer, _changed, context.broker, validate_only=request.validate_only)
    return IncrementalAlterConfigsResponse(responses=answers)


def _changed(wanted: Wanted, resource: Resource) -> dict[str, str]:
    """Return all settings of the resource after the changes."""
    configs = dict(resource.altered)
    if len({change.name for change in wanted.configs}) < len(wanted.configs):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "a setting is named twice")
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
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{operation.name} is for lists, and a level is not a list")
        else:
            configs[change.name] = _edited(resource, change.name, operation, change.value)
    return configs


def _edited(resource: Resource, name: str, operation: ConfigOperation, value: str) -> str:
    """Return the value of a list setting after the items of `value` were added or removed."""
    entry = next((entry for entry in resource.entries() if entry.key.name == name), None)
    if entry is None or entry.key.type is not ConfigType.LIST:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"{name} is not a list: {operation.name} is for lists")
    before, items = split_list(entry.value or ""), [item.strip() for item in value.split(",")]
    return ",".join([*before, *items] if operation is ConfigOperation.APPEND else [i for i in before if i not in items])
