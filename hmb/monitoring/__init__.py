"""Reads the state of a running broker: as a Python object, as JSON over HTTP, or as Prometheus metrics.

A broker has information that its clients never see: the segments of each partition, the members of each group, the time
that each API needs. The function `collect` of this folder copies this information into one object, a `BrokerState`.
Each tool shows a part of this object:
    BrokerServer --collect--> BrokerState --> hmb.Broker.state(), hmb state --json      for programs and tests
                                          --> hmb top                                  for a terminal
                                          --> hmb broker --ui                          for a browser
                                          --> /metrics                                 for Prometheus and Grafana

For example, a group has committed offset 280 of a partition whose high watermark is 351. `collect` reads both numbers,
and the state contains a `PositionInfo` with lag 71. The column `lag` of `hmb state` shows 71, and `/metrics` contains
`kafka_consumergroup_lag{...} 71.0`.

*Cost.* The broker always counts requests (hmb/broker/counting.py) and remembers its last 1,000 events
(hmb/storage/events.py). If the broker offers its state over HTTP, it also stores a sample of its counters every
ten seconds (sampling.py). The broker computes the rest of the state only when a program requests the state.

*Limits.* While `collect` copies the broker's state, the broker continues its work. A `BrokerState` can
therefore contain values from different times, some milliseconds apart.

Read in this order:
1. `state.py`         defines what a state contains
2. `collecting.py`    collects the state from the parts of the broker
3. `http_server.py`   a small HTTP server, which also checks who may send requests
4. `ports.py`         opens the HTTP ports for the state, the page and the metrics
5. `metrics.py`       shows the state as metrics, with the names that Kafka's exporters use
6. `sampling.py`      takes samples of counters, to compute rates over the last minute
7. `page/`            draws the state in a browser
8. `remote/`          reads the state of any broker, even of Apache Kafka, through Kafka's APIs

In a first reading, skip the following modules. Only a broker with users needs `logins.py` and `rights.py`:
- `positions.py`      reads the committed offsets of a group
- `state_cache.py`    stores the state of a partition until its log changes
- `admission.py`      decides who may send requests: a client needs a token or a login
- `logins.py`         checks the passwords of users, and stores their sessions
- `rights.py`         selects the part of the state that a user may read
- `refusal.py`        the error for a request that the server refuses
"""
