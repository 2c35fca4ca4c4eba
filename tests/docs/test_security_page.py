"""The page on authentication and authorization agrees with the code."""

from __future__ import annotations

import contextlib
import io
import re

from hmb.broker.handlers import HANDLERS
from hmb.broker.security.acls.rules import OPEN, RULES, SPECIAL
from hmb.broker.security.acls.special_guards import GUARDS
from tests.docs.conftest import EXTENSIONS

PAGE = EXTENSIONS.parents[0] / "guide" / "security.md"


def test_the_program_computes_the_proof_and_the_signature_of_the_recording() -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(program, {})
    folder = PAGE.parents[2] / "tests" / "golden"
    final = (folder / "sasl_authenticate_v2_hmb-scram-final.txt").read_text(encoding="utf-8")
    proof, signature = printed.getvalue().split()
    assert f"p={proof}" in final and f"v={signature}" in final


def test_the_table_of_permissions_has_each_api_once() -> None:
    assert set(SPECIAL) == set(GUARDS)
    assert sorted([*RULES, *SPECIAL, *OPEN]) == sorted(HANDLERS)
