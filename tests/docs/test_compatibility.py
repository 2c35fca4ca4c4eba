"""The page on compatibility names exactly the APIs that HMB does not serve."""

from __future__ import annotations

import re
from pathlib import Path

from hmb.broker.handlers import HANDLERS
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.messages import api_name

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"


def test_the_page_names_the_apis_that_are_not_served() -> None:
    head = "| subject | what a client loses | APIs that HMB does not serve |"
    table = PAGE.read_text().partition(head)[2].partition("\n\n")[0]
    named = [name for line in table.splitlines()[2:] for name in re.findall(r"\w+", line.split("|")[3])]
    assert sorted(named) == sorted(api_name(key) for key in ApiKey if key not in HANDLERS)


def test_the_page_states_the_number_of_apis() -> None:
    assert f"HMB serves {len(HANDLERS)} APIs" in PAGE.read_text()
