"""Settings that apply to all tests."""

import os
import signal
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings

# A busy machine generates examples slowly, and this must not fail a test. Hypothesis's own profile stays the parent.
settings.register_profile("hmb", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("hmb")

# A process inherits ignored signals: a shell ignores SIGINT in the background, and nohup ignores SIGHUP. The tests send
# both signals to their processes, so no process may ignore them.
for each, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(each) is signal.SIG_IGN:
        signal.signal(each, handler)

# The broker address and the profiles that a developer has configured must not change the tests. The directory in
# XDG_CONFIG_HOME does not exist.
os.environ.pop("HMB_BOOTSTRAP_SERVERS", None)
os.environ["XDG_CONFIG_HOME"] = str(Path(tempfile.gettempdir()) / "hmb-tests-have-no-profiles")
