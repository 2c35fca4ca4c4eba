"""The function that runs when a user types the command `hmb`.

When the user presses Ctrl-C, Python raises KeyboardInterrupt. If no code catches this exception, Python prints
a traceback. In two phases, `hmb` cannot catch the exception: while Python imports the modules of `hmb`, and
while Python cleans up after the command. Before each of these phases, `run` therefore sets the default action
for the signal SIGINT, which Ctrl-C sends. With this action, the operating system ends the process without a
traceback.

Python can still print a traceback if the user presses Ctrl-C before `run` starts: while Python starts, or while
Python imports this module. To make this time short, the module imports only `_signal`, which is built into
Python. An import of the usual module `signal` would take 2 ms more.
"""

import _signal  # type: ignore[import-not-found]


def run() -> None:
    """Run the command line with the arguments of this process, and end the process."""
    before = _signal.getsignal(_signal.SIGINT)
    is_ignored = before is not _signal.default_int_handler  # A shell can make a background command ignore SIGINT.
    if not is_ignored:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    from .main import main

    _signal.signal(_signal.SIGINT, before)
    try:
        main()
    finally:
        if not is_ignored:
            _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
