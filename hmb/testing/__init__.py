"""Tests of programs that use Kafka: a broker in the test's process, and fixtures for pytest.

A test of a producer or a consumer needs a broker, and a topic that no other test uses. pytest loads `plugin.py`
wherever HMB is installed, through the entry point `pytest11`. The plugin offers fixtures:

- `hmb_broker`, an embedded broker for the whole session (`hmb.Broker`)
- `hmb_topic`, the name of a fresh topic for each test
- `hmb_faults`, the faults of this broker, which end with the test
- `hmb_clock`, the clock of this broker, which a test moves forward
- `kafka_bootstrap_servers`, the address that a client of any library needs

Every start of pytest loads the plugin, also in projects that do not test with Kafka. So the plugin imports the broker
only when a test uses a fixture.

The fixtures are safe with pytest-xdist. Each worker is a process and has its own broker, on a free port and with its
own temporary directory. With `--hmb-bootstrap` all workers share one broker, and random letters in the names of the
topics keep the workers apart.

Read in this order:

1. `embedded.py`   the broker of a test: restarts, and access without a client
2. `plugin.py`     the options, the fixtures, and the report of a failed test
3. `faults.py`     errors, delays, lost responses and cut connections
4. `refusal.py`    the response with an error code, for any API
5. `disk.py`       a slow, full or failing disk, and damaged batches
6. `clock.py`      a clock that a test moves forward
7. `rounds.py`     rounds of retention and compaction that a test starts
8. `fault_objects.py`  faults as objects of YAML or JSON
9. `control.py`    faults of a broker in another process, by HTTP and JSON
10. `versions.py`   the APIs and versions of older brokers
11. `cluster.py`    a simulated cluster, for clients that follow the leaders
12. `report.py`     the broker's log and the last records, as the report shows them
"""

# This name replaces `typing.TYPE_CHECKING`. Type checkers treat it as true. An import of typing would take 3 ms.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from hmb.testing.clock import ManualClock
    from hmb.testing.cluster import SimulatedCluster as Cluster

__all__ = ["Cluster", "ManualClock"]


def __getattr__(name: str) -> object:
    """Import a class when it is first used, because each start of pytest imports this package."""
    if name == "Cluster":
        from hmb.testing.cluster import SimulatedCluster

        return SimulatedCluster
    if name == "ManualClock":
        from hmb.testing.clock import ManualClock

        return ManualClock
    raise AttributeError(f"module 'hmb.testing' has no attribute {name!r}")
