"""The console script `hmb`.

Python answers Ctrl-C with a KeyboardInterrupt, and prints a traceback where nothing catches it. While modules are
imported, nothing can catch it. `run` therefore restores the behavior of a program in C for that time: the signal ends
the program. It does the same when the command has ended and Python only cleans up.

Python's start and the imports before `run` remain. This module therefore imports only `_signal`, which is built into
Python. The module `signal` adds enums to it, which take 2 ms to import.
"""

import _signal  # type: ignore[import-not-found]


def run() -> None:
    """Run the command line with the arguments of this process, and end the process."""
    before = _signal.getsignal(_signal.SIGINT)
    is_ignored = before is not _signal.default_int_handler  # A shell ignores SIGINT for commands in the background.
    if not is_ignored:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    from .main import main

    _signal.signal(_signal.SIGINT, before)
    try:
        main()
    finally:
        if not is_ignored:
            _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
