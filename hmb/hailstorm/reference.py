"""References to topologies: `module:name`, or `path/to/file.py:name`.

One process cannot send a topology to another process, because a topology contains functions. Instead, the other process
imports the module that defines the topology. A reference contains the module (or its file) and a name in this module.
This name must belong to a `Topology`, or to a function without arguments that returns a `Topology`.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from zlib import crc32

from hmb.hailstorm.errors import TopologyError
from hmb.hailstorm.topology import Topology

FILE_PREFIX = "hailstorm_topology_"  # the name of a module that is loaded from a file begins with this prefix


def load_topology(reference: str) -> Topology:
    """Return the topology that `reference` (`module:name`) names. Raises TopologyError if it cannot be imported."""
    place, colon, name = reference.rpartition(":")
    if not colon or not place or not name:
        raise TopologyError(f"{reference!r} does not name a topology: write module:name or path/to/file.py:name")
    try:
        module = _load_file(Path(place)) if place.endswith(".py") else _import(place)
    except (ImportError, OSError, SyntaxError) as error:
        raise TopologyError(f"{place} cannot be imported: {error}") from error
    found = getattr(module, name, None)
    if callable(found) and not isinstance(found, Topology):
        found = _call(reference, found)
    if not isinstance(found, Topology):
        names = ", ".join(key for key, value in vars(module).items() if isinstance(value, Topology)) or "none"
        raise TopologyError(f"{place} has no topology {name!r}; its topologies: {names}")
    return found


def _call(reference: str, function: Callable[..., object]) -> object:
    """Return the result of a function without arguments. Raises TopologyError if the function needs arguments."""
    try:
        inspect.signature(function).bind()
    except (TypeError, ValueError) as error:
        what = f"{reference} is a {type(function).__name__} that needs arguments"
        raise TopologyError(
            f"{what}: use the name of a Topology, or of a function without arguments that returns a Topology"
        ) from error
    return function()


def reference_to(topology: Topology) -> str:
    """Return a reference such as `module:name`, with which another process can import the topology.

    Raises TopologyError if the topology is not a global variable of a module that other processes can import.
    """
    for module_name, module in list(sys.modules.items()):
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if value is topology:
                if module_name != "__main__" and not module_name.startswith(FILE_PREFIX):
                    return f"{module_name}:{name}"
                if path := getattr(module, "__file__", None):
                    return f"{Path(path).absolute()}:{name}"
    raise TopologyError(
        f"other processes cannot import the topology {topology.name}: assign it to a name at the top of a module, "
        "or run it without `workers`"
    )


def _import(name: str) -> ModuleType:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # `python -m` also adds the current directory.
    return importlib.import_module(name)


def _load_file(path: Path) -> ModuleType:
    """Run a file as a module. Its part `if __name__ == "__main__"` does not run."""
    path = path.absolute()
    # Files in different directories can have the same name, so the name of the module also contains a CRC of the path.
    name = f"{FILE_PREFIX}{path.stem}_{crc32(bytes(path)):08x}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
