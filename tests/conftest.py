"""What all tests need."""

import signal

# A shell starts what it puts into the background with Ctrl-C ignored, and processes inherit that; tests press it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
