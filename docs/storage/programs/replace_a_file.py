import os
from pathlib import Path


def replace_file(path: Path, content: str) -> None:
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("w") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())  # 1. The new content is on disk.
    temporary.rename(path)  # 2. The file with the new content now has the final name.
    directory = os.open(path.parent, os.O_RDONLY)
    os.fsync(directory)  # 3. The new name is on disk.
    os.close(directory)


replace_file(Path("checkpoint"), "0\n1\nweather 0 16100\n")
print(Path("checkpoint").read_text(), end="")
