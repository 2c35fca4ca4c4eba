"""Starts the broker of this or another HMB installation, in a separate process.

To measure the effect of a change to HMB, a benchmark compares two brokers on one machine: one with the change, and one
without it. Everything else is the same. The code without the change is usually in a second checkout, which has a
virtual environment of its own. `make` creates this virtual environment in the checkout's folder `.venv`:
    git worktree add ../before main && make -C ../before .venv/core.stamp
    hmb bench produce --versus ../before
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ..errors import PeerUnavailable
from .broker_process import COMPARABLE_SETTINGS, HOST, Peer


@dataclass(frozen=True)
class Installation:
    """An installation of HMB in one virtual environment. `name` is its name in tables and samples."""

    name: str
    python: Path  # the Python executable of the virtual environment

    @classmethod
    def own(cls) -> Self:
        """Return the installation that runs this code."""
        return cls("HMB", Path(sys.executable))

    @classmethod
    def at(cls, path: Path) -> Self:
        """Return the installation at `path`: a checkout with a `.venv`, a virtual environment, or a Python executable.

        Raises PeerUnavailable if HMB is not installed there.
        """
        path = path.absolute()  # Do not use `resolve`: it would replace the link to Python in a virtual environment.
        candidates = (path, path / "bin" / "python", path / ".venv" / "bin" / "python")
        found = next((each for each in candidates if each.is_file() and os.access(each, os.X_OK)), None)
        if found is None:
            raise PeerUnavailable(f"no Python in {path}: in a checkout of HMB, first run `make .venv/core.stamp`")
        installation = cls(f"HMB ({_label(path)})", found)
        if not installation.command.exists():
            raise PeerUnavailable(f"HMB is not installed for {found}: the command {installation.command} is missing")
        return installation

    @property
    def command(self) -> Path:
        """The command `hmb` of this installation. It is in the same folder as the Python executable."""
        return self.python.with_name("hmb")


def _label(path: Path) -> str:
    """Return a short name for an installation of HMB, for example `before` or `main/.venv`. Tables show this name.

    `path` is the path of a checkout, of a virtual environment, or of the Python executable in a virtual environment.
    """
    folder = path.parent.parent if path.is_file() else path
    return "/".join(folder.parts[-2:]) if folder.name.startswith(".") else folder.name


class Hmb(Peer):
    """A broker of HMB in its own process, which the command `hmb broker` starts."""

    name = "HMB"

    def __init__(
        self,
        directory: Path | None = None,
        *,
        port: int | None = None,
        config: Mapping[str, str] | None = None,
        installation: Installation | None = None,
        options: Sequence[str] = (),
    ) -> None:
        """Create a broker that is not running. `options` are further options of `hmb broker`, for example `--ui 0`."""
        super().__init__(directory, port=port, config=config)
        self.options = options
        self.installation = installation or Installation.own()
        if installation is not None:
            self.name = installation.name

    def prepare(self) -> None:
        """Do nothing, because HMB's broker needs no further files or processes."""

    def command(self) -> list[str]:
        config = {**COMPARABLE_SETTINGS, **self.config}
        overrides = [part for name, value in config.items() for part in ("-X", f"{name}={value}")]
        address = [] if "listeners" in config else ["--host", HOST, "--port", str(self.port)]
        directory = ["--data-dir", str(self.data_dir)]
        return [str(self.installation.command), "broker", *address, *directory, *overrides, *self.options]
