"""The directive `settings` reads the settings of the broker or of topics from the code, and shows them as a table.

For example, an author writes these two lines into a page to show the settings of a topic:
```{settings} hmb.broker.config.broker:TOPIC_KEYS
```

With the option `:only:`, the table contains only the settings that the option lists:
    ```{settings} hmb.broker.config.broker:TOPIC_KEYS
    :only: retention.ms retention.bytes
    ```

Each row of a table contains the name, the default and the effect of one setting. A table of settings of the broker also
shows whether a change takes effect at once or after a restart. A change of a topic's setting always takes effect at
once. Settings that have no effect in HMB are in no table.
"""

from __future__ import annotations

from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from tables import TableDirective

from hmb.broker.config.keys import ConfigKey

NO_LIMIT = 2**31 - 1  # A default that is at least this number means "no limit".
NO_EFFECT = ("This setting has no effect", "no effect")


class Settings(TableDirective):
    """Shows the settings of a dictionary (name -> `ConfigKey`) as a table. Settings without an effect have no row."""

    option_spec: ClassVar[dict[str, Any]] = {"only": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        keys, source = self.table()
        only = self.options.get("only", "").split()
        unknown = [name for name in only if name not in keys]
        if unknown:
            raise self.error(f"{self.arguments[0]} has no setting {unknown[0]}")
        names = only or sorted(name for name, key in keys.items() if not key.doc.startswith(NO_EFFECT))
        shown = [keys[name] for name in names]
        has_column = any(key.dynamic for key in shown)
        titles = ["setting", "default", *(["a change counts"] if has_column else []), "effect"]
        lines = [titles, ["---"] * len(titles), *(row(key, has_column) for key in shown)]
        node = nodes.container(classes=["settings"])
        self.state.nested_parse(StringList([f"| {' | '.join(line)} |" for line in lines], source=source), 0, node)
        for each in list(node.findall(nodes.row)):
            for name in each.children[0].findall(nodes.literal):
                name["classes"].append("divided")  # code_words.py allows line breaks inside names with this CSS class
        return [node]


def row(key: ConfigKey, has_column: bool) -> list[str]:
    """Return the cells for one setting: its name, its default and its effect.

    If `has_column` is true, the row has one more cell. This cell shows whether a change of the setting takes effect at
    once or after a restart.
    """
    effect = (key.doc[:1].upper() + key.doc[1:]).replace("|", "\\|").rstrip(".") + "."
    moment = ["now" if key.dynamic else "after a restart"] if has_column else []
    return [f"`{key.name}`", default(key), *moment, effect]


def default(key: ConfigKey) -> str:
    """Return the default value of a setting as text, for example "7 d" for `retention.ms`, "no limit" or "none"."""
    if key.default is None or key.default == "":
        return "none"
    if isinstance(key.default, (int, float)) and not isinstance(key.default, bool):
        if key.default >= NO_LIMIT:
            return "no limit"
        if key.default > 0 and (found := amount(key.default, key.name)):
            return found
    text = str(key.default).lower() if isinstance(key.default, bool) else str(key.default)
    return f"`{text}`"


def amount(number: float, name: str) -> str | None:
    """Return a time or a size as text, in the largest unit that gives a whole number: 86,400,000 ms becomes "1 d".

    Return None if the setting `name` is neither a time nor a size.
    """
    units = {"ms": ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"), (1, "ms"))}.get(
        name.rpartition(".")[2], ()
    )
    if name.endswith((".bytes", ".size")) and "group" not in name:
        units = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
    return next((f"{number // size:,.0f} {unit}" for size, unit in units if number % size == 0), None)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("settings", Settings)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
