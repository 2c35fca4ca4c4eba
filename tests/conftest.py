"""The settings of all tests."""

import os
import signal
import tempfile
from pathlib import Path

# A process inherits ignored signals: a shell ignores SIGINT in the background, and nohup ignores SIGHUP. The tests
# send both signals.
for each, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(each) is signal.SIG_IGN:
        signal.signal(each, handler)

# The address and the profile of a developer must not change the tests. The directory does not exist.
os.environ.pop("HMB_BOOTSTRAP_SERVERS", None)
os.environ["XDG_CONFIG_HOME"] = str(Path(tempfile.gettempdir()) / "hmb-tests-have-no-profiles")
