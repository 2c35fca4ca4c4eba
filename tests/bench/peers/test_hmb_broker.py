"""Tests that run HMB's broker as a process. The process uses this installation of HMB or another one."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from hmb.bench import peers
from hmb.bench.peers import Installation
from hmb.bench.peers.chosen import MeasuredBroker, broker_kinds, running_brokers


def fake_environment(folder: Path) -> Path:
    """Create a folder that looks like a virtual environment in which HMB is installed. Return this folder."""
    (folder / "bin").mkdir(parents=True)
    for name in ("python", "hmb"):
        (folder / "bin" / name).touch(mode=0o755)
    return folder


def test_an_installation_is_found_from_its_checkout_its_environment_or_its_python(tmp_path: Path) -> None:
    environment = fake_environment(tmp_path / "before" / ".venv")
    python = environment / "bin" / "python"
    found = [Installation.at(path) for path in (tmp_path / "before", environment, python)]
    assert [each.python for each in found] == [python] * 3
    assert [each.name for each in found] == ["HMB (before)", "HMB (before/.venv)", "HMB (before/.venv)"]


def test_a_link_to_python_stays_in_its_environment(tmp_path: Path) -> None:
    """`python` in a virtual environment is a link.

    The benchmark must not follow the link, because HMB is not installed for the Python that it points to.
    """
    environment = fake_environment(tmp_path / "before" / ".venv")
    python = environment / "bin" / "python"
    python.unlink()
    python.symlink_to(sys.executable)
    assert Installation.at(tmp_path / "before").python == python


def test_a_checkout_without_an_environment_is_refused_with_the_repair(tmp_path: Path) -> None:
    with pytest.raises(peers.PeerUnavailable, match=r"make \.venv/core\.stamp"):
        Installation.at(tmp_path)
    (fake_environment(tmp_path / ".venv") / "bin" / "hmb").unlink()
    with pytest.raises(peers.PeerUnavailable, match="HMB is not installed"):
        Installation.at(tmp_path)


def test_the_broker_of_another_installation_has_its_command_and_its_name(tmp_path: Path) -> None:
    environment = fake_environment(tmp_path / "before" / ".venv")
    own, other = broker_kinds(Installation.at(tmp_path / "before"))
    assert (own.name, other.name) == ("HMB", "HMB (before)")
    peer = other.make()
    peer.remove()
    assert peer.name == "HMB (before)" and peer.command()[0] == str(environment / "bin" / "hmb")


def test_addresses_are_measured_without_a_broker_being_started() -> None:
    with ExitStack() as stack:
        found = running_brokers(stack, "a:1", "b:2")
        assert found == [MeasuredBroker("a:1", "a:1"), MeasuredBroker("b:2", "b:2")]
        assert running_brokers(stack, "a:1", None) == found[:1]
    assert found[0].costs_since(found[0].cpu_seconds()) == {}


@pytest.mark.external
def test_two_installations_are_measured_together() -> None:
    with ExitStack() as stack:
        found = running_brokers(stack, None, Installation.at(Path(sys.executable)))
        assert [each.name.partition(" ")[0] for each in found] == ["HMB", "HMB"]
        assert all(each.costs_since(0.0)["broker_cpu_seconds"] > 0 for each in found)
