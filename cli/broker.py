"""`hmb broker`: settings from all their places, then a broker until somebody stops it.

Later places win: `server.properties` (--config), the environment (HMB_LOG_SEGMENT_BYTES for log.segment.bytes), -X,
and the options that have a name of their own. SIGTERM, Ctrl-C and the end of the terminal (SIGHUP, unless nohup has
the broker ignore it) stop it cleanly, also while it starts, which takes long where much has to be checked.
"""

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator, Set
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hmb.defaults import DEFAULT_DATA_DIR, DEFAULT_HOST, DEFAULT_PORT

from .common import USAGE, CliError, IntRange, NewPath, json_option, name_value, print_json

if TYPE_CHECKING:
    from hmb.broker import Broker

WATCH_SECONDS = 0.1  # between looks for a signal during the start
# Seconds after which a thread asks for the interpreter that another one has.  A thread that serves a request gives it
# away by itself within some 0.1 ms, at its next system call.  With Python's own 0.005 a thousand busy connections spend
# their time asking: 1,512 requests/s of one connection's 8,104; with this 5,533 (bench/scenarios/connections.py).
SWITCH_INTERVAL = 0.1
STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}  # SIGHUP: the terminal was closed


@click.command()
@click.option("--host", help=f"The address to listen on.  [default: {DEFAULT_HOST}]")
@click.option("--port", type=IntRange(0, 65535), help=f"The port; 0: any free one.  [default: {DEFAULT_PORT}]")
@click.option("--data-dir", type=NewPath(), help=f"Where the log is kept.  [default: {DEFAULT_DATA_DIR}]")
@click.option("--config", type=NewPath(), help="A server.properties file as Kafka has them.")
@click.option("-X", "settings", type=name_value, multiple=True, metavar="NAME=VALUE", help="A setting, as in Kafka.")
@click.option("-v", "--verbose", is_flag=True, help="Log what the broker does on standard error.")
@json_option
def command(
    host: str | None,
    port: int | None,
    data_dir: str | None,
    config: str | None,
    settings: tuple[tuple[str, str], ...],
    verbose: bool,
    as_json: bool,
) -> None:
    """Run a broker until it is stopped.

    Prints its address on standard output once it accepts connections.
    """
    from hmb.broker.config.keys import ConfigError

    if host == "":
        raise click.BadParameter("it is empty; 0.0.0.0 stands for all addresses", param_hint="--host")
    level = logging.INFO if verbose else logging.WARNING
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    properties, origins = _all_settings(config, settings)
    if host is not None or port is not None:
        properties.pop("listeners", None)
    if data_dir is None and not properties.keys() & {"log.dirs", "log.dir"}:
        data_dir = DEFAULT_DATA_DIR
    host, port = DEFAULT_HOST if host is None else host, DEFAULT_PORT if port is None else port
    try:
        run(data_dir, host, port, properties, as_json)
    except ConfigError as error:
        typed = f"{origins[error.name]}={error.value}: {error.problem}" if error.name in origins else str(error)
        raise CliError(typed, USAGE) from error


def _all_settings(config: str | None, given: tuple[tuple[str, str], ...]) -> tuple[dict[str, str], dict[str, str]]:
    """Settings from all places, and where each of them comes from, as the user wrote it there."""
    from hmb.broker.config.names import VARIABLES, environment_properties, unknown_names, unknown_variables
    from hmb.storage.properties import PropertiesError, read_properties

    try:
        properties = {} if config is None else read_properties(Path(config))
    except PropertiesError as error:
        raise CliError(str(error)) from error
    origins = {name: f"{config}: {name}" for name in properties}
    properties |= environment_properties(os.environ)
    origins |= {name: variable for variable, name in VARIABLES.items() if variable in os.environ}
    properties |= dict(given)
    origins |= {name: f"-X {name}" for name, _ in given}
    for warning in [*unknown_names(properties), *unknown_variables(os.environ)]:
        click.echo(f"hmb: {warning}", err=True)
    return properties, origins


def run(data_dir: str | None, host: str, port: int, properties: dict[str, str], as_json: bool) -> None:
    """Start, say so, wait for a signal, stop.  Raises ConfigError."""
    from hmb.storage.recovery import Stopped

    sys.setswitchinterval(SWITCH_INTERVAL)
    stop_signals = STOP_SIGNALS
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # nohup: the broker outlives its terminal
        stop_signals = STOP_SIGNALS - {signal.SIGHUP}
    # Blocked before any thread starts, and waited for below: a handler would run in the middle of anything; one that
    # sets an Event while this thread begins to wait for it would wait for itself.
    with _blocked(stop_signals):
        try:
            with running_broker(data_dir, host, port, properties, stop_signals) as broker:
                _print_ready(broker, as_json)
                received = signal.sigwait(stop_signals)
        except Stopped:
            click.echo("hmb: stopped while the logs were checked; the next start checks them again", err=True)
            received = signal.sigwait(stop_signals)  # it is still there
    if received == signal.SIGINT:
        raise KeyboardInterrupt


@contextmanager
def _blocked(signals: set[signal.Signals]) -> Iterator[None]:
    """Keeps signals waiting; those that nobody has waited for, sent again during the stop, are dropped at the end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        while pending := signal.sigpending() & signals:
            signal.sigwait(pending)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _print_ready(broker: "Broker", as_json: bool) -> None:
    servers, listeners = broker.bootstrap_servers, [str(listener) for listener in broker.listeners]
    if as_json:
        directory = str(broker.data_dir.resolve())
        print_json({"bootstrap_servers": servers, "listeners": listeners, "data_dir": directory})
        return
    line = f"listening on {','.join(listeners)}"
    if servers != ",".join(listeners):
        line += f", advertised as {servers}"
    click.echo(f"{line}, data in {broker.data_dir}")


@contextmanager
def running_broker(
    data_dir: str | Path | None,
    host: str,
    port: int,
    properties: dict[str, str],
    stop_signals: Set[signal.Signals] = frozenset(),
) -> "Iterator[Broker]":
    """A broker, stopped at the end; what keeps it from starting becomes one line.

    Raises ConfigError, and Stopped when one of the signals, which are blocked, has come while it started.
    """
    from hmb.broker import Broker
    from hmb.broker.network.listeners import BindError
    from hmb.storage.log_manager import DataDirectoryError

    try:
        broker = Broker(data_dir=data_dir, host=host, port=port, config=properties)
        with _watching(stop_signals, broker):
            broker.start()
    except (BindError, DataDirectoryError) as error:
        raise CliError(str(error)) from error
    try:
        yield broker
    finally:
        broker.stop()


@contextmanager
def _watching(signals: Set[signal.Signals], broker: "Broker") -> Iterator[None]:
    """Cancels the start when one of the signals is waiting."""
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
        watcher.join()
