"""Write hmb/testing/kafka_versions.json: the APIs and the version ranges of each release of Kafka.

    python tools/kafka_versions.py KAFKA_REPOSITORY kafka-clients-4.0.0.jar kafka-clients-4.1.0.jar ...

The releases up to 3.9 are read from the tags of a git repository of Kafka, and later releases from their
`kafka-clients` jars. Kafka has declared its versions in three forms:

- Up to 0.11, `Protocol.java` has an array of schemas for each request. The first entry is version 0.
- From 1.0 on, `ApiKeys.java` names the class with this array. The array is in the method `schemaVersions`.
- From 2.2 on, a message definition in JSON declares `validVersions`. The releases up to 2.4 have both forms.

Only the ranges are taken. They are facts about the protocol.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

Ranges = dict[str, list[int]]  # API: [first version, last version]
Read = Callable[[str], str]
TAGS = {
    "0.8.2": "0.8.2.2", "0.9.0": "0.9.0.1", "0.10.0": "0.10.0.1", "0.10.1": "0.10.1.1", "0.10.2": "0.10.2.2",
    "0.11.0": "0.11.0.2", "1.0": "1.0.2", "1.1": "1.1.1", "2.0": "2.0.1", "2.1": "2.1.1", "2.2": "2.2.2",
    "2.3": "2.3.1", "2.4": "2.4.1", "2.5": "2.5.1", "2.6": "2.6.3", "2.7": "2.7.2", "2.8": "2.8.2",
    "3.0": "3.0.2", "3.1": "3.1.2",
    "3.2": "3.2.3", "3.3": "3.3.2", "3.4": "3.4.1", "3.5": "3.5.2", "3.6": "3.6.2", "3.7": "3.7.1", "3.8": "3.8.0",
    "3.9": "3.9.0-rc3",
}  # fmt: skip
FIRST_IN_JSON_ALONE = "2.5"
JAVA = "clients/src/main/java/org/apache/kafka/common/"
MESSAGES = "clients/src/main/resources/common/message/"
OUTPUT = Path(__file__).parents[1] / "hmb" / "testing" / "kafka_versions.json"
RENAMED = {
    "ALTER_ISR": "ALTER_PARTITION",
    "CONSUMER_METADATA": "FIND_COORDINATOR",
    "CONTROLLED_SHUTDOWN_KEY": "CONTROLLED_SHUTDOWN",
    "ELECT_PREFERRED_LEADERS": "ELECT_LEADERS",
    "GROUP_COORDINATOR": "FIND_COORDINATOR",
    "LIST_CLIENT_METRICS_RESOURCES": "LIST_CONFIG_RESOURCES",
    "LIST_OFFSET": "LIST_OFFSETS",
    "UPDATE_METADATA_KEY": "UPDATE_METADATA",
}
NOT_SERVED_IN_0_8_2 = {"JOIN_GROUP", "HEARTBEAT"}  # The client's classes exist, but KafkaApis.scala has no case.


def message_versions(definitions: Iterator[str]) -> Ranges:
    """Return the ranges of all requests that a broker serves to clients or to other brokers."""
    ranges: Ranges = {}
    for text in definitions:
        definition = json.JSONDecoder().raw_decode(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE).strip())[0]
        if definition["type"] != "request" or definition["validVersions"] == "none":
            continue
        if not {"broker", "zkBroker"} & set(definition.get("listeners", ["broker"])):
            continue
        first, _, last = definition["validVersions"].partition("-")
        newest = int(last or first) - bool(definition.get("latestVersionUnstable"))
        if newest >= int(first):
            name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", definition["name"].removesuffix("Request")).upper()
            ranges[RENAMED.get(name, name)] = [int(first), newest]
    return ranges


def array_versions(text: str) -> list[int]:
    """Return the range of an array of schemas: `new Schema[] {A_V0, A_V1}`."""
    return [0, len([each for each in text.split(",") if each.strip()]) - 1]


def protocol_versions(read: Read) -> Ranges:
    """Return the ranges from Protocol.java."""
    text = re.sub(r"//.*", "", read(JAVA + "protocol/Protocol.java"))
    arrays = dict(re.findall(r"Schema\[\] (\w+_REQUEST) = (?:new Schema\[\] ?)?\{([^}]*)\}", text))
    named = re.findall(r"REQUESTS\[ApiKeys\.(\w+)\.id\] = (\w+);", text)
    return {RENAMED.get(name, name): array_versions(arrays[array]) for name, array in named if array in arrays}


def api_keys_versions(read: Read) -> Ranges:
    """Return the ranges from ApiKeys.java and the classes that it names."""
    ranges: Ranges = {}
    text = read(JAVA + "protocol/ApiKeys.java")
    for name, kind, source in re.findall(r"^ {4}(\w+)\(\d+, \"\w+\",[^;]*?(\w+)\.(schemaVersions|SCHEMAS)", text, re.M):
        if source == "SCHEMAS":
            definition = read(f"{MESSAGES}{kind.removesuffix('Data')}.json")
            found = list(message_versions(iter([definition])).values())
            ranges[RENAMED.get(name, name)] = found[0]
            continue
        java = re.sub(r"//.*", "", read(f"{JAVA}requests/{kind}.java"))
        array = re.search(r"schemaVersions\(\) \{\s*return new Schema\[\] ?\{([^}]*)\}", java)
        assert array is not None, (name, kind)
        ranges[RENAMED.get(name, name)] = array_versions(array[1])
    return ranges


def tag_versions(repository: str, version: str, tag: str) -> Ranges:
    """Return the ranges of one tag of Kafka's repository."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", repository, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def read(path: str) -> str:
        return git("show", f"{tag}:{path}")

    if number(version) < number("1.0"):
        ranges = protocol_versions(read)
        return {name: each for name, each in ranges.items() if version != "0.8.2" or name not in NOT_SERVED_IN_0_8_2}
    if number(version) < number(FIRST_IN_JSON_ALONE):
        return api_keys_versions(read)
    paths = git("ls-tree", "--name-only", tag, MESSAGES).split()
    return message_versions(read(path) for path in paths if path.endswith("Request.json"))


def jar_versions(path: str) -> Ranges:
    """Return the ranges of a `kafka-clients` jar."""
    with zipfile.ZipFile(path) as jar:
        names = [name for name in jar.namelist() if re.fullmatch(r"common/message/\w+Request\.json", name)]
        return message_versions(jar.read(name).decode() for name in names)


def number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def main(repository: str, *jars: str) -> None:
    """Write the file."""
    table = {version: tag_versions(repository, version, tag) for version, tag in TAGS.items()}
    for jar in jars:
        release = re.search(r"(\d+\.\d+)\.\d+\.jar$", jar)
        assert release is not None, jar
        table[release[1]] = jar_versions(jar)
    lines = [
        f'  "{version}": {json.dumps(dict(sorted(table[version].items())))}' for version in sorted(table, key=number)
    ]
    OUTPUT.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
