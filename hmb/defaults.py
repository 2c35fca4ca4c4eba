"""What holds where nobody says otherwise; alone in a module, so that `hmb --help` need not import what uses it."""

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 9092
DEFAULT_SERVER = f"{DEFAULT_HOST}:{DEFAULT_PORT}"
DEFAULT_DATA_DIR = "hmb-data"
