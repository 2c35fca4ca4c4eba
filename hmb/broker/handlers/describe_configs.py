"""DescribeConfigs: return settings of topics, brokers, loggers and groups, with the source of each value.

Versions: 0-4, flexible from 4.
Behavior: each resource has its own error code. The response contains all settings, or the requested ones. Unknown
    settings are left out, because tools also request settings of newer brokers. The name of a broker resource is this
    broker's id, or "" for the settings of all brokers. A sensitive setting has a null value; every setting that the
    broker does not know counts as sensitive.
Version notes: version 0 only states whether a value is the default. Version 1 adds the source and the synonyms, which
    are all sources that have a value. Version 3 adds the type and the documentation.
Left out: settings of client metrics (INVALID_REQUEST).
"""

from __future__ import annotations

from hmb.broker.config import resources as config_resources
from hmb.broker.config.entries import ConfigDescription
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
    # Most topics have the same settings. The handler builds the list of these settings once, and the answers for all
    # such topics share it.
    described: dict[object, list[Entry]] = {}
    for wanted in request.resources:
        result = Result(resource_type=wanted.resource_type, resource_name=wanted.resource_name)
        response.results.append(result)
        with answering(result):
            resource = config_resources.find(wanted.resource_type, wanted.resource_name, context.broker)
            # An empty list of names selects all settings, as null does.
            names = frozenset(wanted.configuration_keys or ())
            is_broker = wanted.resource_type == ResourceType.BROKER
            alike = wanted.resource_name if is_broker else frozenset(resource.altered.items())
            key = wanted.resource_type, alike, names
            if key not in described:
                found = [entry for entry in resource.entries() if not names or entry.key.name in names]
                described[key] = [_entry(entry, request) for entry in found]
            result.configs = described[key]
    return response


def _entry(entry: ConfigDescription, request: DescribeConfigsRequest) -> Entry:
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
