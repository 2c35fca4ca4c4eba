"""Seeing inside a running broker: its state as data, as JSON over HTTP, and as metrics for Prometheus.

A broker knows much that its clients never see: the segments of each partition, the members of each group, the time
that each API needs. This folder makes one description of all these facts, and every tool shows a part of it:
    BrokerServer --collect--> BrokerState --> hmb.Broker.state(), hmb state --json      for programs and tests
                                          --> hmb top                                  for a terminal
                                          --> hmb broker --ui                          for a browser
                                          --> /metrics                                 for Prometheus and Grafana

For example, a group has committed offset 280 of a partition whose high watermark is 351. `collect` reads both numbers,
and the state contains a `PositionInfo` with lag 71. The column `lag` of `hmb state` shows 71, and `/metrics` contains
`kafka_consumergroup_lag{...} 71.0`.

*Cost.* The broker always counts requests (hmb/broker/counting.py) and keeps its last 1,000 events
(hmb/storage/events.py). A broker that offers its state over HTTP also takes a sample of its counters every ten seconds
(sampling.py). The broker computes everything else only when a program requests the state.

*Limits.* A `BrokerState` is a copy, and the broker continues its work while `collect` makes the copy. So two parts of
one state can be from moments that are some milliseconds apart.

Read in this order:
1. `state.py`         what a state contains
2. `collecting.py`    how the broker's parts become a state
3. `http_server.py`   a small HTTP server, and what it refuses
4. `ports.py`         which address shows what
5. `metrics.py`       the state as metrics, with the names that Kafka's exporters use
6. `sampling.py`      rates over the last minute
7. `page/`            the page that draws the state in a browser
8. `remote/`          the state of any broker, Apache Kafka included, through its APIs

In a first reading, skip the following modules. The last four of them are only for a broker with users:
- `positions.py`      the positions of groups
- `state_cache.py`    facts that a page need not collect again
- `admission.py`      who may read: by token, by login, or as the owner of the data directory
- `logins.py`         the passwords and the sessions of users
- `rights.py`         the part of the state that a user may read
- `refusal.py`        the error for a request that the server refuses
"""
