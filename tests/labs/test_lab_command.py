"""Tests of the command `hmb lab`: its output, and the limits for an answer's time, memory and processes."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hmb.cli.lab.catalog import SECOND, find
from hmb.cli.lab.checking import STUCK, CheckFailed, _results, check
from hmb.cli.lab.editor_text import editor_text
from hmb.cli.lab.grading import seed_of
from hmb.cli.lab.requirements_plugin import running_threads
from hmb.cli.main import main
from hmb.labs import load_answer

LAB = find(4)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lab(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["lab", *arguments])


def test_a_student_starts_fails_and_passes(folder: Path) -> None:
    assert "not started" in lab("list").output
    assert lab("start", "4", "--seed", "1").exit_code == 0
    names = {"lab.md", "lab.ipynb", "lab.py", "answer.py", ".lab.json"}
    assert {path.name for path in (folder / "lab-04").iterdir()} == names
    assert json.loads((folder / "lab-04" / "lab.ipynb").read_text())["nbformat"] == 4
    failed = lab("check", "4")
    assert failed.exit_code == 1 and "7 of 8 requirements fail" in failed.output
    assert "      the same error as for requirement 2\n" in failed.output
    (folder / "lab-04" / "answer.py").write_text(LAB.solution)
    passed = lab("check", "4")
    assert passed.exit_code == 0 and passed.output.endswith("all 8 requirements are met: lab 4 is passed\n")
    assert "passed 20" in lab("list").output and "2 checks" in lab("progress").output
    (folder / "lab-04" / "answer.py").write_text(LAB.starter())
    assert lab("check", "4").exit_code == 1
    assert "passed 20" in lab("list").output and "3 checks" in lab("progress").output


def test_the_programs_of_a_lab_are_one_program(folder: Path) -> None:
    lab("start", "5", "--seed", "1")
    text = (folder / "lab-05" / "lab.py").read_text()
    compile(text, "lab.py", "exec")
    assert text.count("# Program ") == 3 and text.count('figure.savefig("plot-1.png")') == 1
    assert "jupyter notebook lab.ipynb" in (folder / "lab-05" / "lab.md").read_text()


def test_a_notebook_finds_the_answer_as_the_check_does(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab("start", "4", "--seed", "1")
    (folder / "lab-04" / "answer.py").write_text(LAB.solution)
    assert lab("check", "4").exit_code == 0
    monkeypatch.delenv("HMB_LAB_SOLUTIONS", raising=False)
    for place in (folder, folder / "lab-04"):
        monkeypatch.chdir(place)
        assert hasattr(load_answer(4), "Log")
    with pytest.raises(SystemExit, match="create it with: hmb lab start 5"):
        load_answer(5)


def run_program(lab_folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Write `code` to lab.py as the only program of a lab, and run lab.py with Python."""
    text = (lab_folder / "lab.py").read_text()
    (lab_folder / "lab.py").write_text(text[: text.index("# Program 1")] + code)
    environment = {name: value for name, value in os.environ.items() if name != "HMB_LAB_SOLUTIONS"}
    command = [sys.executable, "lab.py"]
    return subprocess.run(command, cwd=lab_folder, env=environment, capture_output=True, text=True, timeout=100)


def test_the_programs_of_a_lab_stop_before_an_unfinished_answer(folder: Path) -> None:
    lab("start", "4", "--seed", "1")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'hmb[labs]'")
    ended = run_program(folder / "lab-04", "from hmb.labs import load_answer\nload_answer(4)\nprint('never')\n")
    assert ended.returncode == 1 and ended.stdout == ""
    message = "complete answer.py first (hmb lab check 4); this program needs an answer that has passed the check\n"
    assert ended.stderr == message


def test_the_programs_of_a_lab_name_the_missing_matplotlib(folder: Path) -> None:
    lab("start", "4", "--seed", "1")
    (folder / "lab-04" / "matplotlib.py").write_text("raise ModuleNotFoundError('as if it were not installed')\n")
    ended = run_program(folder / "lab-04", "print('never')\n")
    assert ended.returncode == 1 and ended.stdout == ""
    assert ended.stderr == "the plots need matplotlib: pip install 'hmb[labs]'\n"


def test_the_text_for_an_editor_has_the_answers_at_its_end(folder: Path) -> None:
    lab("start", "4", "--seed", "1")
    text = (folder / "lab-04" / "lab.md").read_text()
    exercise, answers = text.split("\n## Answers\n")
    assert text.startswith("# Lab 4: The commit log\n") and "details>" not in text and "{code-cell}" not in text
    assert "The file has 16 bytes" not in exercise and "The file has 16 bytes" in answers
    headings = [line for line in answers.splitlines() if line.startswith("### ")]
    assert headings == ["### Predict first: answers", "### Question 1", "### Question 2", "### Question 3"]
    assert exercise.count("(The end of this file contains: ") == len(headings)
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert max(map(len, prose.splitlines())) <= 100 and "1. The file has 16 bytes." in prose


def test_a_check_inside_the_folder_of_a_lab_needs_no_number(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = lab("hint")
    assert outside.exit_code == 2 and "outside of a folder lab-NN, name the lab" in outside.output
    lab("start", "4", "--seed", "1")
    monkeypatch.chdir(folder / "lab-04")
    checked = lab("check").output
    assert "ok    1. The first record gets offset 0" in checked and "\nFAIL  2. A record may contain" in checked
    assert "   1 check   0 of 5 hints\n" in lab("progress").output
    assert lab("start").exit_code == 2


def test_what_an_answer_prints_is_shown_with_a_failed_requirement(folder: Path) -> None:
    lab("start", "4", "--seed", "1")
    answer = "class Log:\n    end_offset = 0\n    def __init__(self, directory): print('the folder is', 'mine')\n"
    answer += "    def append(self, record):\n        return len(record[0])\n"
    (folder / "lab-04" / "answer.py").write_text(answer)
    output = lab("check", "4").output
    assert "      printed: the folder is mine\n" in output
    assert "append(b'record 0') raises TypeError: object of type 'int' has no len() (answer.py, line 5" in output


def test_a_result_that_a_check_cannot_use_is_named_with_its_expression(folder: Path) -> None:
    (folder / "answer.py").write_text("def wrong_entries(log, entries): pass\n")
    errors = [each.error for each in check(find(6), folder / "answer.py", 1)]
    assert errors[-1] == "in the check, `list(found)` raises TypeError: 'NoneType' object is not iterable"
    assert errors[0] == "answer.py does not define 'read_index'"


def test_a_missing_class_is_one_error(folder: Path) -> None:
    lab("start", "4", "--seed", "1")
    (folder / "lab-04" / "answer.py").write_text("x = 1\n")
    output = lab("check", "4").output
    assert "all requirements fail for the same reason: answer.py does not define 'Log'" in output
    assert "FAIL" not in output


def test_a_student_starts_and_fails_the_second_exercise(folder: Path) -> None:
    started = lab("start", "4", "--seed", "1", "--second")
    assert started.exit_code == 0 and "hmb lab check 4 --second" in started.output
    assert (folder / "lab-04" / "answer.py").is_file() and (folder / "lab-04" / "second.py").is_file()
    failed = lab("check", "4", "--second")
    assert failed.exit_code == 1 and failed.output.endswith("2 of 4 requirements fail\n")
    assert "started, second exercise: 2 of 4 requirements" in lab("progress").output
    assert '"state": "started", "second_exercise": "2 of 4 requirements"' in lab("list", "--json").output
    assert len(json.loads(lab("export", "4", "--second").output)["tests"]) == 4


def test_the_second_exercise_is_added_to_a_started_lab(folder: Path) -> None:
    lab("start", "4", "--seed", "1")
    missing = lab("check", "4", "--second")
    assert missing.exit_code == 1 and "second.py is missing; create it with: hmb lab start 4 --second" in missing.output
    other_seed = lab("start", "4", "--second", "--seed", "2")
    assert other_seed.exit_code == 2 and "repeat the command without --seed" in other_seed.output
    assert lab("start", "4", "--second").exit_code == 0
    (folder / "lab-04" / "second.py").write_text("mine = 1\n")
    again = lab("start", "4", "--second")
    assert again.exit_code == 1 and "second.py exists already" in again.output
    assert (folder / "lab-04" / "second.py").read_text() == "mine = 1\n"
    assert "second.py does not define 'TimeIndex'" in lab("check", "4", "--second").output


def test_an_answer_is_not_overwritten_by_a_second_start(folder: Path) -> None:
    lab("start", "4")
    (folder / "lab-04" / "answer.py").write_text("mine = 1\n")
    again = lab("start", "4")
    assert again.exit_code == 1 and "exists already" in again.output
    assert (folder / "lab-04" / "answer.py").read_text() == "mine = 1\n"


def test_commands_find_the_folder_from_inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab("start", "4")
    monkeypatch.chdir(folder / "lab-04")
    assert "Hint 1 of 5" in lab("hint", "4").output and "Hint 2 of 5" in lab("hint", "4").output
    assert "The commit log" in lab("progress").output and " started\n" in lab("list").output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("start", "99"), "there is no lab 99"), (("check", "4"), "create it with: hmb lab start 4")],
)
def test_mistakes_get_one_line(arguments: tuple[str, ...], message: str) -> None:
    result = lab(*arguments)
    assert result.exit_code == 3 and message in result.output


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", ".lab.json is damaged"),
        ("[4]", ".lab.json is damaged"),
        ('{"lab": 4}', ".lab.json is damaged"),
        ('{"lab": 4, "seed": 1, "checks": [7]}', ".lab.json is damaged"),
        ('{"lab": 4, "seed": 1, "mood": "good"}', "the field 'mood', which this version of HMB does not know"),
    ],
)
def test_a_damaged_state_file_is_named(folder: Path, content: str, message: str) -> None:
    lab("start", "4")
    (folder / "lab-04" / ".lab.json").write_text(content)
    assert message in lab("check", "4").output


def test_a_lab_that_a_newer_version_has_changed_is_named_once(folder: Path) -> None:
    lab("start", "4")
    state = json.loads((folder / "lab-04" / ".lab.json").read_text())
    del state["digest"], state["second_checks"]  # An older version of HMB wrote neither of them.
    (folder / "lab-04" / ".lab.json").write_text(json.dumps(state))
    (folder / "lab-04" / "lab.md").write_text("my notes\n")
    first = lab("hint", "4")
    assert "lab 4 has changed since you started it" in first.stderr and first.exit_code == 0
    assert (folder / "lab-04" / "lab.new.md").read_text() == editor_text(LAB.page)
    assert (folder / "lab-04" / "lab.md").read_text() == "my notes\n"
    assert lab("hint", "4").stderr == ""


def test_results_for_gradescope_and_classroom(folder: Path) -> None:
    lab("start", "4", "--seed", "3")
    lab("solution", "4")
    exported = json.loads(lab("export", "4").output)
    assert [test["score"] for test in exported["tests"]] == [1, 0, 0, 0, 0, 0, 0, 0]
    assert exported["extra_data"] == {"hints": 0, "solution_shown": True, "seed": 3}
    classroom = json.loads(lab("export", "4", "--format", "classroom").output)
    assert classroom["status"] == "fail" and classroom["max_score"] == 8


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("def f(:\n", "answer.py, line 1: invalid syntax"),
        ("", "answer.py does not define 'Log'"),
        ("\0", "answer.py: source code string cannot contain null bytes"),
        ("import os\nwhile True: os.fork()\n", "starts more than 100 processes (answer.py, line 2"),
        ("import os\nos.rename('/tmp', 'mine')\n", "may change files only in the check's folder: '/tmp'"),
        ("input('a number?')\n", "waits for input from the keyboard, and a check has no keyboard (answer.py, line 1"),
        ("x = bytearray(4 << 30)\n", "needs more than 2 GB of memory (answer.py, line 1"),
        ("open('/tmp/outside', 'w')\n", "may change files only in the check's folder: '/tmp/outside'"),
        ("import shutil\nshutil.rmtree('/tmp')\n", "may change files only in the check's folder: '/tmp'"),
        ("import os\nos._exit(3)\n", "answer.py has ended the process while it was imported"),
        ("import sys\nsys.exit(3)\n", "answer.py cannot be imported: SystemExit: 3 (answer.py, line 2"),
    ],
)
def test_a_broken_answer_gets_one_message(folder: Path, answer: str, message: str) -> None:
    (folder / "answer.py").write_text(answer)
    try:
        found = [each.error for each in check(LAB, folder / "answer.py", 1)]
    except CheckFailed as failed:
        found = [str(failed)]
    assert found[0] is not None and message in found[0]
    assert not Path("/tmp/outside").exists()


@pytest.mark.parametrize(
    ("append", "message"),
    [
        ("print('x' * 1000000, flush=True)", "writes or prints more than 16 MB"),
        ("import os; os._exit(3)", "the answer has ended the process"),
        ("import os; os.fork()", "starts more than 100 processes"),
        ("import subprocess; subprocess.Popen(['sleep', '60'])", "starts more than 100 processes"),
        ("__import__('threading').Thread(target=__import__('time').sleep, args=(60,)).start()", "too many threads"),
    ],
)
def test_an_answer_that_prints_or_ends_is_named(folder: Path, append: str, message: str) -> None:
    body = "class Log:\n    end_offset = 0\n    def __init__(self, directory): pass\n    def append(self, record):\n"
    (folder / "answer.py").write_text(body + f"        while True: {append}\n")
    results = check(LAB, folder / "answer.py", 1)
    assert results[0].error is not None and message in results[0].error


@pytest.mark.slow
def test_an_endless_answer_ends_after_the_time_limit(folder: Path) -> None:
    body = "class Log:\n    end_offset = 0\n    def __init__(self, directory):\n        while True: pass\n"
    (folder / "answer.py").write_text(body)
    results = check(LAB, folder / "answer.py", 1, timeout=25)
    assert results[0].error == "not done after 20 s (answer.py, line 4, in __init__)"
    assert results[1].error == "the check was stopped after 25 s"
    assert results[2].error == "not checked, because the check was stopped after 25 s"


def test_a_call_that_no_timer_can_interrupt_ends_after_its_processor_time() -> None:
    program = "import itertools, hmb.cli.lab.requirements_plugin as plugin; plugin.PROCESSOR_TIME = 1\n"
    program += "plugin.limit_processor_time(); sum(itertools.repeat(1))"
    ended = subprocess.run([sys.executable, "-c", program], timeout=100)
    assert ended.returncode == -signal.SIGXCPU
    with pytest.raises(CheckFailed, match=r"answer\.py: the answer has used the processor for too long"):
        _results([], "", "answer.py", STUCK)


def test_the_check_does_not_wait_for_the_threads_of_an_answer(folder: Path) -> None:
    """The check of an answer ends after the last test, even if a thread of the answer is still running.

    In an earlier version, the check waited three minutes for such a thread.
    """
    thread = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()\n"
    (folder / "answer.py").write_text(thread + LAB.solution)
    results = check(LAB, folder / "answer.py", 1)
    assert [each.error for each in results] == [None] * 8
    (folder / "answer.py").write_text(thread + "broken\n")
    with pytest.raises(CheckFailed, match="NameError: name 'broken' is not defined"):
        check(LAB, folder / "answer.py", 1)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts threads for the limit of processes")
def test_the_limit_of_processes_counts_threads() -> None:
    """`running_threads` counts threads, because Linux also counts threads for its limit of processes.

    `hmb lab check` sets this limit to the number of running threads plus 128. With the number of processes instead of
    threads, the limit could be too low for a new thread.
    """
    before, ends = running_threads(), threading.Event()
    threads = [threading.Thread(target=ends.wait) for _ in range(50)]
    for thread in threads:
        thread.start()
    try:
        assert running_threads() >= before + 40  # The test has started 50 threads, but up to 10 others may have ended.
    finally:
        ends.set()
        for thread in threads:
            thread.join()


def test_a_class_is_graded_with_the_seeds_of_its_students(folder: Path) -> None:
    for student, answer in (("anna", LAB.solution), ("ben", LAB.starter()), ("carla", "def broken(:\n")):
        (folder / student / "lab-04").mkdir(parents=True)
        (folder / student / "lab-04" / "answer.py").write_text(answer)
    (folder / "ben" / "lab-04" / "second.py").write_text(LAB.starter(SECOND))
    graded = lab("grade", str(folder), "--csv")
    assert graded.exit_code == 0
    header, *rows = csv.reader(graded.output.splitlines())
    assert header == ["student", "lab", "exercise", "passed", "of", "problem"]
    first, second = ["4", "first"], ["4", "second"]
    assert [row[:5] for row in rows] == [
        ["anna", *first, "8", "8"], ["ben", *first, "1", "8"], ["ben", *second, "2", "4"], ["carla", *first, "0", "8"],
    ]  # fmt: skip
    assert rows[0][5] == "" and "answer.py, line 1" in rows[3][5]
    (folder / "dan").mkdir()
    graded = lab("grade", str(folder))
    assert graded.exit_code == 1 and "anna                 lab  4 first   8 of 8\n" in graded.output
    assert "dan                  lab  4 first   0 of 8  lab-04/answer.py is missing\n" in graded.output


def test_a_name_is_a_seed(folder: Path) -> None:
    assert (seed_of("17"), seed_of("anna")) == (17, zlib.crc32(b"anna"))
    lab("start", "4", "--seed", "anna")
    assert json.loads((folder / "lab-04" / ".lab.json").read_text())["seed"] == seed_of("anna")


def test_a_folder_without_answers_is_named(folder: Path) -> None:
    result = lab("grade", str(folder))
    assert result.exit_code == 3 and "they are expected at" in result.output
    assert lab("grade", str(folder / "missing")).exit_code == 2


def test_a_lab_with_a_notebook_for_spark_copies_it(folder: Path) -> None:
    started = lab("start", "3").output
    assert "lab-03/events.ipynb, which needs Spark: pip install 'hmb[spark]'" in started
    assert json.loads((folder / "lab-03" / "events.ipynb").read_text())["nbformat"] == 4
