"""`hmb ui`: print the link to the page of a running broker, and open it in a browser."""

from __future__ import annotations

import os
import sys
import webbrowser

import click

from ..shared.output import json_option, print_json
from .source import fetch_state, find_page, source_options


@click.command()
@click.option("--no-browser", is_flag=True, help="Print the link, but open no browser.")
@source_options
@json_option
def command(no_browser: bool, state_url: str | None, data_dir: str | None, as_json: bool) -> None:
    """Open the page of a broker that was started with `hmb broker --ui`.

    The command prints the link with its token, and opens it in a browser. In a pipe, it only prints the link.
    """
    link = find_page(state_url, data_dir)
    fetch_state(link.replace("/?", "/state?", 1))  # This raises an error if the broker does not run any more.
    if as_json:
        print_json({"ui": link})
    else:
        click.echo(link)
    has_screen = sys.platform in ("darwin", "win32") or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    if not (no_browser or as_json) and sys.stdout.isatty() and has_screen:
        webbrowser.open(link)
