"""The console script `hmb`: the function that the operating system's command `hmb` calls.

When the user presses Ctrl-C, Python raises KeyboardInterrupt. If no code catches this exception, Python prints a
traceback. No code can catch it while modules are imported. During the imports, `run` therefore sets the system's
default action for the signal: Ctrl-C ends the process without a traceback. `run` sets this action again after the
command, because Python still cleans up then.

Ctrl-C can still print a traceback while Python itself starts, and while this module is imported. This module therefore
imports only `_signal`, which is built into Python. The module `signal` adds enums to `_signal`, and its import would
take 2 ms more.
"""

import _signal  # type: ignore[import-not-found]


def run() -> None:
    """Run the command line with the arguments of this process, and end the process."""
    before = _signal.getsignal(_signal.SIGINT)
    is_ignored = before is not _signal.default_int_handler  # A shell lets a command in the background ignore SIGINT.
    if not is_ignored:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    from .main import main

    _signal.signal(_signal.SIGINT, before)
    try:
        main()
    finally:
        if not is_ignored:
            _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
