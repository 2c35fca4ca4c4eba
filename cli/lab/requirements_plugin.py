"""A plugin for pytest. It imports a student's answer, limits what the answer can do, and reports the results.

A mistake in the student's program (the answer) can harm the student's machine. The plugin therefore sets
limits. Each test checks one requirement of the exercise. If the answer exceeds a limit in a test, the student
reads an error message for this requirement. These are the limits:
- time: after 20 s, a timer (`signal.setitimer`) raises the exception TooSlow in the answer
- processor time: the system ends the process after 25 s of processor time in one test (RLIMIT_CPU), because the
  timer cannot interrupt a long call of C code
- memory: above 2 GB, Python raises MemoryError (RLIMIT_AS)
- files and output: no file can become larger than 16 MB (RLIMIT_FSIZE)
- threads: the answer can start at most 128 threads and processes (RLIMIT_NPROC, only on Linux); the user root
  has no such limit
- processes: the answer and its forks can start at most 100 processes; an audit hook (PEP 578) checks this, also
  for the user root
- folders: the answer can change files only in the folder of the check; a second audit hook checks this

A student's answer can call `os.fork`, which copies the process that runs the tests. The new process would then
run the remaining tests a second time, and each of these tests would have two results. The plugin therefore ends
the new process at the end of the current test. It ignores the results of the new process.
"""

from __future__ import annotations

import ast
import errno
import importlib.util
import json
import linecache
import mmap
import os
import random
import reprlib
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

from .checking import ANSWER_NAME, CHECK, EVENTS, SEED_VARIABLE

REQUIREMENT_TIMEOUT = 20  # the longest time (seconds) that the test of one requirement may take
# The processor time (seconds) that all threads together may use in the test of one requirement.
PROCESSOR_TIME = REQUIREMENT_TIMEOUT + 5
MEMORY = 2 << 30  # bytes of address space, including Python's interpreter and its libraries
FILE_SIZE = 16 << 20  # the greatest size (bytes) of a file that an answer may write
PRINTED = 1000  # For each requirement, the plugin reports only the last 1,000 characters that the answer has printed.
THREADS = 128  # the number of threads and processes that an answer may start
PROCESSES = 100  # the number of processes that an answer and its forks may start
SHORT = reprlib.Repr()  # shows long arguments with `...` in the middle
SHORT.maxstring = SHORT.maxother = 60
SHORT.maxlist = SHORT.maxdict = 8
STARTING_EVENTS = {"os.fork", "os.forkpty", "os.posix_spawn", "os.system", "subprocess.Popen"}
# These functions change files. Python reports each call as an audit event with the arguments of the call. Each number
# is the index of an argument that contains the path of a changed file. For example, os.rename("a", "b") removes the
# path "a" (argument 0) and creates the path "b" (argument 1).
WRITING_EVENTS = {
    "os.remove": (0,), "os.rename": (0, 1), "os.rmdir": (0,), "os.mkdir": (0,), "os.truncate": (0,), "os.link": (1,),
    "os.symlink": (1,), "os.chmod": (0,), "os.chown": (0,), "shutil.rmtree": (0,),
}  # fmt: skip


class TooSlow(BaseException):
    """A test took too long.

    The class does not inherit from Exception. Therefore, `except Exception` in the student's code does not catch
    it.
    """


class TooManyProcesses(OSError):
    """The student's program and its child processes together have started more than PROCESSES processes."""


class Events:
    """Writes events to a file while this process checks a student's answer.

    `hmb lab check` reads the file after this process has ended.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._process = os.getpid()

    def write(self, **event: str | None) -> None:
        if os.getpid() == self._process:
            self._file.write(json.dumps(event) + "\n")
            self._file.flush()

    def end_fork(self) -> None:
        """End the current process if the student's program has created it with `os.fork`.

        A forked process is a copy of the process that runs the tests. Without this method, the copy would run the
        remaining tests a second time.
        """
        if os.getpid() != self._process:
            os._exit(1)


class RequirementsPlugin:
    """Writes events that show how far a check has come.

    Before the first test, the plugin writes one event `planned` for each requirement. It then writes an event `begun`
    when the test of a requirement begins, and an event `ended` when this test ends.
    """

    def __init__(self, events: Events, answer: ModuleType) -> None:
        self._events, self._answer = events, answer

    @pytest.fixture(scope="session")
    def answer(self) -> ModuleType:
        """The student's answer, as an imported module."""
        return self._answer

    @pytest.fixture
    def rng(self) -> random.Random:
        """A generator of random cases, initialized with the student's seed."""
        return random.Random(int(os.environ[SEED_VARIABLE]))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            self._events.write(planned=requirement(item))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._events.write(begun=requirement(item))
        limit_processor_time()
        signal.signal(signal.SIGALRM, too_slow)
        signal.setitimer(signal.ITIMER_REAL, REQUIREMENT_TIMEOUT)
        try:
            return (yield)
        finally:
            self._events.end_fork()
            signal.setitimer(signal.ITIMER_REAL, 0)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        report = yield
        if call.when == "call" or call.excinfo is not None:
            error = None if call.excinfo is None else explain(call.excinfo.value)
            self._events.write(ended=requirement(item), error=error, printed=report.capstdout[-PRINTED:])
        return report


def requirement(item: pytest.Item) -> str:
    """Return the text of a requirement: the docstring of the test function, on one line."""
    function = getattr(item, "function", None)
    return " ".join((getattr(function, "__doc__", None) or item.name).split())


def too_slow(number: int, frame: FrameType | None) -> None:
    raise TooSlow


def explain(error: BaseException) -> str:
    """Return a description of what the answer did wrong.

    If a check failed, this is the message of the check. If the answer raised an exception, the description contains
    the exception, and the line of the answer that raised it.
    """
    match error:
        case AssertionError() if not place(error):
            return str(error) or "the check fails"
        case TooSlow():
            return f"not done after {REQUIREMENT_TIMEOUT} s{place(error)}"
        case TooManyProcesses():
            return f"starts more than {PROCESSES} processes{place(error)}"
        case RuntimeError() if "can't start new thread" in str(error):
            return f"starts too many threads{place(error)}"
        case AttributeError(name=str(name)) if error.obj is sys.modules.get("answer"):
            return f"{answer_name()} does not define {name!r}"
        case OSError() if "reading from stdin" in str(error):
            return f"waits for input from the keyboard, and a check has no keyboard{place(error)}"
        case MemoryError():
            return f"needs more than {MEMORY >> 30} GB of memory{place(error)}"
        case OSError(errno=errno.EFBIG):
            return f"writes or prints more than {FILE_SIZE >> 20} MB{place(error)}"
        case _:
            text = f": {error}" if str(error) else ""
            return f"{failed_call(error)}{type(error).__name__}{text}{place(error)}"


def place(error: BaseException) -> str:
    """Return the line of the answer in which an error was raised, such as ` (answer.py, line 7, in lookup)`.

    If other code has raised the error, return an empty text.
    """
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return ""
    ours = [frame for frame in frames if Path(frame.filename).name == answer_name()]
    is_check = Path(frames[-1].filename).name == CHECK
    return f" ({answer_name()}, line {ours[-1].lineno}, in {ours[-1].name})" if ours and not is_check else ""


def failed_call(error: BaseException) -> str:
    """Return the beginning of an error message, for example `lookup([(9, 100)], 8) raises `.

    A check is a test that calls the functions of a student's answer. `error` is an exception that ended a check or
    the import of the answer.

    - If the check calls a student's function, and this function raises the exception, the text contains the call,
      for example `lookup([(9, 100)], 8)`.
    - If the check itself raises the exception, the text contains the expression that failed. For example, a
      student's function returns None, the check stores this result as `found`, and `found[0]` fails.
    - In all other cases, the text is empty, for example if the import of the answer fails.
    """
    steps = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__) if file_name(frame) == CHECK]
    lines = [each for each in traceback.extract_tb(error.__traceback__) if Path(each.filename).name == CHECK]
    if not steps or not lines:
        return ""
    (frame, _), where = steps[-1], lines[-1]
    if not place(error):
        expression = linecache.getline(where.filename, where.lineno or 0)[where.colno : where.end_colno]
        return f"in the check, `{expression}` raises "
    for node in ast.walk(ast.parse(Path(where.filename).read_text(encoding="utf-8"))):
        is_here = isinstance(node, ast.expr) and (node.lineno, node.col_offset) == (where.lineno, where.colno)
        if is_here and isinstance(node, ast.Call) and node.end_col_offset == where.end_colno:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
            return f"{name}({', '.join(value_of(each, frame) for each in node.args)}) raises "
    return ""


def value_of(argument: ast.expr, frame: FrameType) -> str:
    """Return the value of an argument as text for an error message.

    A test has passed this argument to the student's code. `argument` is the source code of the argument in the
    test, and `frame` contains the variables of the test. A long value is shortened. If the value cannot be
    computed, return the source code.
    """
    source = ast.unparse(argument)
    try:
        starred = isinstance(argument, ast.Starred)
        value = eval(source.removeprefix("*"), frame.f_globals, frame.f_locals)  # noqa: S307  # the check's own code
        return ", ".join(map(SHORT.repr, value)) if starred else SHORT.repr(value)
    except Exception:  # noqa: BLE001  # The source is clear enough.
        return source


def file_name(frame: FrameType) -> str:
    return Path(frame.f_code.co_filename).name


def answer_name() -> str:
    """Return the file name of the answer: `answer.py`, or `second.py` for the second exercise."""
    return os.environ[ANSWER_NAME]


def load(path: Path, events: Events) -> ModuleType:
    """Import the student's answer. If the import fails, write the error to `events`, and end this process at once."""
    spec = importlib.util.spec_from_file_location("answer", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules["answer"] = importlib.util.module_from_spec(spec)
    limit_processor_time()
    signal.signal(signal.SIGALRM, too_slow)
    signal.setitimer(signal.ITIMER_REAL, REQUIREMENT_TIMEOUT)
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        where = path.name if error.lineno is None else f"{path.name}, line {error.lineno}"
        events.write(broken=f"{where}: {error.msg}")
    except (Exception, SystemExit, TooSlow) as error:  # noqa: BLE001  # whatever the student's module raises
        events.write(broken=f"{path.name} cannot be imported: {explain(error)}")
    else:
        return module
    finally:
        events.end_fork()
        signal.setitimer(signal.ITIMER_REAL, 0)
    os._exit(2)


def limit_processor_time() -> None:
    """Make the system end this process after PROCESSOR_TIME more seconds of processor time.

    A timer is not enough, because it cannot interrupt a single call such as `sum(itertools.repeat(1))`.
    """
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + PROCESSOR_TIME, most))


def running_threads() -> int:
    """Return how many threads all processes of the present user have together.

    Linux compares this number with the limit RLIMIT_NPROC.
    """
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # The process has just ended, or Linux does not show its threads.
            if process.stat().st_uid == os.getuid():
                count += len(list((process / "task").iterdir()))
    return count


def limit(folder: Path) -> None:
    """Limit student code in this process and its forks. For example, the code can change files only in `folder`."""
    for what, value in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_FSIZE, FILE_SIZE), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(what, (value, value))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_NPROC, (running_threads() + THREADS,) * 2)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # A write that exceeds RLIMIT_FSIZE then raises OSError.
    limit_places(str(folder.resolve()))
    limit_processes()


def limit_places(root: str) -> None:
    """Refuse changes of files outside of the folder `root`."""

    def refuse_other_places(event: str, args: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            paths = [args[0]]
        else:
            paths = [args[index] for index in WRITING_EVENTS.get(event, ())]
        for path in paths:
            if isinstance(path, str | bytes | os.PathLike):
                name = os.path.realpath(os.fsdecode(path))
                if not name.startswith((root + "/", "/dev/")) and name != root:
                    raise PermissionError(errno.EACCES, "an answer may change files only in the check's folder", name)

    sys.addaudithook(refuse_other_places)


def limit_processes() -> None:
    """Limit the number of processes that this process and its forks can start: at most PROCESSES together.

    This process and its forks share one counter in memory. Each process increases the counter before it starts
    another process. If the counter is then greater than PROCESSES, the call raises TooManyProcesses.
    """
    counter = mmap.mmap(-1, 8)

    def refuse_too_many(event: str, args: tuple[Any, ...]) -> None:
        if event in STARTING_EVENTS:
            count = int.from_bytes(counter[:8]) + 1
            counter[:8] = count.to_bytes(8)
            if count > PROCESSES:
                raise TooManyProcesses(errno.EAGAIN, f"an answer may start {PROCESSES} processes")

    sys.addaudithook(refuse_too_many)


def pytest_unconfigure() -> None:
    """End the process immediately after the last test.

    A student's code may have started threads that still run. Without this function, Python would wait for these
    threads before the process ends.
    """
    sys.stdout.flush()
    os._exit(0)


def pytest_configure(config: pytest.Config) -> None:
    folder = Path.cwd()
    events = Events(folder / EVENTS)
    limit(folder)
    config.pluginmanager.register(RequirementsPlugin(events, load(folder / answer_name(), events)))
