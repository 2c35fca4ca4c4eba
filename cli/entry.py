"""Where the command `hmb` begins: before anything else is imported, for a Ctrl-C may come that early.

Python answers the signal with a KeyboardInterrupt wherever it happens to be, and in the middle of an import that is a
traceback. Until there is somebody to catch it, the signal therefore does what it does to a program in C: it ends it.
"""

import signal


def run() -> None:
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # and is not ignored, as in a shell's background
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from .main import main

    signal.signal(signal.SIGINT, before)
    main()
