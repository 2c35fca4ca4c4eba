"""Default addresses and directories. This module is separate and small, so that `hmb --help` starts fast."""

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 9092
DEFAULT_SERVER = f"{DEFAULT_HOST}:{DEFAULT_PORT}"
DEFAULT_DATA_DIR = "hmb-data"
