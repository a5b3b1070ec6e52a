"""The directories of dumps: a new one for each dump, and the removal of old ones.

A dump that is under way has a folder on this machine with a lock. A folder whose lock is free belongs to a dump whose
process died: the next dump removes the folder, and the directory that the dead one left. A dump of another process is
never touched before it is finished.
"""

from __future__ import annotations

import fcntl
import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from calque.core.formats.layout import join
from calque.errors import CalqueError
from calque.plugins.dumps.core.layout import (
    FINISHED_DUMP,
    HIVE_DIRECTORY,
    DumpDirectory,
    DumpLayout,
    policy_directory,
)
from calque.ports import Storage

LOG = logging.getLogger(__name__)
LOCK, DIRECTORY = "lock", "directory"


@dataclass(frozen=True, slots=True)
class FoundDump:
    """A finished dump in a root. `modified_ns` is the time of its `_finished_dump`, in nanoseconds since the epoch."""

    directory: DumpDirectory
    modified_ns: int

    @property
    def path(self) -> str:
        return self.directory.directory


@contextmanager
def place_of_dump(
    folder: Path, storage: Storage, root: str, database: str, layout: DumpLayout
) -> Iterator[tuple[DumpDirectory, Path]]:
    """Give the block the path of a new directory for a dump of the database, and a folder on this machine for the time
    of the dump. Where the block raises, the directory is removed with all that is in it; where it can't be removed now,
    the next dump removes it."""
    name = str(uuid4())
    own = folder / name
    own.mkdir(parents=True)
    directory = DumpDirectory(join(policy_directory(root, database), name), layout)
    with (own / LOCK).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (own / DIRECTORY).write_text(directory.directory, encoding="utf-8")
        try:
            yield directory, own
        except BaseException:
            try:
                storage.remove([directory.directory])
            except CalqueError as error:
                LOG.warning("dump: %s stays for now: %s", directory.directory, error)
            else:
                shutil.rmtree(own, ignore_errors=True)
            raise
        shutil.rmtree(own, ignore_errors=True)


def remove_dead(folder: Path, storage: Storage) -> None:
    """Remove the directories of dumps that died on this machine before they were finished, and their folders in
    `folder`."""
    for own in sorted(folder.iterdir()) if folder.is_dir() else ():
        try:
            lock = (own / LOCK).open("r+")
        except OSError:
            continue
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            directory = own / DIRECTORY
            left = directory.read_text(encoding="utf-8") if directory.exists() else ""
            if left and not any(storage.exists(path) for path in finished_marks(left)):
                LOG.info("dump: %s was left by a dump that died", left)
                storage.remove([left])
            shutil.rmtree(own, ignore_errors=True)


def finished_dumps(storage: Storage, root: str, database: str) -> list[FoundDump]:
    """Return the finished dumps of the database below `root`, the oldest first."""
    above = policy_directory(root, database)
    found = []
    for entry in storage.entries(above):
        if not entry.directory or entry.name.startswith((".", "_")):
            continue
        for layout in DumpLayout:
            directory = DumpDirectory(join(above, entry.name), layout)
            mark = storage.files([directory.finished_dump]).get(directory.finished_dump)
            if mark is not None:
                found.append(FoundDump(directory, mark.modified_ns))
                break
    return sorted(found, key=lambda dump: (dump.modified_ns, dump.path))


def is_cleaning_due(folder: Path, database: str, pause_ns: int, now_ns: int) -> bool:
    """Tell whether old dumps of the database were last looked for at least `pause_ns` nanoseconds ago, and if so note
    `now_ns` as the time of the last look. The result is always true where `pause_ns` is 0."""
    if not pause_ns:
        return True
    mark = folder / f"cleaned.{database}"
    if mark.exists() and now_ns - mark.stat().st_mtime_ns < pause_ns:
        return False
    mark.touch()
    return True


def remove_old(
    storage: Storage, root: str, database: str, retain: int, before_ns: int, keep: DumpDirectory
) -> list[str]:
    """Remove the finished dumps of the database beyond the newest `retain` (0: any number may stay), counting the new
    dump `keep`, and those that were finished before `before_ns`. Return the paths of the removed dumps. An error is
    logged and not raised, because the next dump tries again."""
    try:
        dumps = [dump for dump in finished_dumps(storage, root, database) if dump.directory != keep]
        beyond = dumps[: max(0, len(dumps) + 1 - retain)] if retain else []
        old = [dump.path for dump in dumps if dump in beyond or dump.modified_ns < before_ns]
        for path in old:
            # Without its mark first: a reader takes it for unfinished at once.
            storage.remove([*finished_marks(path)])
            storage.remove([path])
    except CalqueError as error:
        LOG.warning("dump: old dumps stay: %s", error)
        return []
    return old


def finished_marks(directory: str) -> tuple[str, ...]:
    return join(directory, f"{HIVE_DIRECTORY}/{FINISHED_DUMP}"), join(directory, FINISHED_DUMP)
