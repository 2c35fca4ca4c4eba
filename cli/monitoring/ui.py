"""`hmb ui`: print the link to the page of a running broker, and open it in a browser.

A broker of HMB that was started with `--ui` serves a page that shows its state. Other brokers, such as Apache
Kafka, have no page. If the user names a broker with the option -b, `hmb ui` therefore serves a page itself
until Ctrl-C. This page shows what the APIs of the broker report.
"""

from __future__ import annotations

import os
import sys
import threading
import webbrowser

import click

from hmb.defaults import DEFAULT_HOST, DEFAULT_UI_PORT

from ..shared.client_options import ClientConfig
from ..shared.errors import CliError
from ..shared.output import json_option, print_json
from ..shared.parameters import IntRange
from .source import StateSource, check_runs, find_page, remote_broker, source_options


@click.command()
@click.option("--no-browser", is_flag=True, help="Print the link, but open no browser.")
@click.option(
    "--port", type=IntRange(0, 65535), default=None,
    help=f"With -b: the port of the page; 0 selects a free port.  [default: {DEFAULT_UI_PORT}]",
)
@source_options
@json_option
def command(no_browser: bool, port: int | None, source: StateSource, as_json: bool) -> None:
    """Open the page of a broker that was started with `hmb broker --ui`, or of any broker (-b).

    The command prints the link with its token, and opens it in a browser. If the output is not a terminal, the command
    only prints the link. With -b, the command serves the page on this computer until Ctrl-C.
    """
    if source.client is not None:
        _serve(source.client, DEFAULT_UI_PORT if port is None else port, no_browser, as_json)
        return
    if port is not None:
        raise click.UsageError("--port belongs to -b: without -b, the broker serves the page")
    link = find_page(source.state_url, source.data_dir)
    check_runs(link)
    _show(link, no_browser, as_json)


def _show(link: str, no_browser: bool, as_json: bool) -> None:
    if as_json:
        print_json({"ui": link})
    else:
        click.echo(link)
    has_screen = sys.platform in ("darwin", "win32") or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    if not (no_browser or as_json) and sys.stdout.isatty() and has_screen:
        webbrowser.open(link)


def _serve(client: ClientConfig, port: int, no_browser: bool, as_json: bool) -> None:
    """Serve the page of a broker until Ctrl-C. Raises CliError."""
    from hmb.monitoring.remote.page import RemotePage

    with remote_broker(client) as broker:
        try:
            page = RemotePage(broker, port)
        except ConnectionError:
            raise  # A failed connection to the broker is also an OSError, but not a problem of the port.
        except OSError as error:
            problem = f"cannot open {DEFAULT_HOST}:{port} for the page: {error.strerror}; choose another --port"
            raise CliError(problem) from error
        page.start()
        try:
            _show(page.url, no_browser, as_json)
            threading.Event().wait()
        finally:
            page.stop()
