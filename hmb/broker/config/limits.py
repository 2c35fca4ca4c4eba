"""The broker's limits for client connections, and its settings for the time windows of quotas."""

from __future__ import annotations

from hmb.broker.config.keys import Settings, setting
from hmb.broker.config.keys import dynamic_setting as _dynamic
from hmb.protocol.enums import INT32_MAX


class LimitsConfig(Settings):
    """The settings with which a broker limits its clients.

    The end of a setting's name shows the unit of a time. For example, the value of `connections.max.idle.ms` is in
    ms.
    """

    max_connections: int = _dynamic(
        "max.connections", 4096, "The largest number of clients that may be connected at the same time.", 0, INT32_MAX,
        kafka_default=INT32_MAX
    )
    max_connections_per_ip: int = _dynamic(
        "max.connections.per.ip", INT32_MAX,
        "The largest number of clients of one IP address that may be connected at the same time.", 0, INT32_MAX
    )
    max_connections_overrides: str = _dynamic(
        "max.connections.per.ip.overrides", "",
        "Other limits for single IP addresses or hosts: HOST:NUMBER, separated by commas.",
        pattern=r"([^,]+:\d{1,9}(,|$))*"
    )
    max_connection_rate: int = _dynamic(
        "max.connection.creation.rate", INT32_MAX,
        "The largest number of new connections in one second. The broker delays further connections.", 1, INT32_MAX
    )
    max_idle: int = setting(
        "connections.max.idle.ms", 600_000, "The broker closes a connection that is idle for this time.", 1
    )
    max_reauth: int = setting(
        "connections.max.reauth.ms", 0,
        "A client that authenticated with SASL must authenticate again within this time. 0 means no limit.", 0
    )
    quota_samples: int = setting(
        "quota.window.num", 11, "The number of samples in the window of a quota.", 1, INT32_MAX
    )
    quota_sample_seconds: int = setting(
        "quota.window.size.seconds", 1, "The length of a sample in the window of a quota.", 1, INT32_MAX
    )
    mutation_samples: int = setting(
        "controller.quota.window.num", 11,
        "The number of samples in the window of the quota controller_mutation_rate.", 1, INT32_MAX
    )
    mutation_sample_seconds: int = setting(
        "controller.quota.window.size.seconds", 1,
        "The length of a sample in the window of the quota controller_mutation_rate.", 1, INT32_MAX
    )


LIMIT_NAMES = {key.name for key in LimitsConfig.all_declared()}
LISTENER_LIMITS = ("max.connections", "max.connection.creation.rate")
"""The settings that can have a value for one listener, under a name with the prefix `listener.name.`."""
