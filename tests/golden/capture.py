"""Captures the golden files: the bytes that real clients and real brokers send to each other.

    HMB_KAFKA_43=... HMB_KAFKA_082=... python -m tests.golden.capture [CLIENT ...]     (from the project's root)

A `Recorder` is a proxy between a client and a broker. It forwards every frame unchanged. The broker advertises the
recorder's port. So all later connections of the client also pass through the recorder.

A `Scenario` runs one client, and lists the APIs whose requests are written to a file. The client may send several
requests of one API and version. The file contains the request with the longest response, because that response contains
records or topics.

A golden file contains the bytes that the clients and brokers sent, and annotations that HMB's message classes derived
from these bytes. test_golden.py compares the bytes with the annotations.
"""

import socket
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from hmb.bench import peers
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import ProtocolError
from hmb.protocol.framing import read_frame
from hmb.protocol.messages import api_name
from tests.golden.cluster_clients import (
    hmb_login,
    kafka_43_cluster_tools,
    kafka_43_quotas,
    librdkafka_telemetry,
)
from tests.golden.files import write
from tests.golden.group_and_admin_clients import (
    kafka_43_consumer_protocol,
    kafka_43_tools,
    kafka_python_group,
    librdkafka_admin,
    librdkafka_group,
)
from tests.golden.share_clients import kafka_43_share_group
from tests.golden.simple_clients import aiokafka, console_082, console_43, kafka_python, kafka_python_202, librdkafka
from tests.golden.streams_clients import kafka_43_streams_group
from tests.golden.transactional_clients import kafka_43_transactions, librdkafka_transactions

FOLDER = Path(__file__).parent


class Exchange(NamedTuple):
    request: bytes  # the frame, including its length
    response: bytes  # empty if the broker sent no response


class Recorder:
    """A TCP proxy that records requests and responses. Each direction of a connection has its own thread."""

    def __init__(self) -> None:
        self.listener = socket.create_server((peers.HOST, 0))
        self.port = self.listener.getsockname()[1]
        self.exchanges: list[Exchange] = []

    def serve(self, broker_port: int) -> None:
        with suppress(OSError):  # `accept` fails when the test closes the listener.
            while True:
                client, _ = self.listener.accept()
                broker = socket.create_connection((peers.HOST, broker_port))
                asked: dict[bytes, bytes] = {}  # correlation id -> request
                threading.Thread(target=self.pass_on, args=(client, broker, asked, True), daemon=True).start()
                threading.Thread(target=self.pass_on, args=(broker, client, asked, False), daemon=True).start()

    def pass_on(self, source: socket.socket, target: socket.socket, asked: dict[bytes, bytes], requests: bool) -> None:
        with suppress(OSError, ProtocolError), source.makefile("rb") as stream:
            while (body := read_frame(stream, 1 << 30)) is not None:
                frame = len(body).to_bytes(4, "big") + body
                if requests:
                    asked[frame[8:12]] = frame
                else:
                    self.exchanges.append(Exchange(asked.pop(frame[4:8]), frame))
                target.sendall(frame)
        # The connection is closed. The requests that are still in `asked` got no response.
        for request in list(asked.values()) if requests else []:
            self.exchanges.append(Exchange(request, b""))
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def find(self, api_key: int, version: int | None) -> list[Exchange]:
        """Return all exchanges of one API in one version, or in all versions if `version` is None.

        The list is sorted by the length of the response. The exchange with the longest response is at the end.
        """
        wanted = api_key.to_bytes(2, "big") + (b"" if version is None else version.to_bytes(2, "big"))
        found = [exchange for exchange in self.exchanges if exchange.request[4:8].startswith(wanted)]
        return sorted(found, key=lambda exchange: len(exchange.response))


MEMBERSHIP = [ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP]


class Scenario(NamedTuple):
    client: str
    run: Callable[[str, str], None]  # called with bootstrap servers and topic
    wanted: Mapping[ApiKey, int | None]  # the API versions to record; None: any version


WITH_KAFKA_082 = [
    Scenario(
        "kafka-0.8.2.2",
        console_082,
        {ApiKey.METADATA: 0, ApiKey.PRODUCE: 0, ApiKey.FETCH: 0, ApiKey.LIST_OFFSETS: 0},
    ),
]
WITH_KAFKA_43 = [
    Scenario(
        "kafka-python-0.10",
        partial(kafka_python, version=(0, 10)),
        {ApiKey.API_VERSIONS: 0, ApiKey.METADATA: 1, ApiKey.PRODUCE: 2},
    ),
    Scenario("kafka-python-2.0.2", kafka_python_202, {ApiKey.PRODUCE: 3, ApiKey.FETCH: 4, ApiKey.LIST_OFFSETS: 1}),
    Scenario("kafka-python-1.1", partial(kafka_python, version=(1, 1)), {ApiKey.PRODUCE: 5, ApiKey.FETCH: 7}),
    Scenario("aiokafka", aiokafka, {ApiKey.METADATA: 5, ApiKey.PRODUCE: 7, ApiKey.FETCH: 11}),
    Scenario(
        "kafka-python-2.8",
        partial(kafka_python, version=(2, 8)),
        {ApiKey.METADATA: 11, ApiKey.PRODUCE: 9, ApiKey.FETCH: 12, ApiKey.LIST_OFFSETS: 6},
    ),
    Scenario(
        "librdkafka",
        librdkafka,
        {
            ApiKey.API_VERSIONS: 3,
            ApiKey.INIT_PRODUCER_ID: 4,
            ApiKey.PRODUCE: 10,
            ApiKey.FETCH: 16,
            ApiKey.FIND_COORDINATOR: 2,
            ApiKey.CREATE_TOPICS: 4,
            ApiKey.DELETE_TOPICS: 4,
        },
    ),
    Scenario(
        "kafka-4.3.0",
        console_43,
        {
            ApiKey.API_VERSIONS: 4,
            ApiKey.METADATA: 13,
            ApiKey.INIT_PRODUCER_ID: 5,
            ApiKey.PRODUCE: 13,
            ApiKey.FETCH: 18,
            ApiKey.LIST_OFFSETS: 11,
            ApiKey.CREATE_TOPICS: 7,
            ApiKey.DELETE_TOPICS: 6,
        },
    ),
    Scenario(
        "kafka-python-0.10-group",
        partial(kafka_python_group, version=(0, 10, 2)),
        dict.fromkeys([*MEMBERSHIP, ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH]),
    ),
    Scenario(
        "librdkafka-group",
        librdkafka_group,
        dict.fromkeys([*MEMBERSHIP, ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH]),
    ),
    Scenario(
        "librdkafka-consumer-group",
        partial(librdkafka_group, **{"group.protocol": "consumer"}),
        dict.fromkeys([ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.OFFSET_COMMIT]),
    ),
    Scenario(
        "librdkafka-admin",
        librdkafka_admin,
        dict.fromkeys(
            [
                ApiKey.CREATE_PARTITIONS,
                ApiKey.ALTER_CONFIGS,
                ApiKey.INCREMENTAL_ALTER_CONFIGS,
                ApiKey.DELETE_RECORDS,
                ApiKey.DELETE_GROUPS,
                ApiKey.LIST_GROUPS,
                ApiKey.DESCRIBE_GROUPS,
            ]
        ),
    ),
    Scenario(
        "kafka-4.3.0-tools",
        kafka_43_tools,
        dict.fromkeys(
            [
                ApiKey.JOIN_GROUP,
                ApiKey.SYNC_GROUP,
                ApiKey.LEAVE_GROUP,
                ApiKey.OFFSET_COMMIT,
                ApiKey.OFFSET_FETCH,
                ApiKey.OFFSET_FOR_LEADER_EPOCH,
                ApiKey.LIST_GROUPS,
                ApiKey.DESCRIBE_GROUPS,
                ApiKey.OFFSET_DELETE,
                ApiKey.DESCRIBE_TOPIC_PARTITIONS,
                ApiKey.DESCRIBE_LOG_DIRS,
                ApiKey.DESCRIBE_CLUSTER,
                ApiKey.DESCRIBE_CONFIGS,
                ApiKey.ELECT_LEADERS,
                ApiKey.ALTER_PARTITION_REASSIGNMENTS,
                ApiKey.LIST_PARTITION_REASSIGNMENTS,
                ApiKey.DELETE_RECORDS,
            ]
        ),
    ),
    Scenario(
        "kafka-4.3.0-consumer-group",
        kafka_43_consumer_protocol,
        dict.fromkeys([ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE]),
    ),
    Scenario(
        "kafka-4.3.0-share-group",
        kafka_43_share_group,
        dict.fromkeys(
            [
                ApiKey.SHARE_GROUP_HEARTBEAT,
                ApiKey.SHARE_GROUP_DESCRIBE,
                ApiKey.SHARE_FETCH,
                ApiKey.SHARE_ACKNOWLEDGE,
                ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
                ApiKey.ALTER_SHARE_GROUP_OFFSETS,
                ApiKey.DELETE_SHARE_GROUP_OFFSETS,
                # The broker sends the following requests to itself through the recorder.
                ApiKey.INITIALIZE_SHARE_GROUP_STATE,
                ApiKey.WRITE_SHARE_GROUP_STATE,
                ApiKey.READ_SHARE_GROUP_STATE,
                ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
                ApiKey.DELETE_SHARE_GROUP_STATE,
            ]
        ),
    ),
    Scenario(
        "kafka-4.3.0-streams-group",
        kafka_43_streams_group,
        dict.fromkeys([ApiKey.STREAMS_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_DESCRIBE]),
    ),
    Scenario(
        "kafka-4.3.0-cluster-tools",
        kafka_43_cluster_tools,
        dict.fromkeys(
            [
                ApiKey.DESCRIBE_QUORUM,
                ApiKey.UPDATE_FEATURES,
                ApiKey.LIST_CONFIG_RESOURCES,
                ApiKey.DESCRIBE_ACLS,
                ApiKey.CREATE_ACLS,
                ApiKey.DELETE_ACLS,
                ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
                ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
            ]
        ),
    ),
    Scenario(
        "kafka-4.3.0-quotas",
        kafka_43_quotas,
        dict.fromkeys([ApiKey.DESCRIBE_CLIENT_QUOTAS, ApiKey.ALTER_CLIENT_QUOTAS]),
    ),
    Scenario(
        "hmb",
        hmb_login,
        dict.fromkeys(
            [
                ApiKey.SASL_HANDSHAKE,
                ApiKey.SASL_AUTHENTICATE,
                ApiKey.ALTER_REPLICA_LOG_DIRS,
                ApiKey.CREATE_DELEGATION_TOKEN,
                ApiKey.RENEW_DELEGATION_TOKEN,
                ApiKey.EXPIRE_DELEGATION_TOKEN,
                ApiKey.DESCRIBE_DELEGATION_TOKEN,
            ]
        ),
    ),
    Scenario(
        "librdkafka-transactions",
        librdkafka_transactions,
        # Each number is the version that librdkafka sends. The broker also sends AddPartitionsToTxn to itself, in a
        # newer version. The newer version must not be recorded in this scenario.
        {
            ApiKey.INIT_PRODUCER_ID: 4,
            ApiKey.ADD_PARTITIONS_TO_TXN: 0,
            ApiKey.ADD_OFFSETS_TO_TXN: 0,
            ApiKey.TXN_OFFSET_COMMIT: 3,
            ApiKey.END_TXN: 1,
        },
    ),
    Scenario(
        "kafka-4.3.0-transactions",
        kafka_43_transactions,
        dict.fromkeys(
            [  # The client sends all of these requests except WriteTxnMarkers, which the broker sends to itself.
                ApiKey.TXN_OFFSET_COMMIT,
                ApiKey.END_TXN,
                ApiKey.LIST_TRANSACTIONS,
                ApiKey.DESCRIBE_TRANSACTIONS,
                ApiKey.DESCRIBE_PRODUCERS,
                ApiKey.WRITE_TXN_MARKERS,
            ]
        ),
    ),
]


# Kafka offers these two APIs only with a plug-in that receives the metrics, so HMB answers.
WITH_HMB = [
    Scenario(
        "librdkafka-telemetry",
        librdkafka_telemetry,
        dict.fromkeys([ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY]),
    )
]


def record(broker: peers.Peer, recorder: Recorder, scenarios: list[Scenario]) -> None:
    """Run the clients of the scenarios, one after another, against one broker, and write their golden files."""
    threading.Thread(target=recorder.serve, args=(broker.port,), daemon=True).start()
    with broker:
        for client, run_client, wanted in scenarios:
            recorder.exchanges.clear()
            run_client(f"{peers.HOST}:{recorder.port}", f"greetings-{client}")
            missing = [key.name for key, version in wanted.items() if not recorder.find(key, version)]
            if missing:
                sys.exit(f"{client} did not send a request of {', '.join(missing)}")
            for api_key, version in wanted.items():
                exchange = recorder.find(api_key, version)[-1]
                version = int.from_bytes(exchange.request[6:8], "big")
                api = api_name(api_key)
                title = f"{api} v{version}: request of {client}, response of {broker.name}."
                if not exchange.response:
                    closes = "closes the connection, because it no longer supports this version"
                    title = f"{api} v{version}: request of {client}. {broker.name} {closes}."
                write(FOLDER / f"{api_key.name.lower()}_v{version}_{client}.txt", title, *exchange)
                print(title)


def main() -> None:
    clients = sys.argv[1:]
    old, new, ours = (
        [each for each in scenarios if not clients or each.client in clients]
        for scenarios in (WITH_KAFKA_082, WITH_KAFKA_43, WITH_HMB)
    )
    recorder = Recorder()
    advertised = {"advertised.host.name": peers.HOST, "advertised.port": str(recorder.port)}
    if old:
        record(peers.Kafka082(config=advertised), recorder, old)
    recorder = Recorder()
    advertised = {"advertised.listeners": f"PLAINTEXT://{peers.HOST}:{recorder.port}"}
    few = dict.fromkeys(
        (
            "offsets.topic.num.partitions",
            "transaction.state.log.num.partitions",
            "share.coordinator.state.topic.num.partitions",
        ),
        "1",
    )
    permissions = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    if new:
        record(peers.Kafka43(config=advertised | few | permissions), recorder, new)
    recorder = Recorder()
    advertised = {"advertised.listeners": f"PLAINTEXT://{peers.HOST}:{recorder.port}"}
    if ours:
        record(peers.Hmb(config=advertised | {"client.telemetry.enable": "true"}), recorder, ours)


if __name__ == "__main__":
    main()
