"""The copy of one file from here to there: as evidence describes it, whole or not at all, and read back.

The content goes to a hidden temporary name beside the target, is read back from there and compared by xxh3-128, and
only then renamed; `CopyProof` says where the storage proves it. Where a file system can, a big file is cloned, and
both files are read. A target is therefore never a part of a file, whenever the process dies; a death leaves a file
whose name begins with `layout.COPYING`. `Durability` says when a copy outlives a loss of power. Where the file system
can give it, a copy gets its source's time: a listing then tells it from every other content.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from secrets import token_hex

from xxhash import xxh3_128, xxh3_128_hexdigest

from calque.adapters.files.local import ANYBODY, LocalSystem
from calque.adapters.files.metered import bare
from calque.adapters.files.objects import ObjectSystem
from calque.adapters.files.system import OF_THE_NAME, FileFacts, PermissionSystem, ReadableSystem, System, trouble
from calque.core.formats.layout import COPYING
from calque.errors import Broken, CalqueError
from calque.model.files import CopyProof
from calque.ports import CopiedFile, CopyTask

RUN, NUMBERS = token_hex(8), count()
OWNERS = 0o700
WHOLE = 256 << 10
"""The size in bytes up to which local files are copied in one piece."""


def copy_between(
    task: CopyTask,
    source: ReadableSystem,
    path: str,
    target: System,
    target_path: str,
    proof: CopyProof = "auto",
) -> CopiedFile:
    """Copy one file and verify it by `proof`. What is wrong with this file alone (it changed or vanished, can't be
    read, another file has its place) becomes a `problem` of the result.

    Raises `Unavailable` when a storage doesn't answer or is full, `Refused` when the target may not be written.
    """
    try:
        return _copied(task, source, path, target, target_path, proof)
    except _FileUncopied as unfit:
        return CopiedFile(task, problem=str(unfit))


def read_listed(task: CopyTask, source: ReadableSystem, path: str) -> tuple[bytes, str]:
    """Return a file's content and an empty text, if the file is as evidence describes it before and after it is read.
    Otherwise return no content and why, as the `problem` of a copy. Raises `Unavailable`."""
    try:
        source_facts = _source_facts(task, source, path)
        content = b"".join(map(bytes, _source_chunks(task, source, path)))
        _require_unchanged(task, source, path, source_facts)
    except _FileUncopied as unfit:
        return b"", str(unfit)
    return content, ""


def by_target(tasks: Sequence[CopyTask]) -> Mapping[str, CopyTask]:
    """Return the tasks by their targets. Raises `Broken` when different files are to be copied to one target."""
    tasks_of: dict[str, CopyTask] = {}
    for task in tasks:
        if (other := tasks_of.setdefault(task.target, task)) is not task and other != task:
            raise Broken(
                f"{task.source} and {other.source} are both to be copied to {task.target}",
                "Each object has a directory of its own",
                "Report it with the plan",
            )
    return tasks_of


def same_content(first: tuple[System, str], second: tuple[System, str], size: int) -> bool:
    """Return whether two files have the same content, by xxh3-128. Raises `OSError`."""
    return _checksum(*first, size) == _checksum(*second, size)


class _FileUncopied(Exception):
    """A single file can't be copied, while the others can."""


def _copied(
    task: CopyTask, source: ReadableSystem, path: str, target: System, target_path: str, proof: CopyProof
) -> CopiedFile:
    if isinstance(target, ObjectSystem):
        return _put(task, source, path, _source_facts(task, source, path), target, target_path, proof)
    existing = _target_facts(task, target, target_path)
    if task.ours and existing is not None and _is_dated(task, existing):
        return CopiedFile(task)
    if existing is None and task.size <= WHOLE and isinstance(source, LocalSystem) and isinstance(target, LocalSystem):
        return _whole(task, source, path, target, target_path, proof)
    source_facts = _source_facts(task, source, path)
    if existing is not None:
        return _kept(task, source, path, source_facts, target, target_path, existing)
    temporary = _temporary(target_path)
    try:
        checksum = _written(task, source, path, target, temporary, _most_rights(task, source, path), proof)
        _require_unchanged(task, source, path, source_facts)
        _require_stored(task, target, temporary, checksum, proof)
        unpermitted = _given_permissions(task, source, path, target, temporary)
        _renamed(task, target, temporary, target_path)
    except BaseException:
        discard(target, temporary)
        raise
    return CopiedFile(task, checksum, bytes_moved=task.size, unpermitted=unpermitted)


def _put(
    task: CopyTask,
    source: ReadableSystem,
    path: str,
    source_facts: FileFacts,
    target: ObjectSystem,
    target_path: str,
    proof: CopyProof,
) -> CopiedFile:
    """Copy a file into an object store, without a temporary name, because an object appears whole or not at all.
    Between two places of one store the store copies by itself; a checksum is computed then only where the store could
    not prove that both are equal."""
    digest = xxh3_128()

    def hashed() -> Iterator[memoryview]:
        for chunk in _source_chunks(task, source, path):
            digest.update(chunk)
            yield chunk
        _require_unchanged(task, source, path, source_facts)

    try:
        copied_by_store = proven = target.copy_from(bare(source), path, source_facts, target_path)
        if copied_by_store is None:
            proven = target.create_whole(target_path, hashed(), task.size)
    except FileExistsError as error:
        existing = _target_facts(task, target, target_path)
        if existing is None:
            raise trouble("write", task.target, error) from error
        return _kept(task, source, path, source_facts, target, target_path, existing)
    except FileNotFoundError as error:
        raise _FileUncopied(f"{task.source} was replaced while it was copied.") from error
    except OSError as error:
        raise _of_target(task, error) from error
    if proven and proof != "read":
        return CopiedFile(task, "" if copied_by_store else digest.hexdigest(), bytes_moved=task.size)
    checksum = ""
    try:
        if copied_by_store is not None and proof != "storage":
            for chunk in _source_chunks(task, source, path):
                digest.update(chunk)
        if copied_by_store is None or proof != "storage":
            checksum = digest.hexdigest()
        _require_stored(task, target, target_path, checksum, proof)
    except _FileUncopied:
        discard(target, target_path)
        raise
    return CopiedFile(task, checksum, bytes_moved=task.size)


def _whole(
    task: CopyTask, source: LocalSystem, path: str, target: LocalSystem, target_path: str, proof: CopyProof
) -> CopiedFile:
    """Copy a small file between local file systems, with the same checks as for other files. It takes half as many
    system calls, because the file is read, written and read back at once."""
    try:
        source_facts, content, linked = source.read_whole(path, task.size)
    except FileNotFoundError as error:
        raise _missing(task) from error
    except OSError as error:
        raise _of_source(task, error) from error
    _require_listed(task, source_facts)
    if len(content) != task.size:
        raise _FileUncopied(f"{task.source} changed its length while it was copied.")
    _require_unchanged(task, source, path, source_facts)
    temporary = _temporary(target_path)
    try:
        rights = _most_rights(task, source, path, linked=linked)
        if not target.write_whole(temporary, content, task.modified_ns, rights, back=proof != "storage"):
            raise _faulty(task)
        unpermitted = _given_permissions(task, source, path, target, temporary)
        target.rename(temporary, target_path)
    except OSError as error:
        discard(target, temporary)
        raise _of_target(task, error) from error
    except BaseException:
        discard(target, temporary)
        raise
    return CopiedFile(task, xxh3_128_hexdigest(content), bytes_moved=task.size, unpermitted=unpermitted)


def give_permissions(source: ReadableSystem, path: str, target: System, target_path: str) -> str:
    """Give the file at the target the permissions of the file at the source, where both systems have them. Returns
    those that could not be given, and why. Raises `OSError`."""
    source = bare(source)
    if not isinstance(source, PermissionSystem) or not isinstance(target, PermissionSystem):
        return ""
    permissions = source.permissions(path)
    return "" if permissions is None else target.set_permissions(target_path, permissions)


def narrow(task: CopyTask, source: ReadableSystem, path: str, target: System, target_path: str) -> None:
    """Take from group and others the rights that `_most_rights` does not leave them. Raises `OSError`."""
    rights = _most_rights(task, source, path)
    if rights == ANYBODY or not isinstance(target, PermissionSystem):
        return
    current = target.permissions(target_path)
    if current is not None and current.mode & ~(OWNERS | rights):
        target.set_permissions(target_path, replace(current, mode=current.mode & (OWNERS | rights)))


def _most_rights(task: CopyTask, source: ReadableSystem, path: str, *, linked: bool | None = None) -> int:
    """Return the bits of the greatest rights that the copy may have: those of its source for a file that is lent or
    that a link leads to, else the bits of any new file. `linked` says whether the file's name is a link, if that is
    known. Raises `_FileUncopied`."""
    source = bare(source)
    if (
        task.permissions
        or not isinstance(source, LocalSystem)
        or not (task.lent or linked or _is_linked(task, source, path, is_file=linked is None))
    ):
        return ANYBODY
    try:
        return OWNERS & ANYBODY | source.rights(path) & ANYBODY
    except OSError as error:
        raise _of_source(task, error) from error


def _is_linked(task: CopyTask, source: LocalSystem, path: str, *, is_file: bool) -> bool:
    """Return whether a symbolic link leads to the file: a directory between it and `task.within` is one, or with
    `is_file` the file itself."""
    is_below = task.within and task.source.startswith(task.within)
    above = task.source.removeprefix(task.within).strip("/").count("/") if is_below else 0
    return source.is_linked(path, above) if is_file else source.is_below_link(path, above)


def _given_permissions(task: CopyTask, source: ReadableSystem, path: str, target: System, target_path: str) -> str:
    if not task.permissions:
        return ""
    try:
        return give_permissions(source, path, target, target_path)
    except OSError as error:
        raise _of_target(task, error) from error


def _temporary(path: str) -> str:
    """Return a new name beside the path. Processes that were forked share `RUN`, but no number."""
    return f"{path.rpartition('/')[0]}/{COPYING}{RUN}-{os.getpid():x}-{next(NUMBERS):x}"


def _faulty(task: CopyTask) -> _FileUncopied:
    return _FileUncopied(f"{task.target} isn't read back as it was written: its storage, or the way to it, is faulty.")


def _missing(task: CopyTask) -> _FileUncopied:
    return _FileUncopied(f"{task.source} is not there any more.")


def _is_dated(task: CopyTask, facts: FileFacts) -> bool:
    """Return whether a file that calque put at the target is a verified copy of the task's file: a copy gets its
    source's time only after it was verified, and its name after that."""
    return not facts.directory and (facts.size, facts.modified_ns) == (task.size, task.modified_ns)


def _kept(
    task: CopyTask,
    source: ReadableSystem,
    path: str,
    source_facts: FileFacts,
    target: System,
    target_path: str,
    existing: FileFacts,
) -> CopiedFile:
    """Keep the file that lies at the target if it has the source's content, and give it the time and permissions of the
    task. Raises `_FileUncopied` for another content."""
    other = _FileUncopied(f"{task.target} is there already with other content. Remove it if nothing uses it.")
    if existing.directory or existing.size != task.size:
        raise other
    digest = xxh3_128()
    for chunk in _source_chunks(task, source, path):
        digest.update(chunk)
    _require_unchanged(task, source, path, source_facts)
    if _read_back(task, target, target_path) != digest.hexdigest():
        raise other
    try:
        target.date(target_path, task.modified_ns)
    except OSError as error:
        raise _of_target(task, error) from error
    unpermitted = _given_permissions(task, source, path, target, target_path)
    return CopiedFile(task, digest.hexdigest(), unpermitted=unpermitted)


def _source_facts(task: CopyTask, source: ReadableSystem, path: str) -> FileFacts:
    try:
        facts = source.facts(path)
    except OSError as error:
        raise _of_source(task, error) from error
    if facts is None:
        raise _missing(task)
    _require_listed(task, facts)
    return facts


def _require_listed(task: CopyTask, facts: FileFacts) -> None:
    if facts.directory:
        raise _FileUncopied(f"{task.source} is a directory now.")
    if (facts.size, facts.modified_ns) != (task.size, task.expected_ns):
        raise _FileUncopied(
            f"{task.source} is not the file that was listed: {facts.size} bytes of {facts.modified_ns} ns "
            f"instead of {task.size} of {task.expected_ns}."
        )


def _require_unchanged(task: CopyTask, source: ReadableSystem, path: str, before: FileFacts) -> None:
    if _source_facts(task, source, path) != before:
        raise _FileUncopied(f"{task.source} was replaced while it was copied.")


def _source_chunks(task: CopyTask, source: ReadableSystem, path: str) -> Iterator[memoryview]:
    """Give the source's content. Raises `_FileUncopied` unless it is exactly as long as it should be."""
    length = 0
    try:
        for chunk in source.chunks(path, task.size):
            length += len(chunk)
            if length > task.size:
                break
            yield chunk
    except FileNotFoundError as error:
        raise _FileUncopied(f"{task.source} vanished while it was copied.") from error
    except OSError as error:
        raise _of_source(task, error) from error
    if length != task.size:
        raise _FileUncopied(f"{task.source} changed its length while it was copied.")


def _of_source(task: CopyTask, error: OSError) -> CalqueError | _FileUncopied:
    if isinstance(error, ConnectionError | TimeoutError):
        return trouble("read", task.source, error)
    return _FileUncopied(f"{task.source} can't be read: {type(error).__name__}: {error.strerror or error}.")


def _target_facts(task: CopyTask, target: System, path: str) -> FileFacts | None:
    try:
        return target.facts(path)
    except OSError as error:
        raise _of_target(task, error) from error


def _written(
    task: CopyTask,
    source: ReadableSystem,
    path: str,
    target: System,
    temporary: str,
    rights: int,
    proof: CopyProof,
) -> str:
    """Write the content under the temporary name, and return its checksum; an empty one where it was cloned and needs
    no proof."""
    digest = xxh3_128()

    def hashed() -> Iterator[memoryview]:
        for chunk in _source_chunks(task, source, path):
            digest.update(chunk)
            yield chunk

    try:
        if not isinstance(target, LocalSystem):
            target.create(temporary, hashed())
            narrow(task, source, path, target, temporary)
        elif not _cloned(source, path, target, temporary, rights):
            target.create(temporary, hashed(), rights)
        elif proof == "storage":
            return ""
        else:
            deque(hashed(), maxlen=0)
    except OSError as error:
        raise _of_target(task, error) from error
    return digest.hexdigest()


def _cloned(source: ReadableSystem, path: str, target: LocalSystem, temporary: str, rights: int) -> bool:
    source = bare(source)
    return isinstance(source, LocalSystem) and target.clone(temporary, source, path, rights)


def _require_stored(task: CopyTask, target: System, path: str, checksum: str, proof: CopyProof) -> None:
    """Raise `_FileUncopied` unless the file at the target is read back with the checksum; with the proof `storage`,
    unless it has its size."""
    if proof == "storage":
        facts = _target_facts(task, target, path)
        if facts is None or facts.size != task.size:
            raise _FileUncopied(f"{task.target} has not the size that was written: its storage is faulty.")
    elif _read_back(task, target, path) != checksum:
        raise _faulty(task)


def _read_back(task: CopyTask, target: System, path: str) -> str:
    try:
        return _checksum(target, path, task.size)
    except OSError as error:
        raise _of_target(task, error) from error


def _checksum(system: System, path: str, size: int) -> str:
    digest = xxh3_128()
    for chunk in system.chunks(path, size):
        digest.update(chunk)
    return digest.hexdigest()


def _renamed(task: CopyTask, target: System, temporary: str, path: str) -> None:
    try:
        target.date(temporary, task.modified_ns)
        target.rename(temporary, path)
    except OSError as error:
        raise _of_target(task, error) from error


def _of_target(task: CopyTask, error: OSError) -> CalqueError | _FileUncopied:
    if error.errno in OF_THE_NAME:
        return _FileUncopied(f"{task.target} can't be written: {type(error).__name__}: {error.strerror or error}.")
    return trouble("write", task.target, error)


def discard(target: System, temporary: str) -> None:
    """Remove a file that could not be finished. Errors are ignored: the error before is the one to report, and a file
    that stays all the same is litter by its name."""
    try:
        target.remove(temporary)
    except OSError:
        return
