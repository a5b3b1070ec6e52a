"""The files of the state folder. No other user may read them, a reader finds each whole or not at all, and an error
says its cause."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from pwd import getpwuid
from uuid import uuid4

from calque.errors import CalqueError, StateFolderGone, StateUnusable, Unavailable

FOLDER_MODE, FILE_MODE = 0o700, 0o600
FULL = {errno.ENOSPC, errno.EDQUOT}
NOT_PERMITTED = {errno.EACCES, errno.EPERM}
NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
"""The errors of a file system without hard links."""
FULL_TEXTS = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT))
"""The texts of errors of a full disk, for errors that a library gives as a text alone."""
READ_ONLY_TEXT, PERMISSION_TEXTS = os.strerror(errno.EROFS), (os.strerror(errno.EACCES), os.strerror(errno.EPERM))
"""The texts of errors of a read-only file system and of a missing right."""


def make_folder(folder: Path) -> None:
    """Make the folder, and those above it that are missing, for this user alone. Raises `OSError`."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(FOLDER_MODE, exist_ok=True)


def write_whole(file: Path, data: bytes) -> None:
    """Write or replace the file. A reader finds the old one or the new one, and the new one is on the disk when this
    returns. Raises `OSError`, and leaves nothing then."""
    make_folder(file.parent)
    with draft_of(file, data) as draft:
        draft.replace(file)
    sync_folder(file.parent)


def write_new(file: Path, data: bytes) -> None:
    """Write the file where none has its name, whole at once; of several processes that do so one succeeds. Raises
    `OSError`, `FileExistsError` where there is one, and leaves nothing then."""
    make_folder(file.parent)
    with draft_of(file, data) as draft:
        try:
            os.link(draft, file)
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            write_new_without_links(file, data)


def write_new_without_links(file: Path, data: bytes) -> None:
    """Write the file where none has its name, on a file system without hard links. A reader may find a part of it.
    Raises as `write_new` does."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    try:
        write_all(descriptor, data)
    except OSError:
        file.unlink(missing_ok=True)
        raise
    finally:
        os.close(descriptor)


@contextmanager
def draft_of(file: Path, data: bytes, *, is_synced: bool = True) -> Iterator[Path]:
    """Yield a file with the data beside `file`, under a hidden name. It is gone at the end unless it was renamed."""
    draft = file.with_name(f".{file.name}.{uuid4().hex}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
        try:
            write_all(descriptor, data)
            if is_synced:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def write_all(descriptor: int, data: bytes) -> None:
    written = 0
    while written < len(data):
        written += os.pwrite(descriptor, data[written:], written)


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_private(file: Path, flags: int) -> int:
    """Return a descriptor of the file, which is made for this user alone where it is missing. Raises `OSError`."""
    make_folder(file.parent)
    return os.open(file, flags | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)


def restrict(path: Path) -> None:
    """Take from all other users what they may do with the file or folder, where it is this user's. A file with several
    names is left alone, because under another name it may be a file of the source's."""
    status = path.lstat()
    if status.st_uid != os.geteuid() or not status.st_mode & 0o077:
        return
    if stat.S_ISDIR(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_nlink == 1):
        path.chmod(stat.S_IMODE(status.st_mode) & 0o700)


def restrict_below(folder: Path, spared: Sequence[Path]) -> None:
    """Take from all other users what they may do with the folder and all in it (`restrict`), except for what lies in
    the spared folders, which are patterns of paths. Files that vanish meanwhile, and those of another user, are passed
    over."""
    for here, names, files in os.walk(folder, onerror=None):
        path = Path(here)
        with suppress(OSError):
            restrict(path)
        if any(path.match(str(pattern)) for pattern in spared):
            names.clear()
            continue
        for name in files:
            # Another process may remove it meanwhile.
            with suppress(OSError):
                restrict(path / name)


def require_room(folder: Path) -> None:
    """Raise `OSError` where no file can be written in the folder. It is tried with a hidden file that is removed
    again."""
    with draft_of(folder / "probe", bytes(4096)):
        pass


@contextmanager
def reaching(what: str, folder: Path) -> Iterator[None]:
    """Raise `state_error` in place of an `OSError` of the block. `what` is a passive sentence ("The record x can't be
    read")."""
    try:
        yield
    except OSError as error:
        raise state_error(what, folder, error.strerror or str(error), error) from error


def state_error(what: str, folder: Path | str, text: str, error: Exception | None) -> CalqueError:
    """Return the error of calque for one that was met below `folder`, or in a store. `text` is the text of the error:
    libraries may tell the system's errors in their texts alone. `error` may be None."""
    number = error.errno if isinstance(error, OSError) else None
    if number in FULL or any(full in text for full in FULL_TEXTS):
        todo = "Free or add space there; it goes on by itself"
        return Unavailable(what, f"The disk of {folder} is full ({text})", todo)
    if number == errno.EROFS or READ_ONLY_TEXT in text:
        return StateUnusable(what, f"The file system of {folder} is read-only", "Have it mounted for writing")
    is_refused = number in NOT_PERMITTED or any(refused in text for refused in PERMISSION_TEXTS)
    if is_refused and "://" not in str(folder):
        return StateUnusable(what, *not_permitted(Path(folder), text))
    return Unavailable(what, text, f"Check that {folder} can be reached and written; it is tried again")


def not_permitted(folder: Path, text: str) -> tuple[str, str]:
    """Return why this user may not use the folder, and what to do."""
    try:
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        owner, mode = folder.stat().st_uid, stat.S_IMODE(folder.stat().st_mode)
    except OSError:
        return text, "Give the user that runs calque the right to it"
    me = os.geteuid()
    if owner != me:
        return f"{folder} belongs to {user(owner)}, and this process is {user(me)}", f"Run it as {user(owner)}"
    if mode & 0o700 != 0o700 and folder.is_dir():
        return f"The mode of {folder} is {mode:o}", f"Say `chmod u+rwx {folder}`"
    return text, "Give the user that runs calque the right to it"


def require_own(folder: Path) -> None:
    """Raise `StateUnusable` where another user made the folder, because that user could not read what this one writes
    there."""
    owner, me = folder.stat().st_uid, os.geteuid()
    if owner != me:
        raise StateUnusable(
            f"The state folder {folder.parent} is another user's",
            f"{user(owner).capitalize()} has written it, and could not read what {user(me)} writes there",
            f"Run it as {user(owner)}, or give it a state folder of its own ([state] path)",
        )


def user(number: int) -> str:
    try:
        return f"user {getpwuid(number).pw_name}"
    except KeyError:
        return f"user {number}"


def require_there(folder: Path) -> None:
    """Raise `StateFolderGone` where the folder is not there. The caller has found it there before."""
    if not folder.exists():
        raise gone(folder, "The state folder was removed, or its file system unmounted, under this process")


def gone(path: Path, why: str) -> StateFolderGone:
    todo = "Have it mounted; where it was removed, start `calque run`: what it had is read again"
    return StateFolderGone(f"{path} is gone", why, todo)
