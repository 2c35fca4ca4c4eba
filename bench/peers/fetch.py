"""Bring Apache Kafka's jars, 4.3.0 and 0.8.2.2, by this machine's Maven, to where peers.py looks for them."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from . import FETCHED

SCRIPT = Path(__file__).with_name("fetch_kafka.sh")


def main() -> int:
    argparse.ArgumentParser(prog="hmb bench fetch-kafka", description=__doc__).parse_args()
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            print(f"hmb: {tool} is not on the PATH; on Debian: apt install default-jre-headless maven", file=sys.stderr)
            return 1
    return subprocess.run(["bash", str(SCRIPT), str(FETCHED)]).returncode


if __name__ == "__main__":
    sys.exit(main())
