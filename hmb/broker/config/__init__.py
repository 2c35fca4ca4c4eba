"""The settings of the broker, of topics and of groups. Their names are the names that Kafka uses.

A user can set the value of a setting in several places. The broker searches these places in this order, and uses the
first value that it finds: the dynamic settings (`hmb configs alter`), the option `-X name=value`, an environment
variable, the file server.properties. If no place contains a value, the broker uses the default.

The response to a `DescribeConfigs` request shows the source of each value. For a setting of the broker, the response
distinguishes four sources: dynamic settings of this broker, dynamic settings of all brokers, values from the broker's
start, and Kafka's defaults. The option, the environment and the file together are one source.

Read in this order:
1. `keys.py`             one setting: its type, range and default
2. `broker_config.py`    all settings that the broker uses
3. `dynamic.py`          settings that change while the broker runs

A first reading can skip the rest:
- `names.py`             names of settings in files and in the environment; warnings about misspelled names
- `no_effect.py`         settings of Kafka that the broker accepts, but that change nothing
- `group_configs.py`     settings of consumer groups
- `client_metrics.py`    settings of client metrics: which metrics the broker requests from clients
- `loggers.py`           log levels as settings
- `resources.py`, `entries.py`    the settings of one topic, broker or group, for DescribeConfigs and AlterConfigs
- `share_config.py`, `streams_config.py`    settings for share groups and for streams groups
- `limits_config.py`     limits of connections, and the windows of quotas
- `start_settings.py`    the data directory and the windows of quotas, which the broker reads only when it starts
- `security_keys.py`     settings of TLS, SASL and authorization
- `store.py`             the file of dynamic settings
"""
