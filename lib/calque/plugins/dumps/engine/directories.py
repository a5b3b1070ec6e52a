"""The directories of dumps: a new one for each, and what becomes of old ones.

A dump that is under way has a folder on this machine with a lock; whoever finds one whose lock is free knows that it
died, and removes what it left. Dumps of others are never touched before they are finished.
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
    """A finished dump in a root."""

    directory: DumpDirectory
    modified_ns: int

    @property
    def path(self) -> str:
        return self.directory.directory


@contextmanager
def place_of_dump(
    folder: Path, storage: Storage, root: str, database: str, layout: DumpLayout
) -> Iterator[tuple[DumpDirectory, Path]]:
    """A new directory for a dump of the database, and a folder of its own on this machine, which goes at the end. What
    there is of a dump that fails goes, too; where it can't be removed now, the next dump does."""
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
    """Remove what dumps left that died on this machine."""
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
    """Those of the database, oldest first."""
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
    """Whether old dumps of the database were last looked for that long ago; they are from now on."""
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
    """Remove finished dumps beyond the newest `retain` (0: any number may stay), and those that are older. Which.
    A failure is the next dump's business."""
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
