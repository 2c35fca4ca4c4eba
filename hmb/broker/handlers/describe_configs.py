"""DescribeConfigs: the settings of topics, brokers, loggers and groups, and where each value comes from.

Versions: 0-4, flexible from 4.
Behaviour: each resource has its own error code.  The answer contains all settings, or those that the request names.
    Names that the broker does not know are left out, which is what tools expect that ask for newer settings.  A broker
    is this one, or "" for what was set for all.  Settings that a tool may not see (sensitive) have null for a value:
    those that the broker does not know.
Version notes: 0 only says whether a value is the default; 1 brought the source and the synonyms, all places where the
    value could come from; 3 type and documentation.
Left out: client metrics (INVALID_REQUEST).
"""

from __future__ import annotations

from hmb.broker.config import resources as config_resources
from hmb.broker.config.entries import ConfigEntry
from hmb.broker.context import RequestContext
from hmb.broker.errors import answering
from hmb.broker.handlers.shared_answers import check_repetitions
from hmb.protocol.enums import ConfigSource, ResourceType
from hmb.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse

Result = DescribeConfigsResponse.DescribeConfigsResult
Entry = Result.DescribeConfigsResourceResult
Synonym = Entry.DescribeConfigsSynonym


def handle(request: DescribeConfigsRequest, context: RequestContext) -> DescribeConfigsResponse:
    check_repetitions((each.resource_type, each.resource_name) for each in request.resources)
    response = DescribeConfigsResponse()
    # Most topics have the same settings.  The answer holds them once in memory, and they are looked up once.
    described: dict[object, list[Entry]] = {}
    for wanted in request.resources:
        result = Result(resource_type=wanted.resource_type, resource_name=wanted.resource_name)
        response.results.append(result)
        with answering(result):
            resource = config_resources.find(wanted.resource_type, wanted.resource_name, context.broker)
            # An empty list of names asks for all, too.
            names = frozenset(wanted.configuration_keys or ())
            is_broker = wanted.resource_type == ResourceType.BROKER
            alike = wanted.resource_name if is_broker else frozenset(resource.altered.items())
            key = wanted.resource_type, alike, names
            if key not in described:
                found = [entry for entry in resource.entries() if not names or entry.key.name in names]
                described[key] = [_entry(entry, request) for entry in found]
            result.configs = described[key]
    return response


def _entry(entry: ConfigEntry, request: DescribeConfigsRequest) -> Entry:
    return Entry(
        name=entry.key.name,
        value=entry.value,
        read_only=entry.read_only,
        is_default=entry.source == ConfigSource.DEFAULT_CONFIG,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=[Synonym(name=s.name, value=s.value, source=s.source) for s in entry.synonyms]
        if request.include_synonyms
        else [],
        config_type=entry.key.type,
        documentation=entry.key.doc if request.include_documentation else None,
    )
