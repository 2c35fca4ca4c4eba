"""The plugin for pytest inside the process of a check: it loads the answer, sets the limits, and reports each result.

Each limit turns a mistake into a message that names the requirement:

- time: `signal.setitimer` raises TooSlow in the answer
- memory: the answer gets MemoryError (RLIMIT_AS)
- files and output: a file cannot grow above 16 MB (RLIMIT_FSIZE)
- processes and threads: at most 128 more than before (RLIMIT_NPROC, which does not limit root)
- places: an audit hook (PEP 578) refuses to write, rename or delete outside of the check's folder
"""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import random
import resource
import signal
import sys
import traceback
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest

from .checking import EVENTS

REQUIREMENT_TIMEOUT = 20  # seconds
MEMORY = 2 << 30  # bytes of address space, which includes the interpreter and its libraries
FILE_SIZE = 16 << 20  # bytes
THREADS = 128  # threads and processes that an answer may start
WRITING_EVENTS = {"os.remove": 0, "os.rename": 1, "os.rmdir": 0, "os.mkdir": 0, "os.truncate": 0, "shutil.rmtree": 0}


class TooSlow(BaseException):
    """A requirement took too long. Not an Exception, so that `except Exception` in an answer does not catch it."""


class Events:
    """The file in which the process of a check writes what happens. The command reads this file at the end."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def write(self, **event: str | None) -> None:
        self._file.write(json.dumps(event) + "\n")
        self._file.flush()


class RequirementsPlugin:
    """Writes three kinds of events: the requirements that will be checked, and the beginning and the end of each."""

    def __init__(self, events: Events, answer: ModuleType) -> None:
        self._events, self._answer = events, answer

    @pytest.fixture(scope="session")
    def answer(self) -> ModuleType:
        """The student's module."""
        return self._answer

    @pytest.fixture
    def rng(self) -> random.Random:
        """The source of the random cases. The seed is the student's own."""
        return random.Random(int(os.environ["HMB_LAB_SEED"]))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            self._events.write(planned=requirement(item))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._events.write(begun=requirement(item))
        signal.signal(signal.SIGALRM, too_slow)
        signal.setitimer(signal.ITIMER_REAL, REQUIREMENT_TIMEOUT)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        if call.when == "call" or call.excinfo is not None:
            error = None if call.excinfo is None else explain(call.excinfo.value)
            self._events.write(ended=requirement(item), error=error)
        return (yield)


def requirement(item: pytest.Item) -> str:
    """Return the requirement: the docstring of its test, on one line."""
    function = getattr(item, "function", None)
    return " ".join((getattr(function, "__doc__", None) or item.name).split())


def too_slow(number: int, frame: FrameType | None) -> None:
    raise TooSlow


def explain(error: BaseException) -> str:
    """Say what an answer did wrong: the message of a check, or an exception with the line of the answer."""
    match error:
        case AssertionError() if not place(error):
            return str(error) or "the check fails"
        case TooSlow():
            return f"not done after {REQUIREMENT_TIMEOUT} s{place(error)}"
        case MemoryError():
            return f"needs more than {MEMORY >> 30} GB of memory{place(error)}"
        case OSError(errno=errno.EFBIG):
            return f"writes or prints more than {FILE_SIZE >> 20} MB{place(error)}"
        case _:
            return f"{type(error).__name__}: {error}{place(error)}"


def place(error: BaseException) -> str:
    """Return the line of the answer that raised an error, in words; empty if the answer did not raise it."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return ""
    ours = [frame for frame in frames if Path(frame.filename).name == "answer.py"]
    is_check = Path(frames[-1].filename).name == "check.py"
    return f" (answer.py, line {ours[-1].lineno}, in {ours[-1].name})" if ours and not is_check else ""


def load(path: Path, events: Events) -> ModuleType:
    """Import the answer. Report an error in it, and end the process."""
    spec = importlib.util.spec_from_file_location("answer", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules["answer"] = importlib.util.module_from_spec(spec)
    signal.signal(signal.SIGALRM, too_slow)
    signal.setitimer(signal.ITIMER_REAL, REQUIREMENT_TIMEOUT)
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        events.write(broken=f"answer.py, line {error.lineno}: {error.msg}")
    except (Exception, SystemExit, TooSlow) as error:  # noqa: BLE001  # whatever the student's module raises
        events.write(broken=f"answer.py cannot be imported: {explain(error)}")
    else:
        return module
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    pytest.exit("the answer cannot be imported", returncode=2)


def running_threads() -> int:
    """Return how many threads all processes of this user have. Linux counts them for RLIMIT_NPROC."""
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # The process has ended, or hides its threads.
            if process.stat().st_uid == os.getuid():
                count += len(list((process / "task").iterdir()))
    return count


def limit(folder: Path) -> None:
    """Set the limits of this process and of all processes that the answer starts."""
    for what, value in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_FSIZE, FILE_SIZE), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(what, (value, value))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_NPROC, (running_threads() + THREADS,) * 2)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # A write above the limit then raises OSError.
    root = str(folder.resolve())

    def refuse_other_places(event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            path = args[0]
        elif event in WRITING_EVENTS:
            path = args[WRITING_EVENTS[event]]
        else:
            return
        if isinstance(path, str | bytes | os.PathLike):
            name = os.path.realpath(os.fsdecode(path))
            if not name.startswith((root + "/", "/dev/")) and name != root:
                raise PermissionError(errno.EACCES, "an answer may change files only in the check's folder", name)

    sys.addaudithook(refuse_other_places)


def pytest_configure(config: pytest.Config) -> None:
    folder = Path.cwd()
    events = Events(folder / EVENTS)
    limit(folder)
    config.pluginmanager.register(RequirementsPlugin(events, load(folder / "answer.py", events)))
