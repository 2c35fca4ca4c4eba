"""Tests of the docstrings of handler modules: each has five parts, and states the API's versions and permissions."""

from __future__ import annotations

import sys

import pytest

from hmb.broker.handlers import HANDLERS
from hmb.broker.security.acls.rules import permissions
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.messages import api_name, request_class

PARTS = ("Versions:", "Permissions:", "Behavior:", "Version notes:", "Left out:")


def docstring(api_key: ApiKey) -> str:
    return sys.modules[HANDLERS[api_key].__module__].__doc__ or ""


@pytest.mark.parametrize("api_key", HANDLERS, ids=api_name)
def test_the_docstring_has_five_parts_and_the_versions_of_the_class(api_key: ApiKey) -> None:
    lines = docstring(api_key).splitlines()
    starts = [line for line in lines if line.startswith(PARTS)]
    assert [line.partition(":")[0] + ":" for line in starts] == list(PARTS)
    request = request_class(api_key)
    first, last = request.versions[0], request.versions[-1]
    versions = f"{first}-{last}" if last > first else str(first)
    flexible = "not in the flexible encoding"
    if request.flexible and (begin := request.flexible[0]) > first:
        flexible = f"versions {begin} and later use" if begin < last else f"version {begin} uses"
    elif request.flexible:
        flexible = "all use the flexible encoding" if last > first else "in the flexible encoding"
    assert starts[0].startswith(f"Versions: {versions}; {flexible}"), starts[0]
    assert lines[0].startswith(f"{api_name(api_key)}: ")


@pytest.mark.parametrize("api_key", HANDLERS, ids=api_name)
def test_the_docstring_names_the_permissions_of_the_table(api_key: ApiKey) -> None:
    _, _, rest = docstring(api_key).partition("\nPermissions: ")
    part, _, _ = rest.partition("\nBehavior:")
    assert " ".join(part.split()) == f"{permissions(api_key)}."
