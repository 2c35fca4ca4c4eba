"""The settings of the broker, of topics and of groups. Their names are the names that Kafka uses.

A user can set the value of a setting in several places. The broker searches these places in this order, and uses the
first value that it finds: the dynamic settings (`hmb configs alter`), the option `-X name=value`, an environment
variable, the file server.properties. If no place contains a value, the broker uses the default.

The response to a `DescribeConfigs` request shows the source of each value. For a setting of the broker, the response
distinguishes four sources: dynamic settings of this broker, dynamic settings of all brokers, values from the broker's
start, and Kafka's defaults. Values from the broker's start are the values of the option -X, of the environment
variables and of the file server.properties.

Read in this order:
1. `keys.py`             one setting: its type, range and default
2. `broker.py`           all settings of the broker; a subject with many settings has a class in a module of its own
3. `dynamic.py`          settings that change while the broker runs

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
