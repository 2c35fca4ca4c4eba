"""The tests of share groups in franz-go, a Kafka client in Go, pass with HMB as their broker (KIP-932).

The tests are a part of franz-go's source code. The script `fetch_clients.sh` compiles the tests to one program. The
largest test sends records through two share groups. The members accept, release or reject records, and some members
leave.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from hmb.bench import peers
from tests.conformance.groups.kinds import fetched

pytestmark = [pytest.mark.external, pytest.mark.slow]

TESTS = {"TestShareGroup", "TestShareGroupETL", "TestShareGroupAckOnClose", "TestShareGroupOffsetsAdmin"}
RECORDS = 5_000  # franz-go's own default is 500,000


@pytest.mark.timeout(240)
def test_the_share_group_tests_pass(tmp_path: Path) -> None:
    program = fetched("go/kgo.test")
    with peers.Hmb(tmp_path) as broker:
        settings = {"KGO_SEEDS": broker.bootstrap, "KGO_TEST_RF": "1", "KGO_TEST_RECORDS": str(RECORDS)}
        done = subprocess.run(
            [str(program), "-test.v", "-test.run", f"^({'|'.join(sorted(TESTS))})$"],
            env={**os.environ, **settings, "KGO_LOG_LEVEL": "none"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
    passed = set(re.findall(r"^--- PASS: (\w+)", done.stdout, re.MULTILINE))
    assert passed == TESTS, done.stdout[-3000:] + done.stderr[-3000:]
