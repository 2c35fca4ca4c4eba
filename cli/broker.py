"""`hmb broker`: settings from all their places, then a broker until somebody stops it.

Later places win: `server.properties` (--config), the environment (HMB_LOG_SEGMENT_BYTES for log.segment.bytes), -X,
and the options that have a name of their own. SIGTERM and Ctrl-C stop the broker cleanly.
"""

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hmb.defaults import DEFAULT_DATA_DIR, DEFAULT_HOST, DEFAULT_PORT

from .common import CliError, json_option, name_value, print_json

if TYPE_CHECKING:
    from hmb.broker import Broker

STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}  # SIGHUP: the terminal was closed


@click.command()
@click.option("--host", help=f"The address to listen on.  [default: {DEFAULT_HOST}]")
@click.option("--port", type=click.IntRange(0, 65535), help=f"The port; 0: any free one.  [default: {DEFAULT_PORT}]")
@click.option("--data-dir", type=click.Path(), help=f"Where the log is kept.  [default: {DEFAULT_DATA_DIR}]")
@click.option("--config", type=click.Path(), help="A server.properties file as Kafka has them.")
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
    from hmb.broker.config import environment_properties, unknown_names
    from hmb.storage.properties import PropertiesError, read_properties

    level = logging.INFO if verbose else logging.WARNING
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        properties = read_properties(Path(config)) if config else {}
    except PropertiesError as error:
        raise CliError(str(error)) from error
    properties |= environment_properties(os.environ)
    properties |= dict(settings)
    for warning in unknown_names(properties):
        click.echo(f"hmb: {warning}", err=True)
    if host is not None or port is not None:
        properties.pop("listeners", None)
    if data_dir is None:
        data_dir = properties.get("log.dirs") or properties.get("log.dir") or DEFAULT_DATA_DIR
    run(data_dir, host or DEFAULT_HOST, DEFAULT_PORT if port is None else port, properties, as_json)


def run(data_dir: str, host: str, port: int, properties: dict[str, str], as_json: bool) -> None:
    """Start, say so, wait for a signal, stop."""
    # Blocked before any thread starts, and waited for below: a handler would run in the middle of anything; one that
    # sets an Event while this thread begins to wait for it would wait for itself.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    with running_broker(Path(data_dir), host, port, properties) as broker:
        if as_json:
            print_json({"bootstrap_servers": broker.bootstrap_servers, "data_dir": str(Path(data_dir).resolve())})
        else:
            click.echo(f"listening on {broker.bootstrap_servers}, data in {data_dir}")
        received = signal.sigwait(STOP_SIGNALS)
    if received == signal.SIGINT:
        raise KeyboardInterrupt


@contextmanager
def running_broker(data_dir: Path, host: str, port: int, properties: dict[str, str]) -> "Iterator[Broker]":
    """A broker, stopped at the end; what keeps it from starting becomes one line."""
    from hmb.broker import Broker
    from hmb.broker.config import ConfigError
    from hmb.broker.listeners import BindError
    from hmb.storage.log_manager import DataDirectoryError

    try:
        broker = Broker(data_dir=data_dir, host=host, port=port, config=properties).start()
    except (ConfigError, BindError, DataDirectoryError) as error:
        raise CliError(str(error)) from error
    try:
        yield broker
    finally:
        broker.stop()
