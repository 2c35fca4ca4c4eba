"""Preparing a data directory: the broker creates it if necessary, locks it, and reads its identity.

The file `meta.properties` contains the identity of a data directory: the node id, and the id of the cluster to which
the directory belongs. A new directory gets a new cluster id. No other file contains these ids. So if `meta.properties`
is damaged, the broker does not start.
"""

from __future__ import annotations

import uuid
from pathlib import Path

from hmb.protocol.errors import HmbError
from hmb.storage.files.durability import sync_directory
from hmb.storage.state import checkpoints
from hmb.storage.state.directory_lock import DirectoryInUse, DirectoryLock
from hmb.storage.state.manifest import Manifest
from hmb.uuids import encode_uuid

META_PROPERTIES = "meta.properties"


class DataDirectoryError(HmbError):
    """The broker cannot use the data directory. The message contains the reason, and what the user can do."""


def lock(directory: Path) -> DirectoryLock:
    """Create the data directory if it does not exist, and lock it. Raises DataDirectoryError."""
    try:
        make_directory(directory)
        return DirectoryLock(directory)
    except DirectoryInUse:
        raise DataDirectoryError(
            f"the data directory {directory} is in use by another broker; stop it, or choose another directory"
        ) from None
    except OSError as error:
        reason = f"{error.strerror}; choose another or change its permissions"
        if isinstance(error, FileExistsError):
            reason = "it is a file; choose another"
        elif isinstance(error, IsADirectoryError):
            reason = f"{error.filename} is a directory; remove it"
        raise DataDirectoryError(f"cannot use the data directory {directory}: {reason}") from error


def make_directory(path: Path) -> None:
    """Create a directory and its missing parents, so that they survive a power cut. Raises OSError."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    for each in missing:
        sync_directory(each.parent)


def cluster_id(directory: Path, manifest: Manifest, node_id: int) -> str:
    """Return the cluster id in `meta.properties`. If the file does not exist, create it with a new cluster id.

    Raises OSError, DamagedStateFile.
    """
    path = directory / META_PROPERTIES
    manifest.check(path)
    if path.exists():
        return checkpoints.read_cluster_id(path)
    new_cluster_id, directory_id = (encode_uuid(uuid.uuid4()) for _ in range(2))
    content = f"version=1\nnode.id={node_id}\ncluster.id={new_cluster_id}\ndirectory.id={directory_id}\n"
    manifest.replace_file(path, content)
    return new_cluster_id
