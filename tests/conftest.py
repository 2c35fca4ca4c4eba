"""What all tests need."""

import signal

# Processes inherit what is ignored: Ctrl-C from a shell that put them into the background, SIGHUP from nohup.  Tests
# send both, and mean them.
for each, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(each) is signal.SIG_IGN:
        signal.signal(each, handler)
