"""DescribeConfigs: return settings of topics, brokers, loggers, groups and client metrics, and their sources.

Versions: 0-4; version 4 uses the flexible encoding (KIP-482).
Permissions: DESCRIBE_CONFIGS on the topic or group; for other resources, on the cluster.
Behavior: each resource has its own error code. These rules apply to each resource:
    - *Settings.* If the request names settings, the response contains only these settings. Otherwise it
      contains all settings of the resource. If the resource has no setting with a requested name, the
      response leaves out this name. This is no error, because tools also request settings of newer brokers.
    - *Brokers.* To get the settings of this broker, a client sends the broker's id. To get the settings
      that clients have set for all brokers, it sends the id "".
    - *Unknown settings.* A client may have stored a value for a setting that the broker does not know. The
      response lists this setting with the value null, because the value may be secret.
    - *Defaults.* Some defaults of HMB differ from Kafka's. For these settings, the response contains HMB's
      value with the source STATIC_BROKER_CONFIG. If the client requests synonyms (the setting's values from
      all sources), they also contain Kafka's default.
Version notes: version 1 adds the synonyms and the source of each value. Version 3 adds the type and the
    documentation of each setting.
Left out: nothing. HMB supports the whole API.
"""

from __future__ import annotations

from hmb.broker.config import resources as config_resources
from hmb.broker.config.entries import ConfigDescription
from hmb.broker.context import RequestContext
from hmb.broker.errors import error_code_in
from hmb.broker.shared_responses import check_repetitions
from hmb.protocol.enums import ConfigSource, ResourceType
from hmb.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse

Result = DescribeConfigsResponse.DescribeConfigsResult
Entry = Result.DescribeConfigsResourceResult
Synonym = Entry.DescribeConfigsSynonym


def handle(request: DescribeConfigsRequest, context: RequestContext) -> DescribeConfigsResponse:
    check_repetitions((each.resource_type, each.resource_name) for each in request.resources)
    response = DescribeConfigsResponse()
    # Most topics have the same settings. The handler therefore stores each list of described settings, and uses it for
    # all topics with the same settings.
    described: dict[object, list[Entry]] = {}
    for wanted in request.resources:
        result = Result(resource_type=wanted.resource_type, resource_name=wanted.resource_name)
        response.results.append(result)
        with error_code_in(result):
            resource = config_resources.find(wanted.resource_type, wanted.resource_name, context.broker)
            # If the list of names is null or empty, the client requests all settings.
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
