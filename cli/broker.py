"""`hmb broker`: run a broker with the user's settings until a signal stops it.

The value of a broker's setting can come from four sources. If several sources contain the setting, the broker uses the
source that comes last in this list:
1. the file `server.properties` (--config)
2. an environment variable: HMB_LOG_SEGMENT_BYTES sets log.segment.bytes
3. the option -X log.segment.bytes=1MiB
4. the options --host, --port and --data-dir

Three signals stop the broker cleanly: SIGTERM, SIGINT (Ctrl-C) and SIGHUP (the terminal was closed). Under
`nohup`, the broker ignores SIGHUP. When the broker starts after a crash, it first checks its logs, which can
take a long time. The signals also stop the broker during this check.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hmb.defaults import DEFAULT_DATA_DIR, DEFAULT_HOST, DEFAULT_PORT, DEFAULT_UI_PORT

from .shared.allocator import use_one_arena
from .shared.errors import USAGE, CliError
from .shared.http_address import HttpAddressParameter, monitoring_ports
from .shared.output import json_option, print_json
from .shared.parameters import IntRange, NewPath
from .shared.settings import plain_values, read_settings, setting

if TYPE_CHECKING:
    from hmb.broker import BrokerServer
    from hmb.broker.dispatch import Handler
    from hmb.monitoring.ports import HttpAddress, MonitoringPorts
    from hmb.protocol.api_keys import ApiKey
    from hmb.storage.clock import BrokerClock
    from hmb.testing.faults.control import ControlPort

WATCH_SECONDS = 0.1  # While the broker starts, it checks for a stop signal at this interval (in seconds).
# Python runs only one thread at a time: the thread that holds the interpreter lock. When another thread has waited for
# this lock for SWITCH_INTERVAL seconds, the running thread must release the lock. In a broker, a thread rarely waits so
# long: the running thread makes a system call after about 0.1 ms, and releases the lock before the call.
#
# With Python's default of 0.005 s, waiting threads force the running thread to release the interpreter lock too often.
# A broker then serves only 1,512 requests/s on a thousand busy connections. With 0.1 s, it serves 5,533 requests/s on a
# thousand connections, and 8,104 requests/s on a single connection (bench/scenarios/connections.py).
SWITCH_INTERVAL = 0.1
STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}  # A terminal that is closed sends SIGHUP.
LOG_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)  # the log level without -v, with -v, and with -vv


@click.command()
@click.option("--host", help=f"The address to listen on.  [default: {DEFAULT_HOST}]")
@click.option(
    "--port", type=IntRange(0, 65535), help=f"The port to listen on; 0 selects a free port.  [default: {DEFAULT_PORT}]"
)
@click.option(
    "--data-dir", type=NewPath(),
    help=f"The directory in which the broker stores its data.  [default: {DEFAULT_DATA_DIR}]",
)
@click.option("--config", type=NewPath(), help="A server.properties file, in the format of Kafka's brokers.")
@click.option(
    "-X", "settings", type=setting, multiple=True, metavar="NAME=VALUE",
    help="A setting of the broker, with the same name as in Kafka.",
)
@click.option(
    "--allow-unauthenticated", is_flag=True, help="Serve other computers, even on a listener that asks for no login."
)
@click.option(
    "--faults", type=NewPath(),
    help="A YAML file with faults to simulate in a test. With this option, the broker also opens a control port.",
)
@click.option(
    "--embedded", is_flag=True, help="For a test that starts this broker: print JSON, and stop when the test ends."
)
@click.option(
    "--state", type=HttpAddressParameter(), metavar="[HOST:]PORT",
    help="Serve the broker's state on this port, for `hmb state` and `hmb top`; 0 selects a free port.",
)
@click.option(
    "--ui", type=HttpAddressParameter(), metavar="[[HOST:]PORT]", is_flag=False, flag_value=str(DEFAULT_UI_PORT),
    help=f"Serve a page that shows the broker in a browser. Without a port, use port {DEFAULT_UI_PORT}.",
)
@click.option(
    "--metrics", type=HttpAddressParameter(), metavar="[HOST:]PORT",
    help="Serve metrics for Prometheus on this port, at /metrics.",
)
@click.option("-v", "--verbose", count=True, help="Log topics, connections and groups; -vv also logs each request.")
@json_option
def command(
    host: str | None,
    port: int | None,
    data_dir: str | None,
    config: str | None,
    settings: tuple[tuple[str, str], ...],
    allow_unauthenticated: bool,
    faults: str | None,
    embedded: bool,
    state: HttpAddress | None,
    ui: HttpAddress | None,
    metrics: HttpAddress | None,
    verbose: int,
    as_json: bool,
) -> None:
    """Run a broker until it is stopped.

    The broker prints its address on standard output as soon as clients can connect. It writes its log messages to
    standard error.

    With --embedded, the default of --port is a free port, and the default of --data-dir is a temporary directory.
    """
    from hmb.broker.config.keys import ConfigError

    if host == "":
        raise click.BadParameter("it is empty; 0.0.0.0 means all addresses", param_hint="--host")
    level = LOG_LEVELS[min(verbose, len(LOG_LEVELS) - 1)]
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    properties, origins = _all_settings(config, settings, allow_unauthenticated)
    if host is not None or port is not None:
        properties.pop("listeners", None)
    if embedded:
        properties = _embedded(properties)
        port, as_json = port or 0, True
    elif data_dir is None and not properties.keys() & {"log.dirs", "log.dir"}:
        data_dir = DEFAULT_DATA_DIR
    host, port = DEFAULT_HOST if host is None else host, DEFAULT_PORT if port is None else port
    try:
        with monitoring_ports(state, metrics, ui, properties) as ports:
            if embedded or faults is not None:
                run_controlled(data_dir, host, port, properties, as_json, faults, embedded, ports)
            else:
                run(data_dir, host, port, properties, as_json, ports=ports)
    except ConfigError as error:
        typed = f"{origins[error.name]}={error.value}: {error.problem}" if error.name in origins else str(error)
        raise CliError(typed, USAGE) from error


def _all_settings(
    config: str | None, given: tuple[tuple[str, str], ...], allow_unauthenticated: bool
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the settings from all sources, and the origin of each setting, for example `-X num.partitions`."""
    from hmb.broker.config.names import VARIABLES, environment_properties, unknown_names, unknown_variables

    properties = read_settings(config)
    origins = {name: f"{config}: {name}" for name in properties}
    properties |= plain_values(environment_properties(os.environ), "environment: ")
    origins |= {name: variable for variable, name in VARIABLES.items() if variable in os.environ}
    properties |= dict(given)
    origins |= {name: f"-X {name}" for name, _ in given}
    if allow_unauthenticated:
        properties["allow.unauthenticated"] = "true"
    for warning in [*unknown_names(properties), *unknown_variables(os.environ)]:
        click.echo(f"hmb: {warning}", err=True)
    return properties, origins


def _embedded(properties: dict[str, str]) -> dict[str, str]:
    """Return the settings of --embedded together with `properties`.

    If both contain a setting, use the value in `properties`.
    """
    from hmb.testing.settings import EMBEDDED_DEFAULTS, setting_text

    return {name: setting_text(name, value) for name, value in EMBEDDED_DEFAULTS.items()} | properties


def run_controlled(
    data_dir: str | None,
    host: str,
    port: int,
    properties: dict[str, str],
    as_json: bool,
    faults: str | None,
    ends_with_parent: bool,
    ports: MonitoringPorts | None = None,
) -> None:
    """Run a broker with a control port. Through this port, a test makes the broker fail on purpose.

    `faults` is the path of a file, or None. The file describes errors and delays, for example an error in the
    responses to Produce requests. They are active from the start of the broker.

    Raises ConfigError and CliError.
    """
    from hmb.broker.handlers import HANDLERS

    from .shared.control import control_port, end_with_parent

    handlers = dict(HANDLERS)
    # A new thread inherits the blocked signals of the thread that starts it, and `control_port` starts threads. So
    # block the signals before the call of `control_port`. The function `run` blocks them too late for these threads.
    with _blocked(STOP_SIGNALS), control_port(handlers, faults) as control:
        if ends_with_parent:
            end_with_parent()
        run(data_dir, host, port, properties, as_json, handlers, control, ports)


def run(
    data_dir: str | None,
    host: str,
    port: int,
    properties: dict[str, str],
    as_json: bool,
    handlers: Mapping[ApiKey, Handler] | None = None,
    control: ControlPort | None = None,
    ports: MonitoringPorts | None = None,
) -> None:
    """Start a broker, print its address, wait for a signal, and stop the broker. Raises ConfigError.

    `handlers` maps each API to the function that answers its requests. If it is None, the broker uses its usual
    functions. `control` is a port through which a test makes the broker fail on purpose. If `control` is not None,
    print its address and its token. `ports` are the HTTP ports of the broker's state, web page and metrics. If
    `ports` is not None, print their URLs.
    """
    from hmb.storage.failure_isolation import Stopped

    sys.setswitchinterval(SWITCH_INTERVAL)
    use_one_arena()
    stop_signals = STOP_SIGNALS
    # If the user has started the broker with `nohup`, SIGHUP (a closed terminal) must not stop the broker.
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        stop_signals = STOP_SIGNALS - {signal.SIGHUP}
    # A blocked signal waits until sigwait() below receives it. Block the signals before any thread starts, because new
    # threads inherit the blocked signals. Do not use a signal handler that sets an Event. Python could run the handler
    # inside Event.wait(), which holds the Event's lock. The handler would then wait for this lock forever.
    with _blocked(stop_signals):
        try:
            clock = None if control is None else control.clock.functions
            with running_broker(data_dir, host, port, properties, stop_signals, handlers, clock) as broker:
                if control is not None:
                    control.attach(broker)
                if ports is not None:
                    ports.start(broker)
                _print_ready(broker, as_json, control, ports)
                received = signal.sigwait(stop_signals)
        except Stopped:
            click.echo("hmb: stopped during the check of the logs; the next start checks them again", err=True)
            received = signal.sigwait(stop_signals)  # The signal that cancelled the start is still pending.
    if received == signal.SIGINT:
        raise KeyboardInterrupt


@contextmanager
def _blocked(signals: set[signal.Signals]) -> Iterator[None]:
    """Block these signals until the `with` block ends. The code in the block can receive them with sigwait().

    At the end, discard the signals that nobody has received. For example, the code receives a first Ctrl-C, and the
    broker begins to stop. Meanwhile, the user presses Ctrl-C again. If the second signal were still pending at the
    end, it would interrupt the process as soon as the signals are no longer blocked.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        while pending := signal.sigpending() & signals:
            signal.sigwait(pending)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _print_ready(
    broker: BrokerServer, as_json: bool, control: ControlPort | None, ports: MonitoringPorts | None
) -> None:
    servers, listeners = broker.bootstrap_servers, [str(listener) for listener in broker.listeners]
    if as_json:
        directory = str(broker.data_dir.resolve())
        opened = {} if control is None else {"control": control.address, "token": control.token}
        opened |= {} if ports is None else ports.urls
        print_json({"bootstrap_servers": servers, "listeners": listeners, "data_dir": directory, **opened})
        return
    line = f"listening on {','.join(listeners)}"
    if servers != ",".join(listeners):
        line += f", advertised as {servers}"
    click.echo(f"{line}, data in {broker.data_dir}")
    if control is not None:
        click.echo(f"control port {control.address}, token {control.token}")
    for name, url in ({} if ports is None else ports.urls).items():
        click.echo(f"{'page' if name == 'ui' else name} at {url}")


@contextmanager
def running_broker(
    data_dir: str | Path | None,
    host: str,
    port: int,
    properties: dict[str, str],
    stop_signals: Set[signal.Signals] = frozenset(),
    handlers: Mapping[ApiKey, Handler] | None = None,
    clock: BrokerClock | None = None,
) -> Iterator[BrokerServer]:
    """Run a broker while the `with` block runs.

    The caller must block the signals `stop_signals` before the call. A blocked signal does not interrupt the
    program, but stays pending. If one of `stop_signals` is pending while the broker starts, the function cancels
    the start and raises Stopped.

    If a setting is wrong, the function raises ConfigError. If the broker cannot use its address or its data
    directory, the function raises CliError.
    """
    from hmb.broker import BrokerServer
    from hmb.broker.handlers import HANDLERS
    from hmb.broker.network.listeners import BindError
    from hmb.storage.clock import SYSTEM_CLOCK
    from hmb.storage.state.identity import DataDirectoryError

    try:
        broker = BrokerServer(
            *(data_dir, host, port, properties, HANDLERS if handlers is None else handlers),
            clock=SYSTEM_CLOCK if clock is None else clock,
        )
        with _watching(stop_signals, broker):
            broker.start()
    except (BindError, DataDirectoryError) as error:
        raise CliError(str(error)) from error
    try:
        yield broker
    finally:
        broker.stop()


@contextmanager
def _watching(signals: Set[signal.Signals], broker: BrokerServer) -> Iterator[None]:
    """Run the `with` block, which starts the broker. Cancel the start if one of `signals` arrives during the block."""
    started = threading.Event()

    def watch() -> None:
        while not started.wait(WATCH_SECONDS):
            if signal.sigpending() & signals:
                broker.cancel_start()
                return

    watcher = threading.Thread(target=watch, name="start-watcher")
    watcher.start()
    try:
        yield
    finally:
        started.set()
        watcher.join()  # This wait ends: `watch` returns as soon as `started` is set.
