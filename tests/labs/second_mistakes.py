"""Wrong answers to the second exercises of the labs. `hmb lab check` must find the mistake in each of them."""

from __future__ import annotations

from typing import NamedTuple

from hmb.cli.lab.catalog import Lab, labs

LABS = {lab.number: lab for lab in labs()}


class Mistake(NamedTuple):
    """A mistake in the solution of a lab: the text `right` is replaced by `wrong`.

    The first error of the check must contain `message`.
    """

    name: str  # begins with the number of the lab
    right: str
    wrong: str
    message: str

    @property
    def lab(self) -> Lab:
        return LABS[int(self.name[:2])]


MISTAKES = [
    Mistake(
        "01/removes_at_delivery",
        right="                return self.receipts, job\n",
        wrong="                self.jobs.remove(entry)\n"
            "                return self.receipts, job\n",
        message="put('a'), put('b'), take(0), done of this job returns False (right: True)",
    ),
    Mistake(
        "01/never_delivers_again",
        right="if receipt is None or end <= now:",
        wrong="if receipt is None:",
        message="take(0), no done: take(10) delivers 'b' (right: 'a' again)",
    ),
    Mistake(
        "01/accepts_old_receipts",
        right="if newest == receipt:",
        wrong="if newest is not None and receipt <= newest:",
        message="done again with the same receipt returns True (right: False)",
    ),
    Mistake(
        "02/drops_early_messages",
        right="if self.next_number <= number < self.next_number + self.window:",
        wrong="if number == self.next_number:",
        message="the messages [1, 0] arrive: the receiver processes ['message 0']",
    ),
    Mistake(
        "02/acknowledges_the_message",
        right="        return self.next_number\n",
        wrong="        return number + 1\n",
        message="the messages [1, 0] arrive: the acknowledgements are [2, 1] (right: [0, 2])",
    ),
    Mistake(
        "02/keeps_processed_messages",
        right="self.process(self.early.pop(self.next_number))",
        wrong="self.process(self.early[self.next_number])",
        message="the receiver still has {'early': 10000}; no message waits",
    ),
    Mistake(
        "02/trusts_every_answer",
        right="        if acknowledged is not None:\n"
            "            begin = max(begin, acknowledged)\n",
        wrong="        begin += len(batch)\n",
        message="send gets the numbers [[0], [1], [2], [3], [4], [5], [6], [7]] (right: [[0], [0], [0], ",
    ),
    Mistake(
        "03/never_merges",
        right="                first, last, clicks = min(",
        wrong="                if clicks > 1:\n"
            "                    others.append(session)\n"
            "                    continue\n"
            "                first, last, clicks = min(",
        message="in this order: the open sessions are [(100, 125, 2), (150, 150, 1)] (right: [(100, 150, 3)])",
    ),
    Mistake(
        "03/follows_the_arrival",
        right="min(first, session[0]), max(last, session[1])",
        wrong="session[0], time",
        message=" [100, 80] in this order: the open sessions are [(100, 80, 2)] (right: [(80, 100, 2)])",
    ),
    Mistake(
        "03/closes_at_the_last_click",
        right="if each[1] + self.gap < watermark]",
        wrong="if each[1] < watermark]",
        message="clicks at [100], close(130) returns [(100, 100, 1, 'anna')] (right: [])",
    ),
    Mistake(
        "04/stores_each_timestamp",
        right="self.entries.append((self.greatest, offset))",
        wrong="self.entries.append((timestamp, offset))",
        message=" [10, 40, 20, 30, 50], interval 2: find(records, 35) returns 4 (right: 1)",
    ),
    Mistake(
        "04/searches_linearly",
        right="                low, begin = middle + 1, offset + 1\n"
            "            else:\n"
            "                high = middle\n",
        wrong="                low, begin = middle + 1, offset + 1\n"
            "            else:\n"
            "                low, begin = 0, 0\n"
            "                for each, at in self.entries:\n"
            "                    if each < time:\n"
            "                        begin = at + 1\n"
            "                break\n",
        message="find(records, 0) reads 1,001 entries; use a binary search",
    ),
    Mistake(
        "04/begins_after_an_equal_time",
        right="if greatest < time:",
        wrong="if greatest <= time:",
        message="interval 1: find(records, 10) returns 1 (right: 0)",
    ),
    Mistake(
        "05/one_chunk_is_one_frame",
        right="            self.rest = self.rest[4 + length :]\n",
        wrong='            self.rest = b""\n',
        message="in chunks of [19] bytes: [b'tea']",
    ),
    Mistake(
        "05/waits_for_any_length",
        right="if not 0 <= length <= self.limit:",
        wrong="if length < 0:",
        message="a frame of the length 101: the call must raise ValueError, but returns []",
    ),
    Mistake(
        "05/ignores_the_checksum",
        right='if crc32c(data[21:]) != int.from_bytes(data[17:21], "big"):',
        wrong="if len(data) < 61:",
        message="and byte 17 has changed: the call must raise ValueError, but returns [(0, b",
    ),
    Mistake(
        "05/trusts_the_record_length",
        right="if headers != 0 or position != begin + length:",
        wrong="if headers != 0:",
        message="its record length 4: the call must raise ValueError, but returns [(0, b'key', b'value')]",
    ),
    Mistake(
        "06/counts_the_batch_first",
        right="        if since > interval:\n",
        wrong="        since += end - position\n"
            "        if since > interval:\n",
        message="(log, 0, 300): entry 0 (relative offset, position) is (6, 129) (right: (9, 326))",
    ),
    Mistake(
        "06/writes_the_first_offset",
        right="        yield position, first + delta, end\n",
        wrong="        yield position, first, end\n",
        message="entry 0 (relative offset, position) is (7, 326) (right: (9, 326))",
    ),
    Mistake(
        "06/keeps_the_index",
        right="if base_offset + entry[0] < offset]",
        wrong="]",
        message="the index of truncate(..., 2) has 25 entries (right: 0)",
    ),
    Mistake(
        "07/does_not_mute",
        right="            self.busy.add(connection)\n",
        wrong="            if len(self.waiting[connection]) > 1:\n"
            "                self.ready.append(connection)\n",
        message="A1 and B1 are in progress, and take returns ('A', 'A2')",
    ),
    Mistake(
        "07/one_limit_for_all",
        right="self.changed.wait_for(lambda: len(waiting) < self.limit)",
        wrong="self.changed.wait_for(lambda: sum(map(len, self.waiting.values())) < self.limit)",
        message="put of B1 waits, although B has no request",
    ),
    Mistake(
        "07/looks_again_and_again",
        right="            self.changed.wait_for(lambda: self.ready)\n",
        wrong="            while not self.ready:\n"
            "                self.changed.wait(0.00001)\n",
        message="s of the processor; use wait and notify_all",
    ),
    Mistake(
        "08/begins_a_part_again",
        right="            except BlockingIOError:\n"
            "                return False\n"
            "            self.parts[:1] = [rest] if rest else []\n",
        wrong="            except BlockingIOError:\n"
            "                return False\n"
            "            if not rest:\n"
            "                del self.parts[0]\n",
        message="so write sends some bytes again",
    ),
    Mistake(
        "08/waits_for_the_receiver",
        right="                return False\n"
            "            self.parts",
        wrong="                continue\n"
            "            self.parts",
        message="write waits until the receiver reads; it must return False",
    ),
    Mistake(
        "08/reads_the_file",
        right="        sent = os.sendfile(connection.fileno(), self.descriptor, offset, count)\n",
        wrong="        sent = connection.send(os.pread(self.descriptor, count, offset))\n",
        message="the method `write` reads the file into memory; call os.sendfile instead",
    ),
    Mistake(
        "09/deals_like_cards",
        right="        if placed >= batch_size:\n",
        wrong="        if placed:\n",
        message="3, 100, zlib.crc32) returns [0, 1, 2] (right: [0, 0, 0])",
    ),
    Mistake(
        "09/one_batch_for_all_partitions",
        right="for (_, size), partition in zip(records, places, strict=True):",
        wrong="for (_, size), partition in zip(records, [0] * len(places), strict=True):",
        message="count_batches([(None, 50), (None, 50)], [0, 1], 100) returns 1 (right: 2)",
    ),
    Mistake(
        "09/prefers_long_queues",
        right="max(waiting) + 1 - count",
        wrong="count + 1",
        message=" 1]: choose with the numbers 0, 1, ... returns [0, 1, 1, 1, 1] (right: [0, 0, 0, 0, 1])",
    ),
    Mistake(
        "10/jumps_to_the_target",
        right="if busy.get(number, name) == name)",
        wrong=")",
        message="ben gets partition 1 while anna still owns it",
    ),
    Mistake(
        "10/stops_everyone",
        right="    return {\n"
            "        name: sorted",
        wrong="    if any(busy.get(each, name) != name for name, numbers in target.items() for each in numbers):\n"
            "        return {name: [] for name in target}\n"
            "    return {\n"
            "        name: sorted",
        message="{'anna': [0], 'ben': [1]}): anna loses partition 0, which it keeps",
    ),
    Mistake(
        "10/waits_for_consumers_that_left",
        right="for name in owned.keys() & target.keys():",
        wrong="for name in owned:",
        message="partition 2 is free, and anna does not get it",
    ),
    Mistake(
        "11/returns_the_asked_epoch",
        right="return None if found is None else (found, end)",
        wrong="return epoch, end",
        message="end_of_epoch([(0, 0)], 2, 3) returns (3, 2) (right: (0, 2))",
    ),
    Mistake(
        "11/asks_only_once",
        right="        log_end = start  # The leader has no record of this epoch.\n",
        wrong="        return min(log_end, leader_end)\n",
        message=" 2], and the leader's [0, 1, 1, 3]: truncation_point returns 3 (right: 2)",
    ),
    Mistake(
        "11/ignores_its_own_end",
        right="return min(log_end, leader_end)",
        wrong="return leader_end",
        message=" 2], and the leader's [0, 1, 1, 3]: truncation_point returns 3 (right: 2)",
    ),
    Mistake(
        "12/ignores_the_size_of_the_map",
        right="        if key not in latest and len(latest) == map_size:\n"
            "            break\n",
        wrong="",
        message=", 'a')]: clean(..., 0, 2) keeps [(3, 'c'), (4, 'b'), (5, 'a')] (right: [(1, 'b'), (2, '",
    ),
    Mistake(
        "12/stops_at_the_last_key",
        right="        if key not in latest and len(latest) == map_size:\n",
        wrong="        if len(latest) == map_size:\n",
        message="[(0, 'a'), (1, 'b'), (2, 'a'), (3, 'c'), (4, 'b'), (5, 'a')] (right: [(1, 'b'), (2, '",
    ),
    Mistake(
        "12/cleans_only_the_dirty_part",
        right="if latest.get(record[1], -1) <= record[0]]",
        wrong="if record[0] < checkpoint or latest.get(record[1], -1) <= record[0]]",
        message="3, 2) keeps [(0, 'a'), (1, 'b'), (2, 'c'), (3, 'a'), (4, 'b')] (right: [(2, 'c'), (3, '",
    ),
    Mistake(
        "13/decides_after_the_markers",
        right='        self.journal.append(["decide", name, outcome])\n'
            "        self.outcomes[name] = outcome\n"
            "        self._complete(name, outcome)\n",
        wrong="        for partition in self.partitions[name]:\n"
            "            self.write_marker(partition, name, self.epochs[name], outcome)\n"
            '        self.journal.append(["decide", name, outcome])\n'
            "        self.outcomes[name] = outcome\n"
            '        self.journal.append(["complete", name, outcome])\n'
            "        self.partitions[name] = []\n",
        message="has the markers [('a', 'abort'), ('a', 'commit'), ('b', 'abort'), ('c', 'abort')]",
    ),
    Mistake(
        "13/forgets_partitions",
        right='            self.journal.append(["add", name, partition])\n',
        wrong="",
        message="a new coordinator with the same journal, begin: the markers are [] (right: [('a', 'bank', 0",
    ),
    Mistake(
        "13/does_not_fence",
        right="if epoch != self.epochs.get(name):",
        wrong="if epoch > self.epochs.get(name, 0):",
        message="begin, begin again, and add with the epoch of the first one does not raise Fenced",
    ),
    Mistake(
        "13/changes_the_outcome",
        right="        if decided != outcome:\n",
        wrong="        if False:\n",
        message="end with 'commit': end with 'abort' does not raise Ended",
    ),
    Mistake(
        "13/forgets_the_outcome",
        right="decided[name] = self.outcomes[name] = value",
        wrong="decided[name] = value",
        message="end with 'commit', a new coordinator: ",
    ),
    Mistake(
        "13/never_completes",
        right='        self.journal.append(["complete", name, outcome])\n',
        wrong="",
        message="two complete transactions, a new coordinator, and begin: it writes the markers [('a', 'bank'",
    ),
    Mistake(
        "14/counts_equal_numbers_once",
        right="sorted(a + b, reverse=True)",
        wrong="sorted({*a, *b}, reverse=True)",
        message="greatest(2): merge((5,), (5,)) is (5,) (right: (5, 5))",
    ),
    Mistake(
        "14/never_forgets",
        right="            self.old.pop()\n",
        wrong="            self.old[:] = self.old\n",
        message="max, window of 1, after push of [5, 3]: result() is 5 (right: 3)",
    ),
    Mistake(
        "14/merges_the_newest_first",
        right="self.merge(self.merged, value)",
        wrong="self.merge(value, self.merged)",
        message="join texts, window of ",
    ),
    Mistake(
        "14/merges_all_again",
        right="        return self.merge(self.old[-1], self.merged) if self.old else self.merged\n",
        wrong="        state = self.empty\n"
            "        for value in self.new:\n"
            "            state = self.merge(state, value)\n"
            "        return self.merge(self.old[-1], state) if self.old else state\n",
        message="merge was called 1,175 times; do not merge all values again for each result",
    ),
    Mistake(
        "15/plans_a_new_range",
        right="        if planned != number:\n",
        wrong="        if True:\n",
        message="batch 1 is written again with the rows {'hail': 2, 'rain': 2}; before, it had {'hail': 2}",
    ),
    Mistake(
        "15/position_and_state_apart",
        right='        write_json(folder / "state.json", [number + 1, end, counts])\n',
        wrong='        write_json(folder / "state.json", [number, begin, counts])\n'
            '        write_json(folder / "state.json", [number + 1, end, counts])\n',
        message="batch 0 is written again with the rows {'hail': 2, 'rain': 2}; before, it had {'hail': 1, 'rain': 1}",
    ),
    Mistake(
        "15/state_before_the_output",
        right="        sink.write(number, rows)\n"
            '        write_json(folder / "state.json", [number + 1, end, counts])\n',
        wrong='        write_json(folder / "state.json", [number + 1, end, counts])\n'
            "        sink.write(number, rows)\n",
        message="sink.write gets batch 1, but the newest batch is -1",
    ),
    Mistake(
        "15/writes_in_place",
        right='    with temporary.open("w") as file:\n'
            "        json.dump(content, file)\n"
            "        file.flush()\n"
            "        os.fsync(file.fileno())\n"
            "    temporary.replace(path)\n",
        wrong='    with path.open("w") as file:\n'
            "        text = json.dumps(content)\n"
            "        file.write(text)\n",
        message="and a second run: JSONDecodeError",
    ),
]
