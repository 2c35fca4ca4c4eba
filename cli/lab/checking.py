"""Check a student's answer to a lab: run the tests of the lab in a separate process.

Each test checks one requirement of the lab. An answer is a program that may still have mistakes. It may loop forever,
fill the memory, print without end, or delete files. The check therefore copies the answer to a temporary folder. The
check then starts a process with limits (requirements_plugin.py), which runs the tests. The limits protect against
mistakes, but not against attacks.

The process that runs the tests writes a JSON object when the test of a requirement begins, and another JSON object when
the test ends. At the end, the check kills this process. If the student's program has started other processes, the check
kills them as well.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from .catalog import FIRST, Exercise, Lab

SEED_VARIABLE = "HMB_LAB_SEED"  # the environment variable with the seed of a check
CHECK_TIMEOUT = 180.0  # seconds for all requirements of a lab together; the limit for one requirement is shorter
EVENTS, CHECK = "events.jsonl", "check.py"
ANSWER_NAME = "HMB_LAB_ANSWER"  # an environment variable with the file name of the answer
ENDED = "the answer has ended the process"
STUCK = "the answer has used the processor for too long, in a call that a time limit cannot interrupt"


class CheckFailed(Exception):
    """The check could not run, or the answer could not be imported."""


@dataclass(frozen=True)
class Result:
    """The result of an answer (a student's program) for one requirement.

    `error` describes the answer's mistake, or is None if the answer meets the requirement. `printed` is the end of the
    text that the answer printed during the test.
    """

    requirement: str
    error: str | None
    printed: str = ""


def check(
    lab: Lab, answer: Path, seed: int, timeout: float = CHECK_TIMEOUT, *, exercise: Exercise = FIRST
) -> list[Result]:
    """Check an answer against all requirements of an exercise. Raises CheckFailed, OSError.

    `timeout` is in seconds. The tests generate their random cases from `seed`.
    """
    if find_spec("pytest") is None:
        raise CheckFailed("the checks of the labs need pytest: pip install 'hmb[labs]'")
    with tempfile.TemporaryDirectory(prefix="hmb-lab-") as name:
        folder = Path(name)
        shutil.copy(answer, folder / exercise.answer)
        shutil.copy(lab.folder / exercise.check, folder / CHECK)
        (folder / EVENTS).touch()
        with _process(folder, exercise.answer, seed) as process, suppress(subprocess.TimeoutExpired):
            process.wait(timeout)
        events = [json.loads(line) for line in (folder / EVENTS).read_text(encoding="utf-8").splitlines()]
        output = (folder / "output").read_text(encoding="utf-8", errors="replace")
    ends = {-signal.SIGKILL: f"the check was stopped after {timeout:.0f} s", -signal.SIGXCPU: STUCK}
    return _results(events, output, exercise.answer, ends.get(process.returncode, ENDED))


@contextmanager
def _process(folder: Path, answer: str, seed: int) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "pytest", "-p", "hmb.cli.lab.requirements_plugin", "-p", "no:cacheprovider"]
    command += ["--rootdir", str(folder), "-c", os.devnull, "--assert=plain", "-q", CHECK]
    ours = {SEED_VARIABLE: str(seed), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    ours |= {"TMPDIR": str(folder), "PYTHONPATH": str(folder), ANSWER_NAME: answer}
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, env=os.environ | ours, stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=output, start_new_session=True)  # fmt: skip
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _results(events: list[dict[str, str | None]], output: str, answer: str, why_ended: str) -> list[Result]:
    """Return one result for each requirement. `events` are the JSON objects that the test process has written.

    If the process ended during a test, the requirement of this test gets the error `why_ended`. The errors of all
    later requirements say that they were not checked. Raises CheckFailed if the tests could not run, or if all
    requirements fail for the same reason.
    """
    broken = [event["broken"] for event in events if "broken" in event]
    if broken:
        raise CheckFailed(str(broken[0]))
    names = [str(event["planned"]) for event in events if "planned" in event]
    ended = {str(event["ended"]): event for event in events if "ended" in event}
    begun = [str(event["begun"]) for event in events if "begun" in event]
    if not names:
        why = f"; its output ends: {output[-400:].strip()}" if output.strip() else ""
        what = f"has ended the process while it was imported, or it starts processes{why}"
        raise CheckFailed(f"{answer}: {STUCK}" if why_ended == STUCK else f"{answer} {what}")
    done = [(name, ended[name]) for name in names if name in ended]
    results = [Result(name, event["error"], event.get("printed") or "") for name, event in done]
    if len(results) == len(names) and len(errors := {each.error for each in results}) == 1 and None not in errors:
        raise CheckFailed(f"all requirements fail for the same reason: {errors.pop()}")
    for name in names[len(results) :]:
        is_current = bool(begun) and begun[-1] == name
        results.append(Result(name, why_ended if is_current else f"not checked, because {why_ended}"))
    return results
