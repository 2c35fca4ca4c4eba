"""Faults as YAML or JSON objects, for a file of faults and for HTTP requests to the control port.

A file of faults is a list of objects, one for each fault. An object with the key `api` describes a fault of
requests. Its keys are arguments of `Faults.add`.

An object with the key `disk` describes a fault of the disk. The value of `disk` is the argument `kind` of
`DiskFaults.add`. The other keys are the other arguments.

For example, a file contains three faults:
    - {api: PRODUCE, error: NOT_LEADER_OR_FOLLOWER, times: 2}
    - {api: FETCH, topic: orders, delay: 0.5}
    - {disk: slow, seconds: 0.2, topic: orders}

If one object in a list of faults contains a mistake, no fault of this list is added. A test therefore never runs with
only a part of its faults. The error message names the number of the object in the list, and the wrong key or value.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from hmb.broker.config.keys import nearest
from hmb.testing.arguments import Seconds
from hmb.testing.disk import DiskFault, DiskFaults
from hmb.testing.errors import FaultError
from hmb.testing.faults.requests import Fault, Faults

Parameters = Mapping[str, inspect.Parameter]


def _parameters(function: Callable[..., object]) -> Parameters:
    found = inspect.signature(function, eval_str=True).parameters
    return {name: each for name, each in found.items() if name != "self"}


KEYS = _parameters(Faults.add)
DISK_KEYS = {"disk" if name == "kind" else name: each for name, each in _parameters(DiskFaults.add).items()}
CORRUPT_KEYS = _parameters(DiskFaults.corrupt)


@dataclass(frozen=True, slots=True)
class AllFaults:
    """All faults of a broker: the faults of requests, and the faults of the disk."""

    requests: Faults
    disk: DiskFaults

    @property
    def added(self) -> list[Fault | DiskFault]:
        return [*self.requests.added, *self.disk.added]

    def clear(self) -> None:
        self.requests.clear()
        self.disk.clear()


def load_faults(faults: AllFaults, path: Path) -> None:
    """Add the faults that a YAML or JSON file describes. If one fault is wrong, add no fault.

    Raises FaultError with a message of one line, and OSError if the file cannot be read.
    """
    text = path.read_text(encoding="utf-8")
    try:
        yaml = importlib.import_module("yaml")
        load, mistakes, hint = yaml.safe_load, yaml.YAMLError, ""
    except ModuleNotFoundError:
        load, mistakes, hint = json.loads, ValueError, "this is not JSON; for YAML, install hmb[faults]: "
    try:
        found = load(text)
    except mistakes as error:
        raise FaultError(f"{path}: {hint}{' '.join(str(error).split())}") from error
    if not isinstance(found, list):
        raise FaultError(f"{path}: the file must be a list of faults")
    add_all(faults, found, f"{path}: ")


def add_all(faults: AllFaults, given: list[Any], origin: str = "") -> list[Fault | DiskFault]:
    """Add several faults, and return them. If one fault is wrong, add no fault and raise FaultError.

    The error message begins with `origin`, which names the source of the faults, for example the path of a file.
    """
    added: list[Fault | DiskFault] = []
    for number, each in enumerate(given, 1):
        try:
            added.append(add_fault(faults, each))
        except FaultError as error:
            for fault in added:
                _remove(faults, fault)
            raise FaultError(f"{origin}fault {number}: {error}") from error
    return added


def _remove(faults: AllFaults, fault: Fault | DiskFault) -> None:
    if isinstance(fault, DiskFault):
        faults.disk.remove(fault)
    else:
        faults.requests.remove(fault)


def add_fault(faults: AllFaults, given: object) -> Fault | DiskFault:
    """Add the fault that an object of YAML or JSON describes, and return it. Raises FaultError."""
    if not isinstance(given, Mapping):
        raise FaultError(f"a fault must be a mapping such as {{api: PRODUCE, drop: true}}, not {given!r}")
    if "disk" in given:
        _check_types(DISK_KEYS, given)
        return faults.disk.add(given["disk"], **{name: value for name, value in given.items() if name != "disk"})
    _check_types(KEYS, given)
    if "api" not in given:
        raise FaultError("a fault must have the key 'api' or the key 'disk'")
    return faults.requests.add(**given)


def corrupt(disk: DiskFaults, given: object) -> None:
    """Damage one batch on the disk. The object `given` contains an offset of this batch.

    For example, `given` is `{"topic": "orders", "partition": 0, "offset": 5}`. Raises FaultError if the object is not
    valid, and BrokerNotRunning if the broker is not running. Raises KafkaError if the partition or the batch does
    not exist.
    """
    if not isinstance(given, Mapping) or "topic" not in given:
        raise FaultError('the batch must be a mapping, for example {"topic": "orders", "offset": 5}')
    _check_types(CORRUPT_KEYS, given)
    disk.corrupt(**given)


def _check_types(keys: Parameters, given: Mapping[Any, object]) -> None:
    for name, value in given.items():
        if name not in keys:
            raise FaultError(f"unknown key {name!r}{nearest(str(name), keys)}")
        if not (isinstance(value, str) and keys[name].annotation == Seconds):
            _check_type(name, value, keys[name].default)


def _check_type(name: str, value: object, default: object) -> None:
    kind: tuple[type, ...] = (str,)
    if isinstance(default, bool):
        kind = (bool,)
    elif isinstance(default, float):
        kind = (int, float)
    elif isinstance(default, int) or name in ("partition", "times"):
        kind = (int,)
    is_wrong_bool = isinstance(value, bool) and bool not in kind
    if value is not None and (is_wrong_bool or not isinstance(value, kind)):
        raise FaultError(f"{name}={value!r}: the value must have the type {kind[-1].__name__}")


def described(fault: Fault | DiskFault) -> dict[str, Any]:
    """Return a fault as an object for JSON. The object contains only values that differ from the defaults."""
    if isinstance(fault, DiskFault):
        of_disk = {"disk": fault.kind, "topic": fault.topic, "seconds": fault.seconds}
        return {name: value for name, value in of_disk.items() if value != DISK_KEYS[name].default}
    values = {each.name: getattr(fault, each.name) for each in fields(fault) if each.name in KEYS}
    shown = {name: value for name, value in values.items() if value != KEYS[name].default}
    shown |= {name: value.name for name, value in shown.items() if name in ("api", "error")}
    return {**shown, **({"nth": fault.skip + 1} if fault.skip else {}), "count": fault.count}
