"""The directive `session` runs commands while a page is built, and shows them with their output on the page.

For example, a page shows a command that works, and a command that fails as expected:
    ```{session}
    $ hmb topics create weather --partitions 2
    $ hmb topics describe nosuch  # exit code 3
    ```

A line that begins with `$ ` is a shell command. If a line ends with a backslash, the next line belongs to the same
command. All `session` blocks of a page use the same temporary directory and the same broker. The data of this broker is
in the folder `hmb-data` of the temporary directory.

A comment after a command, such as `# exit code 3`, names the expected exit code. Without a comment, the expected exit
code is 0. If a command ends with another exit code, the build fails. A command line that ends with `&` continues in the
background, and the page shows the first output of the command.

The commands of a page use the ports 9092 to 9095. Another program could be using one of these ports during a
build. The directive `session` therefore finds four free ports for each page, for example 9500 to 9503. It runs
the commands with port 9500 instead of 9092, with 9501 instead of 9093, and so on.

The free ports and the path of the temporary directory differ in each build. Before a page shows the output of a
command, the directive replaces the free ports in the output by 9092 to 9095. It also removes the path of the
temporary directory. The page therefore looks the same after each build.

The directive `session` has three options:
- `:files:` contains the paths of files, relative to the page. The directive copies these files into the
  temporary directory before it runs the commands there.
- `:no-broker:` runs the commands without starting a broker.
- `:lines: 10` shows at most 10 lines of the output of each command.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from pygments.lexer import RegexLexer, bygroups
from pygments.token import Generic
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from hmb.defaults import DEFAULT_HOST, DEFAULT_PORT

TIMEOUT = 60.0  # seconds that a command may take
PORTS = 4  # the broker's port and three ports after it, for `hmb sniff`
FIRST_LINE = 30.0  # seconds in which a background command must print a line
EXIT_CODE = re.compile(r"#\s*exit code (\d+)\s*$")
WRAPPER = """\
#!{python}
import hmb.defaults
hmb.defaults.DEFAULT_PORT = {port}
hmb.defaults.DEFAULT_SERVER = "{host}:{port}"
from hmb.cli.entry import run
run()
"""


class CommandFailed(Exception):
    """A command of a page ended with an unexpected exit code, or exceeded the time limit."""


class CommandSession:
    """Runs the commands of one page in a temporary directory, and starts a broker if the commands need one."""

    def __init__(self) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="hmb-docs-"))
        self.directory = self._root / "home"
        for directory in (self.directory, self._root / "tmp", self._root / "bin"):
            directory.mkdir()
        self._port = _free_ports()
        command = self._root / "bin" / "hmb"
        command.write_text(WRAPPER.format(python=sys.executable, host=DEFAULT_HOST, port=self._port))
        command.chmod(0o755)
        paths = [str(self._root / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HMB_", "XDG_", "COLUMNS"))}
        self._environment = kept | {"PATH": os.pathsep.join(paths), "TMPDIR": str(self._root / "tmp")}
        self._environment |= {"NO_COLOR": "1", "TERM": "dumb", "LC_ALL": "C.UTF-8", "HOME": str(self.directory)}
        self._background: list[subprocess.Popen[bytes]] = []
        self._broker: subprocess.Popen[bytes] | None = None

    def start_broker(self) -> None:
        """Start a broker for the page's commands, unless this broker already runs.

        Raises CommandFailed if the broker does not start.
        """
        if self._broker is None:
            self._broker, output = self._start("hmb broker --data-dir hmb-data")
            if not output.startswith("listening"):
                raise CommandFailed(f"the broker did not start: {output}")

    def run(self, command: str) -> str:
        """Run a command and return its output. Raises CommandFailed if the exit code is not the expected one."""
        if command.endswith("&"):
            return self._shown(self._start(command.removesuffix("&"))[1])
        comment = EXIT_CODE.search(command)
        expected = int(comment[1]) if comment else 0
        process = self._popen(command, subprocess.PIPE)
        try:
            output, _ = process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            _end(process, signal.SIGKILL)
            raise CommandFailed(f"{command!r} took more than {TIMEOUT:g} s") from None
        if process.returncode != expected:
            raise CommandFailed(f"{command!r} ended with exit code {process.returncode}:\n{output.decode()}")
        return self._shown(output.decode())

    def close(self) -> None:
        """End all background commands, and remove the temporary directory."""
        for process in self._background:
            _end(process, signal.SIGINT)
        shutil.rmtree(self._root, ignore_errors=True)

    def _popen(self, command: str, output: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["bash", "-c", _with_ports(command, DEFAULT_PORT, self._port)],
            cwd=self.directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # The command and its children form a group, so that all of them can be ended.
        )

    def _start(self, command: str) -> tuple[subprocess.Popen[bytes], str]:
        """Start a command in the background. Return its process and its first output."""
        path = self._root / f"output-{len(self._background)}"
        with path.open("wb") as output:
            process = self._popen("trap - INT; exec " + command, output)
        self._background.append(process)
        deadline = time.monotonic() + FIRST_LINE
        while not (text := path.read_text()).endswith("\n"):
            if process.poll() is not None or time.monotonic() > deadline:
                raise CommandFailed(f"{command!r} printed no line: {text}")
            time.sleep(0.02)
        return process, text

    def _shown(self, output: str) -> str:
        """Return the output of a command as the page shows it, without values that differ in each build.

        The method replaces the four real port numbers by 9092 to 9095. For example, if the real ports are 9500 to 9503,
        `port=9501` becomes `port=9093`. The method removes the path of the temporary directory.
        """
        output = _with_ports(output, self._port, DEFAULT_PORT)
        return output.replace(f"{self.directory}/", "").replace(str(self._root), "")


def _with_ports(text: str, before: int, after: int) -> str:
    """Return `text` with new port numbers. The function replaces PORTS consecutive port numbers.

    For example, PORTS is 4, `before` is 9500, and `after` is 9092. The ports 9500 to 9503 become 9092 to
    9095.
    """
    moved = {str(before + n): str(after + n) for n in range(PORTS)}
    return re.sub(r"(:|port=)(\d+)\b", lambda found: found[1] + moved.get(found[2], found[2]), text)


def _free_ports() -> int:
    """Find four consecutive free ports and return the lowest number, for example 9500 for 9500 to 9503.

    Each port number has four digits, like the default port 9092. The columns in the output of a command therefore
    stay aligned.
    """
    first = DEFAULT_PORT + PORTS
    for port in random.sample(range(first, 10_000 - PORTS, PORTS), 50):
        try:
            with ExitStack() as sockets:
                for number in range(port, port + PORTS):
                    sockets.enter_context(socket.create_server((DEFAULT_HOST, number)))
                return port
        except OSError:
            continue
    raise CommandFailed("no free ports")


def _end(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    try:
        os.killpg(process.pid, number)
        process.wait(10)
    except ProcessLookupError:
        process.wait()
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


class SessionLexer(RegexLexer):
    """Highlights the commands of a session. The output of the commands stays plain text."""

    name = "Session"
    tokens: ClassVar[dict[str, Any]] = {
        "root": [
            (r"^(\$ )(.*\n)", bygroups(Generic.Prompt, Generic.Strong)),
            (r".*\n", Generic.Output),
        ]
    }


class SessionDirective(SphinxDirective):
    """Runs the commands of one `session` block, and shows them with their output."""

    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {
        "files": directives.unchanged_required,
        "no-broker": directives.flag,
        "lines": directives.positive_int,
    }

    def run(self) -> list[nodes.Node]:
        session = self.env.temp_data.get("command_session")
        if session is None:
            session = self.env.temp_data["command_session"] = CommandSession()
        for name in self.options.get("files", "").split():
            relative, path = self.env.relfn2path(name)
            self.env.note_dependency(relative)
            shutil.copy(path, session.directory)
        try:
            if "no-broker" not in self.options:
                session.start_broker()
            text = "".join(self._run(session, command) for command in commands(list(self.content)))
        except CommandFailed as error:
            raise self.error(str(error)) from error
        block = nodes.literal_block(text, text, language="session")
        self.set_source_info(block)
        return [block]

    def _run(self, session: CommandSession, command: str) -> str:
        lines = session.run(command).splitlines(keepends=True)
        most = self.options.get("lines", len(lines))
        if len(lines) > most:
            lines = [*lines[:most], "...\n"]
        return f"$ {command}\n" + "".join(lines)


def commands(lines: list[str]) -> list[str]:
    """Return the commands of a session. A command may continue on several lines."""
    found: list[str] = []
    for line in lines:
        if line.startswith("$ "):
            found.append(line.removeprefix("$ "))
        elif found and found[-1].endswith("\\"):
            found[-1] += "\n" + line
        elif line.strip():
            raise CommandFailed(f"{line!r} is not a command: a command begins with `$ `")
    return found


def end_session(app: Sphinx, _doctree: nodes.document) -> None:
    """Close the session of a page after Sphinx has read the page."""
    session = app.env.temp_data.pop("command_session", None)
    if session is not None:
        session.close()


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_lexer("session", SessionLexer)
    app.add_directive("session", SessionDirective)
    app.connect("doctree-read", end_session)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
