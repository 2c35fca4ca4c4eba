"""Brokers as subprocesses: HMB, Apache Kafka 4.3.0 and Apache Kafka 0.8.2.2, started alike on free ports of 127.0.0.1.

A comparison is only fair, and a conformance test only means something, when every broker is a real process that is
spoken to over a real socket.  A `Peer` is such a process with its directory and its log:

    with Hmb() as hmb, Kafka43() as kafka:
        compare(hmb.bootstrap, kafka.bootstrap)

- ready: `start` returns when the broker has answered a Metadata request with itself in it, which is later than the
  moment its port accepts connections (Kafka binds early and becomes a member of its cluster afterwards);
- stop: SIGTERM, and SIGKILL for one that is still there after `STOP_SECONDS`; `kill` is SIGKILL at once;
- directory: a temporary one that goes away with the peer, or one of the caller's that stays.

Kafka's jars are not part of this project.  HMB_KAFKA_43 and HMB_KAFKA_082 name the folders that hold them, and
without these variables they are looked for where `hmb bench fetch-kafka` puts them: `.peers/` in the root of a
checkout, or where HMB is installed without one, a folder of the user's cache.
"""

from __future__ import annotations

import functools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from hmb.client import Connection, ConnectionFailed
from hmb.protocol.messages.metadata import MetadataRequest

HOST = "127.0.0.1"
START_SECONDS = 60.0
STOP_SECONDS = 30.0
KAFKA_43_VARIABLE = "HMB_KAFKA_43"
KAFKA_082_VARIABLE = "HMB_KAFKA_082"


def fetched(root: Path) -> Path:
    """Where what was fetched lies: in the checkout, if this is one, or else in the user's cache."""
    if (root / "pyproject.toml").exists():
        return root / ".peers"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hmb" / "kafka"


FETCHED = fetched(Path(__file__).resolve().parents[2])


class PeerUnavailable(Exception):
    """What a peer needs is not installed here: a test skips, a benchmark ends with this message."""


class PeerFailed(Exception):
    """A peer did not start, or ended by itself."""


def kafka_43_jars() -> Path:
    """The folder with the jars of Kafka 4.3.0 (broker and tools)."""
    return _jars(KAFKA_43_VARIABLE, FETCHED / "k43" / "libs")


def kafka_082_jars() -> Path:
    """The folder with the jars of Kafka 0.8.2.2 and ZooKeeper."""
    return _jars(KAFKA_082_VARIABLE, FETCHED / "k082" / "libs")


def use_kafka(folder: Path) -> None:
    """Take Kafka's jars from here: a folder with k43/libs and k082/libs, or the libs of one Kafka.

    PeerUnavailable if there are none.
    """
    for variable, libs, version in ((KAFKA_43_VARIABLE, "k43/libs", "4"), (KAFKA_082_VARIABLE, "k082/libs", "0.8.2")):
        for place in (folder / libs, folder / "libs", folder):
            if any(place.glob(f"kafka-clients-{version}*.jar")):
                os.environ[variable] = str(place)
                break
    if not any(folder.rglob("kafka-clients-*.jar")):
        raise PeerUnavailable(f"no Kafka in {folder}: it should hold kafka-clients-4.3.0.jar, or folders k43 and k082")


def _jars(variable: str, default: Path) -> Path:
    folder = Path(os.environ.get(variable) or default)
    if not any(folder.glob("kafka*.jar")):
        what = f"no Kafka in {folder}"
        raise PeerUnavailable(f"{what}: run `hmb bench fetch-kafka`, or name its jars by --kafka-dir or {variable}")
    if shutil.which("java") is None:
        raise PeerUnavailable("no java on the PATH")
    return folder


def java(jars: Path, main_class: str, *arguments: str, options: Sequence[str] = ()) -> list[str]:
    """The command line of one of Kafka's classes; `options` are the JVM's."""
    return ["java", *options, "-Dfile.encoding=UTF-8", "-cp", f"{jars}/*", main_class, *arguments]


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, all different because they are held together until the last is found."""
    sockets = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def resident_bytes(pid: int, which: str = "VmRSS") -> int:
    """The resident memory of a process, by /proc (Linux): what it has now, or with VmHWM the most it ever had."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{which}:"):
            return int(line.split()[1]) * 1024
    raise PeerFailed(f"process {pid} has no resident memory")


def cpu_seconds(pid: int) -> float:
    """The CPU time of a process so far, all its threads: utime and stime of /proc (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()  # from the third on: the second is a name
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def brokers_known(port: int) -> int | None:
    """How many brokers the one on `port` names in a Metadata v0 answer, v0 being what 0.8.2 and 4.3 share; or None."""
    try:
        with Connection(HOST, port, timeout=5) as connection:
            return len(connection.send(MetadataRequest(topics=[]), version=0).brokers)
    except ConnectionFailed:
        return None


class Peer:
    """A broker process.  Subclasses say how it is laid out on disk (`prepare`) and started (`command`)."""

    name: ClassVar[str]

    def __init__(
        self, directory: Path | None = None, *, port: int | None = None, config: Mapping[str, str] | None = None
    ) -> None:
        self.temporary = directory is None
        self.directory = Path(tempfile.mkdtemp(prefix="hmb-peer-")) if directory is None else directory
        self.directory.mkdir(parents=True, exist_ok=True)
        self.port = free_ports(1)[0] if port is None else port
        self.config = dict(config or {})
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def data_dir(self) -> Path:
        """Where the topic partitions' directories are."""
        return self.directory / "data"

    @property
    def log_path(self) -> Path:
        return self.directory / "broker.log"

    @property
    def pid(self) -> int:
        if self.process is None:
            raise PeerFailed(f"{self.name} is not running")
        return self.process.pid

    def prepare(self) -> None:
        """Files and helpers that the process needs before it starts."""

    def command(self) -> list[str]:
        raise NotImplementedError

    def spawn(self) -> None:
        """Start the process and do not wait for it: what a measurement of the start begins with."""
        self.process = spawn(self.command(), self.log_path)

    def start(self) -> Self:
        self.prepare()
        self.spawn()
        self.await_ready()
        return self

    def ready(self) -> bool:
        return bool(brokers_known(self.port))

    def await_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while not self.ready():
            ended = self.process is None or self.process.poll() is not None
            if ended or time.monotonic() > deadline:
                self.stop()
                raise PeerFailed(f"{self.name} did not start; its log ends:\n{self.log_tail()}")
            time.sleep(0.02)

    def stop(self) -> int | None:
        """SIGTERM and wait; the exit code, -9 when it had to be killed, None when it was not running."""
        process, self.process = self.process, None
        return None if process is None else end(process)

    def kill(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.wait()

    def log_tail(self, lines: int = 30) -> str:
        text = self.log_path.read_text(errors="replace") if self.log_path.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    def remove(self) -> None:
        if self.temporary:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.stop()
            self.remove()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self.remove()


def spawn(command: list[str], log_path: Path) -> subprocess.Popen[bytes]:
    """A process in a session of its own, so that Ctrl-C reaches us first and the peers are stopped in order."""
    with log_path.open("ab") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )


def end(process: subprocess.Popen[bytes]) -> int:
    process.send_signal(signal.SIGTERM)
    try:
        return process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def write_properties(path: Path, properties: Mapping[str, object]) -> None:
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))


AS_A_PEER = {  # the settings in which both are other than by default
    "group.initial.rebalance.delay.ms": "0",
    "log.segment.delete.delay.ms": "1000",  # a deleted topic's space comes back while a benchmark goes on
}


class Hmb(Peer):
    """This project's broker: the `hmb` command that is installed beside the running Python."""

    name = "HMB"

    def command(self) -> list[str]:
        config = {**AS_A_PEER, **self.config}
        overrides = [part for name, value in config.items() for part in ("-X", f"{name}={value}")]
        hmb = Path(sys.executable).with_name("hmb")
        place = ["--host", HOST, "--port", str(self.port), "--data-dir", str(self.data_dir)]
        return [str(hmb), "broker", *place, *overrides]


class Kafka43(Peer):
    """Apache Kafka 4.3.0 in KRaft mode: broker and controller in one process, heap 1 GB, as its scripts start it."""

    name = "Kafka 4.3.0"

    @functools.cached_property
    def cluster_id(self) -> str:
        return urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")

    def prepare(self) -> None:
        self.jars = kafka_43_jars()
        properties = self.directory / "server.properties"
        write_properties(properties, self._properties(free_ports(1)[0]))
        if (self.data_dir / "meta.properties").exists():
            return
        given = (f"--cluster-id={self.cluster_id}", "--config", str(properties))
        format_storage = java(self.jars, "kafka.tools.StorageTool", "format", *given)
        done = subprocess.run(format_storage, capture_output=True, text=True)
        if done.returncode != 0:
            raise PeerFailed(f"{self.name}'s storage was not formatted: {done.stdout}{done.stderr}")

    def _properties(self, controller_port: int) -> dict[str, object]:
        return {
            "process.roles": "broker,controller",
            "node.id": 0,
            "controller.quorum.voters": f"0@{HOST}:{controller_port}",
            "listeners": f"PLAINTEXT://{HOST}:{self.port},CONTROLLER://{HOST}:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": self.data_dir,
            "num.partitions": 1,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            **AS_A_PEER,
            **self.config,
        }

    def command(self) -> list[str]:
        options = ["-Xms1G", "-Xmx1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
        return java(self.jars, "kafka.Kafka", str(self.directory / "server.properties"), options=options)


class Kafka082(Peer):
    """Apache Kafka 0.8.2.2, the thesis' Kafka, with the ZooKeeper that it cannot do without."""

    name = "Kafka 0.8.2.2"
    zookeeper: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        self.jars = kafka_082_jars()
        self.zookeeper_port = free_ports(1)[0]
        zookeeper = {"dataDir": self.directory / "zookeeper", "clientPort": self.zookeeper_port, "maxClientCnxns": 0}
        broker = {
            "broker.id": 0,
            "port": self.port,
            "host.name": HOST,
            "log.dirs": self.data_dir,
            "zookeeper.connect": f"{HOST}:{self.zookeeper_port}",
            "num.partitions": 1,
            "log.cleaner.enable": "false",
            **self.config,
        }
        write_properties(self.directory / "zookeeper.properties", zookeeper)
        write_properties(self.directory / "server.properties", broker)
        main_class = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        command = java(self.jars, main_class, str(self.directory / "zookeeper.properties"), options=["-Xmx512M"])
        self.zookeeper = spawn(command, self.directory / "zookeeper.log")
        self._await_zookeeper()

    def _await_zookeeper(self) -> None:
        """ZooKeeper's own health check: `ruok` is answered with `imok`."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._ask_zookeeper(b"ruok") == b"imok":
                return
            time.sleep(0.05)
        raise PeerFailed("ZooKeeper did not start")

    def _ask_zookeeper(self, word: bytes) -> bytes:
        """The answer to one of its words of four letters; nothing while it cannot be asked."""
        try:
            with socket.create_connection((HOST, self.zookeeper_port), timeout=5) as connection:
                connection.sendall(word)
                return b"".join(iter(lambda: connection.recv(4096), b""))
        except OSError:
            return b""

    def command(self) -> list[str]:
        options = ["-Xms1G", "-Xmx1G"]
        return java(self.jars, "kafka.Kafka", str(self.directory / "server.properties"), options=options)

    def ready(self) -> bool:
        """An answer, and its name in ZooKeeper: 0.8.2 names no broker, not even itself, before there is a topic.

        Without that name, which comes after the first answers, a topic cannot be created.
        """
        return brokers_known(self.port) is not None and self._is_registered()

    def _is_registered(self) -> bool:
        return b"/brokers/ids/" in self._ask_zookeeper(b"dump")

    def kill(self) -> None:
        """Until ZooKeeper has noticed, which takes seconds: one that starts before takes its old self for a rival."""
        super().kill()
        deadline = time.monotonic() + STOP_SECONDS
        while self._is_registered() and time.monotonic() < deadline:
            time.sleep(0.05)

    def stop(self) -> int | None:
        code = super().stop()
        zookeeper, self.zookeeper = self.zookeeper, None
        if zookeeper is not None:
            end(zookeeper)
        return code
