"""Writes a page for each API, and the table of all APIs, before Sphinx reads the pages.

An API has a page only if the broker has a handler for it. The extension generates this page from the code.

Each API has two modules: one contains the handler of the API, and the other contains the message classes. The
text of the API's page comes from the docstrings of these two modules.

The message classes of an API describe the fields of the request and of the response. The request class lists
the versions of the API.

The page of each API is a file in `protocol/api`. The extension writes a file only if the text of the page has changed,
because Sphinx reads every changed file again.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

from docstrings import as_markdown
from sphinx.application import Sphinx

from hmb.broker.handlers import HANDLERS
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.messages import api_name, request_class, response_class
from hmb.protocol.schema import Request, Response

PARTS = re.compile(r"^(Versions|Permissions|Behaviou?r|Version notes|Left out): ", re.MULTILINE)
ROOT = Path(__file__).parents[2]
KAFKA_VERSIONS = ROOT / "hmb" / "testing" / "kafka_versions.json"


def write_pages(app: Sphinx) -> None:
    """Write the pages that have changed, and remove the pages of APIs that no longer exist."""
    folder = Path(app.srcdir) / "protocol" / "api"
    folder.mkdir(parents=True, exist_ok=True)
    pages = {f"{_stem(request)}.md": page(request) for request in _requests()}
    pages["table.txt"] = table()
    for path in folder.iterdir():
        if path.name not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def table() -> str:
    """Return a Markdown table with a row for each API that Kafka 4.3 or HMB supports, in the order of the API keys."""
    kafka = json.loads(KAFKA_VERSIONS.read_text(encoding="utf-8"))["4.3"]
    rows = ["| key | API | HMB | Kafka 4.3 | flexible | purpose |", "| --- | --- | --- | --- | --- | --- |"]
    for key in ApiKey:
        if key not in HANDLERS and key.name not in kafka:
            continue
        of_kafka = _range(*kafka[key.name]) if key.name in kafka else "none"
        if key not in HANDLERS:
            row = [api_name(key), "none", of_kafka, "", "HMB [does not serve this API](../compatibility.md)."]
        else:
            request = request_class(key)
            link = f"[{api_name(key)}](api/{_stem(request)}.md)"
            flexible = f"from {request.flexible[0]}" if request.flexible else "none"
            title = _sentences(_handler_docstring(request))[0]
            what = _capital(title.partition(": ")[2])
            row = [link, _range(request.versions[0], request.versions[-1]), of_kafka, flexible, what]
        rows.append(f"| {int(key)} | {' | '.join(row)} |")
    return "\n".join(rows) + "\n"


def _range(first: int, last: int) -> str:
    return f"{first}-{last}" if last > first else str(first)


def page(request: type[Request]) -> str:
    """Return the page of an API: the docstring of its handler, its messages, and its code."""
    title, rest = _sentences(_handler_docstring(request))
    response = response_class(request.api_key)
    lines = [f"# {api_name(request.api_key)} ({int(request.api_key)})", "", _capital(title.partition(": ")[2]), ""]
    sections = PARTS.split(rest)
    lines += [sections[0], ""]
    for name, text in zip(sections[1::2], sections[2::2], strict=True):
        lines += [f"**{name}.** " + _capital(_dedented(text)), ""]
    lines += ["## Messages", ""]
    essay = as_markdown(inspect.getdoc(sys.modules[request.__module__]) or "")
    lines += [essay.partition("\n")[2].strip(), ""]
    lines += _source(request) + _source(response)
    handler = inspect.getsourcefile(HANDLERS[request.api_key])
    lines += ["## Handler", "", *_included(Path(handler or ""), "handle")]
    return "\n".join(lines) + "\n"


def _requests() -> list[type[Request]]:
    """Return the request classes of all APIs that the broker supports, in the order of the API keys."""
    return [request_class(key) for key in sorted(HANDLERS)]


def _handler_docstring(request: type[Request]) -> str:
    return inspect.getdoc(sys.modules[HANDLERS[request.api_key].__module__]) or ""


def _sentences(docstring: str) -> tuple[str, str]:
    """Split a docstring. Return its first line and the other lines."""
    first, _, rest = docstring.partition("\n")
    return first, rest.strip()


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _dedented(text: str) -> str:
    return re.sub(r"\n\s+", "\n", text.strip())


def _source(message: type[Request] | type[Response]) -> list[str]:
    return _included(Path(inspect.getsourcefile(message) or ""), message.__name__)


def _included(path: Path, name: str) -> list[str]:
    relative = path.relative_to(ROOT)
    return [f"```{{literalinclude}} ../../../{relative}", ":language: python", f":pyobject: {name}", "```", ""]


def _stem(request: type[Request]) -> str:
    return request.__module__.rpartition(".")[2]


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
