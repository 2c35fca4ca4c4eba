"""The console script `hmb`.

On Ctrl-C, Python raises a KeyboardInterrupt, and prints a traceback if no code catches it. During imports, no code can
catch it. `run` therefore restores the default action of the signal during imports: Ctrl-C ends the process. `run` also
restores this action when the command has ended and Python cleans up.

Ctrl-C can still print a traceback while Python starts, and during the imports before `run`. This module keeps these
imports short: it imports only `_signal`, which is built into Python. The import of `signal`, which adds enums, takes 2
ms.
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
