"""Get a broker's state for `hmb state`, `hmb top` and `hmb ui`.

The user can name the source of the state in three ways:
    --state-url URL   the address that a broker of HMB has printed
    --data-dir DIR    the data directory of a broker of HMB, which contains a file with this address
    -b HOST:PORT      the address of a broker of HMB or of Apache Kafka; the command reads the state through its APIs
"""

from __future__ import annotations

import functools
import http.client
import json
from base64 import b64encode
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import Request, urlopen

import click

from hmb.defaults import DEFAULT_DATA_DIR, HEALTH_PATH, SLOWEST_REQUESTS_PATH, STATE_FILE

from ..shared.client_options import ClientConfig, admin_settings, client_config
from ..shared.errors import NOT_FOUND, UNREACHABLE, USAGE, CliError
from ..shared.parameters import NewPath, servers
from ..shared.settings import setting

if TYPE_CHECKING:
    from hmb.monitoring.remote.reader import RemoteBroker

TIMEOUT = 30  # seconds
State: TypeAlias = dict[str, Any]  # the JSON of hmb.monitoring.state.BrokerState
# If a broker's state lacks the data about single requests, `state["missing"]` contains the reason under this key.
SINGLE_REQUESTS = "single requests"


class Fetch(Protocol):
    """A function that fetches the state of a broker. It raises CliError."""

    def __call__(self, seconds: int = 0) -> State:
        """Fetch the state. If `seconds` is not 0, also fetch the slowest requests of each API.

        Normally, a broker does not record its requests. A call with `seconds` starts a recording, or extends one that
        is already running. The recording ends `seconds` seconds after the last such call.

        The call does not wait for the end of the recording. It returns the slowest requests that the broker has
        recorded so far, in `state["slowest"]`. The first call therefore usually finds none.
        """


@dataclass(frozen=True)
class StateSource:
    """The source of a broker's state: a URL, a data directory with the URL in a file, or Kafka's APIs."""

    state_url: str | None
    data_dir: str | None
    client: ClientConfig | None

    @contextmanager
    def opened(self) -> Iterator[Fetch]:
        """Yield a function that fetches the broker's state. Raises CliError if the source has no valid URL."""
        if self.client is None:
            yield functools.partial(fetch_state, find_url(self.state_url, self.data_dir))
            return
        with remote_broker(self.client) as broker:
            yield functools.partial(_read_state, broker)


def source_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name the source. The command receives them as one argument, `source: StateSource`."""

    @click.option("--state-url", envvar="HMB_STATE_URL",
        help="The link to the broker's state, as the broker printed it. The link must contain the token.")
    @click.option(
        "--data-dir", type=NewPath(),
        help=f"The broker's data directory, which contains the link.  [default: {DEFAULT_DATA_DIR}]",
    )
    @click.option(
        "-b", "--bootstrap-server", "servers", type=servers, metavar="HOST:PORT",
        help="Read the state of any broker, for example Apache Kafka, through Kafka's APIs. The output lists the data "
        "that these APIs do not report.",
    )
    @click.option("-X", "settings", type=setting, multiple=True, metavar="NAME=VALUE",
        help="With -b: a setting of the client that connects to the broker, for example security.protocol=SSL.")
    @click.option("--command-config", "config", type=NewPath(), metavar="FILE",
        help="With -b: a client.properties file, in the format of Kafka's tools.")
    @functools.wraps(command)
    def run(
        *arguments: Any,
        state_url: str | None,
        data_dir: str | None,
        servers: str | None,
        settings: tuple[tuple[str, str], ...],
        config: str | None,
        **options: Any,
    ) -> None:
        client = None
        if servers is not None:
            if data_dir is not None or _is_given("state_url"):
                raise click.UsageError("-b already names the broker: leave out --data-dir and --state-url")
            client = client_config(admin_settings(), servers, config, settings)
        elif settings or config is not None:
            raise click.UsageError("-X and --command-config belong to -b: name a broker with -b")
        command(*arguments, source=StateSource(state_url, data_dir, client), **options)

    return run  # fmt: skip


def _is_given(name: str) -> bool:
    source = click.get_current_context().get_parameter_source(name)
    return source is click.core.ParameterSource.COMMANDLINE


@contextmanager
def remote_broker(client: ClientConfig) -> Iterator[RemoteBroker]:
    """Yield a reader for the state of a broker, and close the reader afterwards. `client` names the broker."""
    from hmb.monitoring.remote.reader import RemoteBroker

    broker = RemoteBroker(client.servers, **client.keywords)
    try:
        yield broker
    finally:
        broker.close()


def _read_state(broker: RemoteBroker, seconds: int = 0) -> State:
    """Read the state through the APIs of a broker. Raises CliError.

    `_read_state` ignores the number `seconds`, because no Kafka API reports single requests. In `fetch_state`, this
    number is the time for which the broker must record single requests.
    """
    from hmb.client import ConnectionFailed
    from hmb.monitoring.state import as_json
    from hmb.protocol.errors import KafkaError

    try:
        state: State = as_json(broker.state())
    except ConnectionFailed as error:
        raise CliError(str(error), UNREACHABLE) from error
    except KafkaError as error:
        raise CliError(error.message) from error
    return state


def find_url(state_url: str | None, data_dir: str | None) -> str:
    """Return the address of a broker's state. Raises CliError."""
    if state_url is not None:
        if data_dir is not None:
            raise click.UsageError("--state-url already names the broker: leave out --data-dir")
        if not state_url.startswith(("http://", "https://")):
            what = f"--state-url {state_url!r} is not a link to the state of a broker"
            raise CliError(f"{what}; copy the link that the broker printed", USAGE)
        return state_url
    return _address_in(data_dir, "state", "--state 0")


def find_page(state_url: str | None, data_dir: str | None) -> str:
    """Return the link to a broker's web page. Raises CliError.

    If `state_url` is None, the function reads the link from a file in the broker's data directory `data_dir`.

    Otherwise, `state_url` is an address that the broker serves, such as `http://localhost:8080/state`. The function
    replaces the path of this address by `/`, and returns `http://localhost:8080/`. The broker must serve its state
    and its web page on the same port.
    """
    if state_url is None:
        return _address_in(data_dir, "ui", "--ui")
    parts = urlsplit(find_url(state_url, data_dir))
    return urlunsplit(parts._replace(path="/"))


def _address_in(data_dir: str | None, name: str, option: str) -> str:
    """Return an address from the file that a broker has written into its data directory. Raises CliError."""
    path = Path(data_dir or DEFAULT_DATA_DIR) / STATE_FILE
    what = {"state": "its state", "ui": "a page"}[name]
    hint = f"start the broker with `hmb broker {option}`, or name it with --data-dir or --state-url"
    try:
        found: str | None = json.loads(path.read_text(encoding="utf-8")).get(name)
    except FileNotFoundError:
        raise CliError(f"no broker serves {what} from {path.parent}: {hint}", NOT_FOUND) from None
    except (OSError, ValueError, AttributeError) as error:
        raise CliError(f"cannot read the address in {path}: {error}") from error
    if found is None:
        raise CliError(f"the broker with the data directory {path.parent} serves no page: {hint}", NOT_FOUND)
    return found


def fetch_state(url: str, seconds: int = 0) -> State:
    """Fetch the state of a broker from the address `url`. Raises CliError if the state cannot be fetched.

    The broker records requests only on demand. If `seconds` is not 0, the function fetches the slowest requests of
    the recording so far. The same call makes the broker record for at least `seconds` more seconds, so that later
    calls find requests. A number above 600 counts as 600.

    If only the slowest requests cannot be fetched, `state["missing"]` contains the reason.
    """
    state: State = _get_json(url)
    if seconds:
        parts = urlsplit(url)
        query = f"{parts.query}&seconds={seconds}"
        try:
            state["slowest"] = _get_json(urlunsplit(parts._replace(path=SLOWEST_REQUESTS_PATH, query=query)))
        except CliError as error:
            state["missing"].setdefault(SINGLE_REQUESTS, str(error))
    return state


def _get_json(url: str) -> Any:
    """Fetch a JSON object. Raises CliError."""
    try:
        return json.loads(_get(url))
    except ValueError as error:
        raise CliError(f"the server at {_place(url)} sends no state: {error}", UNREACHABLE) from error


def check_runs(link: str) -> None:
    """Raise CliError if the broker that serves the web page `link` does not run any more."""
    _get(urlunsplit(urlsplit(link)._replace(path=HEALTH_PATH, query="")), accepts=(HTTPStatus.SERVICE_UNAVAILABLE,))


def _get(url: str, accepts: Collection[int] = ()) -> bytes:
    """Send a GET request to `url`, and return the body of the response.

    The address can contain a name and a password, as in `https://alice:secret@host:9080/state`. The function sends
    both in the header Authorization.

    Raises CliError if the request fails, or if the status of the response is an error. If `accepts` contains this
    status, the function returns an empty body instead.
    """
    parts = urlsplit(url)
    request = Request(f"{_place(url)}?{parts.query}")
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        request.add_header("Authorization", f"Basic {b64encode(login.encode()).decode()}")
    try:
        with urlopen(request, timeout=TIMEOUT) as response:
            body: bytes = response.read()
            return body
    except HTTPError as error:
        if error.code in accepts:
            return b""
        raise CliError(_reason(error), USAGE) from error
    except (URLError, OSError, http.client.HTTPException, ValueError) as error:
        why = error.reason if isinstance(error, URLError) else error
        raise CliError(f"no broker serves its state at {_place(url)}: {why}", UNREACHABLE) from error


def _place(url: str) -> str:
    """Return an address without the token and the password that it may contain."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query=""))


def _reason(error: HTTPError) -> str:
    try:
        return str(json.load(error)["error"])
    except (ValueError, KeyError, TypeError):
        return f"the server responded with status {error.code}; is this the address that the broker printed?"
