"""Settings of the broker, of topics and of groups, with Kafka's names.

A setting gets its value from the first of these sources that has one: a dynamic setting (`hmb configs alter`), an
option `-X name=value`, an environment variable, the file server.properties, the default. A description of the setting
names the source (`DescribeConfigs`).

Read in this order:

1. `keys.py`             one setting: its type, range and default
2. `broker_config.py`    all settings that the broker uses
3. `dynamic.py`          settings that change while the broker runs

A first reading can skip the rest:

- `names.py`             names of settings in files and in the environment; the nearest name to a misspelled one
- `no_effect.py`         Kafka's settings that have no effect on one broker
- `group_configs.py`     settings of consumer groups
- `loggers.py`           log levels as settings
- `resources.py`, `entries.py`    settings as the APIs DescribeConfigs and AlterConfigs show them
- `store.py`             the file of dynamic settings
"""
