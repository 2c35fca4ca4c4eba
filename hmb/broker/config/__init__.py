"""The settings of the broker, of topics and of groups. Their names are the names that Kafka uses.

A user can set the value of a setting in several places. The broker searches these places in this order, and
uses the first value that it finds: the dynamic settings (`hmb configs alter`), the option `-X name=value`, an
environment variable, the file server.properties. If no place contains a value, the broker uses the default. A
dynamic setting of one broker overrides a dynamic setting of all brokers.

The response to a `DescribeConfigs` request shows where each value comes from. The value of a broker setting has
one of four sources:
- a dynamic setting of this broker
- a dynamic setting of all brokers
- a setting from the start of the broker: the option -X, an environment variable, or the file server.properties
- Kafka's default

Read in this order:
1. `keys.py`             what a setting is: its type, its range and its default
2. `broker.py`           all settings of the broker; some are in separate modules, for example those of share groups
3. `dynamic.py`          settings that can change while the broker runs

Each of these modules declares the settings of one subject. You can skip these modules in a first reading:
- `limits.py`            limits of connections, and the time windows of quotas
- `groups/`              groups of each kind, and the settings of a single group
- `security.py`          TLS, SASL and authorization
- `client_metrics.py`    which metrics the broker requests from clients
- `loggers.py`           log levels as settings
- `no_effect.py`         settings of Kafka that the broker accepts, but that change nothing

These modules find, change and store settings:
- `names.py`             names of settings in files and in the environment; warnings about misspelled names
- `start_settings.py`    settings that the broker reads only when it starts
- `resources.py`, `entries.py`    the settings of one topic, broker or group, for DescribeConfigs and AlterConfigs
- `store.py`             the file of dynamic settings
"""
