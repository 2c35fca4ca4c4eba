"""Contains the methods of `Admin` for settings of topics, brokers, loggers, groups and client metrics.

The value of a setting can be stored in five places: for one topic, for one broker, for all brokers, in the broker's
file `server.properties`, and in Kafka's defaults. If several of these places contain a value, the broker uses the value
of the first place. `describe_configs` returns this value. It also returns the *synonyms* of a setting: all values that
these places contain, in the same order:
    retention.ms of topic "events"
        topic "events"        3600000      <- the value in use
        all brokers         604800000
        default             604800000

For example, `retention.ms` has one value for the topic "events" and another value for all brokers. If a user deletes
the topic's value, the value for all brokers applies to the topic.

Two requests can change settings. An IncrementalAlterConfigs request (Kafka 2.3) contains only the changes. An
AlterConfigs request, which is older, must contain *all* values that were set for the topic or broker. The
broker deletes every value that the request leaves out. A client must therefore first request all values, apply
its changes to them, and then send all resulting values. If another client changes a setting between these two
requests, that change is lost. HMB's client sends AlterConfigs only to brokers before Kafka 2.3, and logs a
warning.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from hmb.client.admin.brokers import Brokers, raised
from hmb.client.arguments import list_of, list_of_names, mapped
from hmb.client.connection import Connection
from hmb.client.errors import response_error
from hmb.client.metadata import topic_error
from hmb.protocol.enums import ALL_BROKERS, ConfigOperation, ConfigSource, ResourceType
from hmb.protocol.errors import ErrorCode, KafkaError
from hmb.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from hmb.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from hmb.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

LOGGER = logging.getLogger(__name__)

Described = DescribeConfigsResponse.DescribeConfigsResult
DescribedEntry = Described.DescribeConfigsResourceResult
FIRST_VERSION_OF_SYNONYMS = DescribeConfigsRequest.first_version("include_synonyms")
FIRST_VERSION_OF_DOCUMENTATION = DescribeConfigsRequest.first_version("include_documentation")


OWN_SOURCES = {
    ResourceType.TOPIC: ConfigSource.DYNAMIC_TOPIC_CONFIG,
    ResourceType.BROKER_LOGGER: ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
    ResourceType.CLIENT_METRICS: ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG,
    ResourceType.GROUP: ConfigSource.DYNAMIC_GROUP_CONFIG,
}
TYPES = ("unknown", "boolean", "string", "int", "short", "long", "double", "list", "class", "password")


class ConfigResource(NamedTuple):
    """Identifies a topic, a broker or a group whose settings are described or changed.

    `name` is the name of the topic, the id of the broker ("" for all brokers), or the id of the group.
    """

    type: ResourceType
    name: str

    @property
    def own_source(self) -> ConfigSource:
        """The `source` of a value that was set for this resource itself.

        For example, a value set for a topic has the source DYNAMIC_TOPIC_CONFIG. A value that the topic inherits from
        the broker has another source.
        """
        if self.type is not ResourceType.BROKER:
            return OWN_SOURCES[self.type]
        return ConfigSource.DYNAMIC_BROKER_CONFIG if self.name else ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG

    def __str__(self) -> str:
        if self == (ResourceType.BROKER, ALL_BROKERS):
            return "all brokers"
        kind = "loggers of broker" if self.type is ResourceType.BROKER_LOGGER else self.type.name.lower()
        return f"{kind.replace('_', ' ')} {self.name!r}"


class ConfigSynonym(NamedTuple):
    """A value of a setting, with the place where the value is stored.

    `source` is this place, for example a topic. `name` is the name of the setting in this place. For example, the same
    setting is `retention.ms` for a topic and `log.retention.ms` for a broker.
    """

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """A setting with its value. The value of a sensitive setting, for example a password, is None.

    Brokers before Kafka 2.6 do not return the type of the value. `type` is then "unknown".
    """

    name: str
    value: str | None
    source: ConfigSource
    read_only: bool
    sensitive: bool
    type: str
    synonyms: tuple[ConfigSynonym, ...]
    documentation: str | None


class ConfigChange(NamedTuple):
    """A change of one setting.

    SET replaces the value, and DELETE deletes it. If the value is a list with commas between the items, APPEND adds
    items, and SUBTRACT removes items.
    """

    name: str
    operation: ConfigOperation
    value: str | None = None

    def applied_to(self, before: str | None) -> str | None:
        """Return the value after the change. `before` is the value before the change.

        For example, APPEND of "delete" changes the value "compact" to "compact,delete". The result is None after
        DELETE: the resource then has no value of its own.
        """
        items = before.split(",") if before else []
        changed = self.value.split(",") if self.value else []
        match self.operation:
            case ConfigOperation.SET:
                return self.value
            case ConfigOperation.DELETE:
                return None
            case ConfigOperation.APPEND:
                return ",".join([*items, *(item for item in changed if item not in items)])
            case ConfigOperation.SUBTRACT:
                return ",".join(item for item in items if item not in changed)


def describe_configs(
    brokers: Brokers,
    resources: Iterable[ConfigResource],
    *,
    names: Iterable[str] | None = None,
    documentation: bool = False,
) -> dict[ConfigResource, dict[str, ConfigEntry] | KafkaError]:
    """Return the settings of topics, brokers and groups. If `names` is not None, return only these settings.

    A setting can have several values, for example one value for a topic and one for the broker. The field `synonyms` of
    a `ConfigEntry` contains all these values. It is empty if the broker is older than Kafka 1.1. Needs Kafka 0.11.
    """
    keys = None if names is None else list_of_names("names", names, '["retention.ms"]')
    wanted = list_of("resources", resources, ConfigResource, '[ConfigResource(ResourceType.TOPIC, "t")]')
    return {resource: _configs_of(brokers, resource, keys, documentation) for resource in wanted}


def alter_configs(
    brokers: Brokers,
    resource: ConfigResource,
    *,
    set: Mapping[str, str] | None = None,
    delete: Iterable[str] = (),
    append: Mapping[str, str] | None = None,
    subtract: Mapping[str, str] | None = None,
    validate_only: bool = False,
) -> None:
    """Change settings of a topic, a broker or a group. The broker applies all changes or none.

    A broker reports no error if a client deletes a setting with a misspelled name. The method therefore checks
    names before it sends the changes:

    - For a topic or a group, it checks all names.
    - For one broker, it checks only the names of deleted settings, because a broker does not list all settings that
      it accepts.
    - For other resources, such as all brokers together, it checks no names.

    Raises KafkaError for an unknown name, or if the broker refuses a change. Needs Kafka 0.11.
    """
    changes = _changes(ConfigOperation.SET, set)
    deleted = list_of_names("settings to delete", delete, '["retention.ms"]')
    changes += [ConfigChange(name, ConfigOperation.DELETE) for name in deleted]
    changes += _changes(ConfigOperation.APPEND, append) + _changes(ConfigOperation.SUBTRACT, subtract)
    _check_names(brokers, resource, changes)
    connection = _owner(brokers, resource)
    if connection.supports(IncrementalAlterConfigsRequest):
        _alter_incrementally(connection, resource, changes, validate_only)
    else:
        _alter_all(brokers, connection, resource, changes, validate_only)


def _owner(brokers: Brokers, resource: ConfigResource) -> Connection:
    """Return the connection to a broker that knows the settings of the resource.

    For settings or loggers of one broker, the result is the connection to this broker. Any broker can answer requests
    about all other settings.
    """
    if resource.type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER) and resource.name != ALL_BROKERS:
        if not (resource.name.isascii() and resource.name.isdigit()):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"{resource}: the name must be a broker id, for example 1")
        return brokers.broker(int(resource.name))
    return brokers.any_broker()


def _configs_of(
    brokers: Brokers, resource: ConfigResource, keys: list[str] | None, documentation: bool
) -> dict[str, ConfigEntry] | KafkaError:
    try:
        connection = _owner(brokers, resource)
        version = connection.version_of(DescribeConfigsRequest)
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=resource.type, resource_name=resource.name, configuration_keys=keys
                )
            ],
            include_synonyms=version >= FIRST_VERSION_OF_SYNONYMS,
            include_documentation=documentation and version >= FIRST_VERSION_OF_DOCUMENTATION,
        )
        response: DescribeConfigsResponse = connection.send(request, version)
        (result,) = response.results
        _check(resource, result.error_code, result.error_message)
    except KafkaError as error:
        if error.code is ErrorCode.UNSUPPORTED_VERSION:
            raise  # The broker is too old for this request, so no resource can have a result.
        return error
    return {entry.name: _entry(resource, entry) for entry in result.configs}


def _check_names(brokers: Brokers, resource: ConfigResource, changes: Sequence[ConfigChange]) -> None:
    """Raise KafkaError if a change names a setting that does not exist.

    - For a topic or a group, the function checks the names in all changes.
    - For a single broker, the function checks only the names of settings that a change deletes. A broker does not
      list all settings that it accepts, for example the settings of plugins. So the function cannot check the names
      in other changes.
    - For the default settings of all brokers, the function checks no names. It also checks no names for loggers and
      for client metrics.
    """
    names = [change.name for change in changes]
    if resource.type is ResourceType.BROKER and resource.name != ALL_BROKERS:
        names = [change.name for change in changes if change.operation is ConfigOperation.DELETE]
    elif resource.type not in (ResourceType.TOPIC, ResourceType.GROUP):
        return
    known = raised(_configs_of(brokers, resource, None, documentation=False)) if names else {}
    for name in names:
        if known and name not in known:
            raise no_such_setting(resource, name, known)


def _alter_incrementally(
    connection: Connection, resource: ConfigResource, changes: list[ConfigChange], validate_only: bool
) -> None:
    asked = IncrementalAlterConfigsRequest.AlterConfigsResource
    request = IncrementalAlterConfigsRequest(
        resources=[
            asked(
                resource_type=resource.type,
                resource_name=resource.name,
                configs=[
                    asked.AlterableConfig(name=name, config_operation=operation, value=value)
                    for name, operation, value in changes
                ],
            )
        ],
        validate_only=validate_only,
    )
    response: IncrementalAlterConfigsResponse = connection.send(request)
    (answer,) = response.responses
    _check(resource, answer.error_code, answer.error_message)


def _alter_all(
    brokers: Brokers,
    connection: Connection,
    resource: ConfigResource,
    changes: list[ConfigChange],
    validate_only: bool,
) -> None:
    """Change settings with the older AlterConfigs request.

    The function requests all values, applies the changes, and sends all values.
    """
    LOGGER.warning(
        "%s is older than Kafka 2.3 and cannot change single settings, so the client writes all settings of %s again; "
        "this can undo a simultaneous change by another client",
        connection.address,
        resource,
    )
    entries = raised(_configs_of(brokers, resource, None, documentation=False))
    own = {entry.name: entry for entry in entries.values() if entry.source is resource.own_source}
    if hidden := [entry.name for entry in own.values() if entry.sensitive]:
        what = f"{resource}: the client cannot read the values of {', '.join(hidden)}, so it cannot write them again"
        raise KafkaError(ErrorCode.INVALID_REQUEST, what)
    values = {name: entry.value for name, entry in own.items()}
    for change in changes:
        before = values.get(change.name, entries[change.name].value if change.name in entries else None)
        values[change.name] = change.applied_to(before)
    asked = AlterConfigsRequest.AlterConfigsResource
    configs = [asked.AlterableConfig(name=name, value=value) for name, value in values.items() if value is not None]
    request = AlterConfigsRequest(
        resources=[asked(resource_type=resource.type, resource_name=resource.name, configs=configs)],
        validate_only=validate_only,
    )
    response: AlterConfigsResponse = connection.send(request)
    (answer,) = response.responses
    _check(resource, answer.error_code, answer.error_message)


def _changes(operation: ConfigOperation, settings: Mapping[str, str] | None) -> list[ConfigChange]:
    given = mapped(f"settings to {operation.name.lower()}", settings or {}, '{"retention.ms": "1000"}')
    return [ConfigChange(name, operation, value) for name, value in given.items()]


def no_such_setting(resource: ConfigResource, name: str, known: Iterable[str]) -> KafkaError:
    """Return an error for an unknown name of a setting. The message contains the most similar known name."""
    near = difflib.get_close_matches(name, list(known), 1)
    hint = f"; did you mean {near[0]}?" if near else ""
    kind = resource.type.name.lower().replace("_", " ")
    return KafkaError(ErrorCode.INVALID_CONFIG, f"a {kind} has no setting {name!r}{hint}")


def _check(resource: ConfigResource, number: int, message: str | None) -> None:
    if number and resource.type is ResourceType.TOPIC:
        raise topic_error(resource.name, number, message)
    if number:
        raise response_error(resource, number, message)


def _entry(resource: ConfigResource, entry: DescribedEntry) -> ConfigEntry:
    source = ConfigSource(entry.config_source)
    if entry.config_source == -1:  # Version 0 of the response has no sources.
        source = ConfigSource.DEFAULT_CONFIG if entry.is_default else resource.own_source
        if entry.read_only and not entry.is_default:
            source = ConfigSource.STATIC_BROKER_CONFIG
    synonyms = tuple(ConfigSynonym(it.name, it.value, ConfigSource(it.source)) for it in entry.synonyms)
    type_name = TYPES[entry.config_type] if 0 <= entry.config_type < len(TYPES) else TYPES[0]
    return ConfigEntry(
        entry.name,
        entry.value,
        source,
        entry.read_only,
        entry.is_sensitive,
        type_name,
        synonyms,
        entry.documentation or None,
    )
