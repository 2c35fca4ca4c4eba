"""Default addresses and directories, in a module of their own so that `hmb --help` imports no other module."""

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 9092
DEFAULT_SERVER = f"{DEFAULT_HOST}:{DEFAULT_PORT}"
DEFAULT_DATA_DIR = "hmb-data"
