"""Tests of all labs: the starter fails, the solution passes, and the check reports the mistake of each wrong answer."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from hmb.cli.lab.catalog import EXERCISES, SECOND, labs
from hmb.cli.lab.checking import check

WRONG = Path(__file__).parent / "wrong"
SEED = 7
# For each wrong answer in the folder `wrong`: a text that the first error of the check must contain.
MESSAGES = {
    "01/counts_but_keeps": "retained() is right, but the number of messages in memory is 100 (right: 60)",
    "01/does_not_notify": "a thread waits, and another one publishes 'hello': wait returns nothing",
    "01/gives_old_messages": "a message that was published before subscribe('a') is not for 'a'",
    "01/has_no_lock": "wait('a', 0.5) calls time.sleep ",
    "01/is_a_queue": "subscriber ",
    "01/locks_only_some_methods": "in its middle poll('a') in another one: they return ['one', 'one']",
    "01/looks_again_and_again": "use the condition's wait and notify_all",
    "01/needs_a_subscriber": "a topic without subscribers: retained() must return 0, but raises ValueError",
    "01/never_forgets": "'a' has read 100 messages, and 'b' 40: retained() is 100",
    "01/polls_without_the_lock": "IndexError('pop from an empty deque')",
    "01/publishes_without_the_lock": "RuntimeError('dictionary changed size during iteration')] (right: no error)",
    "01/wait_does_not_wait": "returns before 0.2 seconds are over",
    "01/waits_only_once": "have returned [('a', 'one'), ('a', None), ('b', 'one'), ('b', None)] (right: [",
    "01/wakes_one_thread": "publish 'one': the calls of wait have returned [('a', 'one')]",
    "02/begins_at_the_start": "with a crash before operation 3 repeats 1 records",
    "02/commits_at_the_end": "concerns 2 records; commit after each single record",
    "02/compares_messages": "the receiver processes ['tea', 'coffee', 'water', 'tea']",
    "02/counts_with_sets": "count_mistakes(['a', 'a'], ['a']) returns (0, 0) (right: (1, 0))",
    "02/gives_up": "a link with the plan 'aa' (m: message lost, a: answer lost)",
    "02/orders_are_exchanged": 'consume(..., "before") with a crash before operation 2 repeats 1 records',
    "02/remembers_everything": "after 10,000 messages the receiver still has {'seen': 10000}",
    "02/repeats_at_most_once": "a link with the plan 'm' (m: message lost, a: answer lost)",
    "03/counts_copies": "SpeedView(0), add the clicks with the offsets [0, 1, 1] of ",
    "03/counts_late_clicks": "returns ([(0, 1), (0, 1)], 1) (right: ([(0, 1)], 1))",
    "03/ends_one_too_late": "(75, 'cart')], 0) returns {('home', 0): 1} (right: {})",
    "03/follows_the_last_click": "final_windows([",
    "03/forgets_by_number": ": the counts change to ",
    "03/ignores_lateness": "(80, 'home')], 60, 20) returns ([(0, 1)], 1) (right: ([(0, 2)], 0))",
    "03/rounds_to_the_nearest": "window_of(59, 60) returns 60 (right: 0)",
    "03/the_batch_wins": "in the batch view: merge returns {",
    "04/does_not_flush": "and the process ends without close: end_offset is 0",
    "04/empties_the_file": "1 record, close, open: end_offset is 0 (right: 1)",
    "04/keeps_the_torn_tail": "only 1 of 8 bytes of the last frame",
    "04/offset_is_a_position": "append number 2 returns offset 12 (right: 1)",
    "04/reads_the_whole_file": "20 reads of one record took 20",
    "04/separates_records_by_lines": "the record b'two\\nlines' was appended at offset 2, and read returns b'two'",
    "05/crc_of_everything": "the CRC-32C of the bytes from 21 on is",
    "05/leader_epoch_is_zero": "the partition leader epoch (bytes 12 to 15) is 0 (right: -1)",
    "05/length_counts_itself": "the length at the beginning of the frame is 124 (right: 120)",
    "05/little_endian": "the last offset delta (bytes 23 to 26) is 16777216 (right: 1)",
    "05/no_zigzag": "varint(-1) is ff ff ff ff 0f (right: 01)",
    "05/null_is_empty": "record(0, None, b'tea') is",
    "05/transactional_id_is_empty": "has the length 0 (right: -1, which means null)",
    "05/waits_for_all_replicas": "of the frame) is -1 (right: 1)",
    "06/forgets_the_base_offset": "in segment 5000 the first entry is",
    "06/reads_at_any_position": "raises error: unpack_from requires a buffer of at least ",
    "06/returns_the_batch_after_a_gap": "compaction has removed the batch with the offsets ",
    "06/returns_the_batch_before": "find_batch(log, 0, ",
    "06/searches_linearly": "lookup of offset 0 reads 1000 entries",
    "06/takes_the_entry_after": "lookup([(9, 100)], 0) returns 100 (right: 0)",
    "06/trusts_positions": "wrong_entries returns []",
    "07/a_handler_dies": "half of the requests raise ValueError: run_stage does not end",
    "07/closing_drops_items": "get after close returns None (right: 'kept')",
    "07/closing_wakes_one_thread": "three threads wait in get: close does not wake all of them",
    "07/has_no_limit": "Channel(1) has 1 items, and put does not wait",
    "07/looks_again_and_again": "of the processor; use wait and notify_all",
    "07/responses_as_they_come": "the response to request ",
    "07/starts_the_time_again": "get(timeout=0.4) still waits after 1.5 s",
    "07/takes_the_newest": "..., and get returns [",
    "07/waits_only_once": "three threads wait in get, and 1 items come: 3 threads end",
    "08/copies_in_both": "send_zero_copy reads bytes of the file; os.sendfile sends them without reading",
    "08/moves_the_position": "send_copy moves the position of the file from 77 to 6000; use os.pread",
    "08/reads_everything": "send_copy(offset 100, count 50,000), with a system that transfers 9,000 bytes in a call",
    "08/returns_the_count": "offset 2,999,990, count 100) returns 100 (right: 10)",
    "08/sends_once": "with a system that transfers 9,000 bytes in a call: 9,000 bytes arrive",
    "08/starts_the_checksum_again": "offset 10, count 100,000) returns 3165462784 (right: 734505793)",
    "08/uses_send": "send_copy(file of 3,000,000 bytes, offset 1,000, count 200,000): ",
    "09/chooses_the_lowest_latency": "100.0, 50.0) returns 'linger 0' (right: 'linger 50')",
    "09/compresses_alone": "25 values, batches of 10, zlib: the sizes are [407, 407, 203] (right: [100, 98, 74])",
    "09/ignores_linger": "returns [(5, [10, 10, 10])] (right: [(5, [10, 10]), ",
    "09/keeps_beaten_runs": "1.0, 100.0)]) returns [('slow', 1.0, 50.0), ('a', 1.0, 100.0)] (right: [('a', 1.0, 100.",
    "09/leaves_too_late": " 10)], 5, 100) returns [(6, [10, 10]), (11, [10])] (right: [(5, [10, 10]), ",
    "09/linger_after_the_last_record": "5, 100) returns [(6, [10, 10])] (right: [(5, [10, 10])])",
    "09/overfills": "cut_batches([(0, 60), (1, 41)], 5, 100) returns [(5, [60, 41])] (right: [(1, [60]), (6, ",
    "09/takes_the_record_at_the_end": "returns [(5, [10, 10])] (right: [(5, [10]), (10,",
    "10/deals_like_cards": "the partitions of anna are not neighbors: [0, 2]",
    "10/does_not_sort": "assign_range(7, ['b', 'a']) returns",
    "10/forgets_previous": "can keep their owner; ",
    "10/gives_the_rest_to_the_first": "{'anna': [0], 'ben': [1, 2]}, 3, ['anna', 'ben']): 3 partitions can keep",
    "10/never_takes_away": "is not even: {'anna': [0, 1, 2, 3], 'ben': []}",
    "11/all_waits_for_the_leader": "is_acknowledged('all', 4, 5, 4) returns True (right: False)",
    "11/counts_all_replicas": "high_watermark({'A': 5, 'B': 2, 'C': 4}, ['A', 'C']) returns 2 (right: 4)",
    "11/elects_any_live_replica": "elect('ABC', ['A', 'C'], ",
    "11/forgets_the_leader": "in_sync('AB', 'B', {'A': 8, 'B': 2}, 9, 3) returns ['A'] (right: ['A', 'B'])",
    "11/is_one_too_early": "is_acknowledged('all', 4, 5, 4) returns True (right: False)",
    "11/keeps_what_is_shorter": "common_length([0, 0, 0], [0, 0, 1, 1]) returns 3 (right: 2)",
    "11/takes_the_leaders_end": "high_watermark({'A': 3, 'B': 2}, ['A', 'B']) returns 3 (right: 2)",
    "12/counts_all_old_segments": "expired([50, 10, 60], 45, 10) returns 1 (right: 0)",
    "12/deletes_the_active_segment": "expired([10, 20, 30], 41, 10) returns 3 (right: 2)",
    "12/drops_all_tombstones": "5, 10) keeps the offsets [2] (right: [1, 2])",
    "12/ignores_the_checksum": "byte 3 of three records is 0x04",
    "12/keeps_the_first_value": "keeps the offsets [0, 1] (right: [1])",
    "12/trusts_the_length": "of four records: recover returns",
    "13/accepts_gaps": "after [], append(7, 0, 3, 1) must raise OutOfOrder, but returns 0",
    "13/fences_only_later_batches": "append(7, 0, 0, 5) must raise Fenced, but returns 10",
    "13/forgets_the_epoch": "append(7, 0, 5, 5) must raise Fenced, but raises OutOfOrder",
    "13/keeps_one_batch": "after 2 batches of 10 records, batch number 1 comes again: append raises OutOfOrder",
    "13/reads_past_open_transactions": "('record', 7), ('record', None)]) returns [0, 2] (right: [0])",
    "13/returns_aborted_records": "('record', 7), ('record', None), ('abort', 7)]) returns [0, 1] (right: [1])",
    "13/stores_a_refused_epoch": "(7, 1, 5, 5), append(7, 0, 5, 5) must return 5, but raises Fenced; a refused batch",
    "13/writes_copies_again": "after 1 batch of 10 records, batch number 1 comes again: append raises OutOfOrder",
    "14/checks_laws_in_wrong_order": "broken_law returns 'commutativity' (right: 'associativity')",
    "14/counts_replayed_tuples": "it counts {'snow': 2, 'rain': 2, 'hail': 1} (right: {'snow': 1, 'rai",
    "14/forgets_what_is_above": "end_snapshot: the state is ",
    "14/keeps_one_offset": "and then all of [(0, 0, ",
    "14/keeps_the_old_snapshot": "begin_snapshot([",
    "14/means_of_means": "merge_means((0, 0), (6, 2)) returns (3.0, 1.0) (right: (6, 2))",
    "14/merges_into_the_first": "changes its arguments to {'hail': 3} and {'hail': 2}",
    "14/saves_everything": "end_snapshot returns ",
    "15/appends_the_output": ", 1 and again 0: read_output returns ['a', 'b', 'c', 'a', 'b'] (right: ['a', 'b', 'c'])",
    "15/commits_before_the_output": "and a second run: read_output returns [2, 3, 4, 5, 6]",
    "15/plans_a_new_range": "without a commit, returns (0, 0, 8) (right: (0, 0, 5))",
    "15/sorts_names": "after 11 batches, plan(folder, 12, 1) returns (10, 10, 11) (right: (11, 11, 12))",
    "15/takes_all_records": "plan(folder, 25, 10) returns (0, 0, 25) (right: (0, 0, 10))",
    "15/writes_in_place": "a new record 6, and a second run: JSONDecodeError",
}


@pytest.mark.parametrize("lab", labs(), ids=lambda lab: lab.folder.name)
def test_the_solution_meets_all_requirements(lab) -> None:  # type: ignore[no-untyped-def]
    results = check(lab, lab.folder / "solution.py", SEED)
    assert len(results) >= 4 and [each.error for each in results] == [None] * len(results)


@pytest.mark.parametrize("lab", labs(), ids=lambda lab: lab.folder.name)
def test_the_starter_can_be_loaded_and_fails(lab) -> None:  # type: ignore[no-untyped-def]
    results = check(lab, lab.folder / "starter.py", SEED)
    assert any(each.error is not None for each in results)


@pytest.mark.parametrize("lab", labs(), ids=lambda lab: lab.folder.name)
def test_a_lab_has_three_wrong_answers_and_hints(lab) -> None:  # type: ignore[no-untyped-def]
    assert len(list((WRONG / f"{lab.number:02}").glob("*.py"))) >= 3
    assert len(lab.hints) >= 3 and lab.title.startswith(f"Lab {lab.number}: ")


def words(text: str) -> str:
    """Return a requirement on one line, without backticks."""
    return " ".join(text.replace("`", "").split())


@pytest.mark.parametrize("lab", labs(), ids=lambda lab: lab.folder.name)
def test_the_text_lists_each_requirement_with_the_words_and_the_number_of_the_check(lab) -> None:  # type: ignore[no-untyped-def]
    for exercise in EXERCISES:
        option = " --second" if exercise is SECOND else ""
        heading = f"`hmb lab check {lab.number}{option}` tests these requirements:"
        listed = re.search(f"^{heading}\n(.*?)\n\n", lab.text, re.MULTILINE | re.DOTALL)
        assert listed
        texts = re.split(r"^\d+\. ", listed[1], flags=re.MULTILINE)[1:]
        assert re.findall(r"^(\d+)\. ", listed[1], re.MULTILINE) == [str(1 + number) for number in range(len(texts))]
        tests = ast.parse((lab.folder / exercise.check).read_text()).body
        functions = [each for each in tests if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")]
        checked = [ast.get_docstring(each) or "" for each in functions]
        assert list(map(words, texts)) == list(map(words, checked))


@pytest.mark.parametrize("wrong", sorted(WRONG.glob("*/*.py")), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_wrong_answer_gets_a_message_that_names_its_mistake(wrong: Path) -> None:
    lab = next(lab for lab in labs() if lab.number == int(wrong.parent.name))
    errors = [each.error for each in check(lab, wrong, SEED) if each.error is not None]
    assert errors and MESSAGES[f"{wrong.parent.name}/{wrong.stem}"] in errors[0]
