"""One file from here to there: as evidence describes it, whole or not at all, and read back.

The content goes to a hidden temporary name beside the target, is read back from there and compared by xxh3-128, and
only then renamed. A target is therefore never a part of a file, whenever the process dies; what is left behind then is
a file whose name begins with `layout.COPYING`. When a copy outlives a loss of power is for `Durability` to say.
Where the file system can, a copy gets its source's time: a listing then tells it from every other content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from secrets import token_hex

from xxhash import xxh3_128

from calque.adapters.files.objects import ObjectSystem
from calque.adapters.files.system import OF_THE_NAME, Facts, System, Systems, trouble
from calque.core.layout import COPYING
from calque.errors import Broken, CalqueError
from calque.ports import Copied, CopyTask


def copy_file(task: CopyTask, systems: Systems) -> Copied:
    """Copy one file and verify it. What is wrong with this file alone (it changed or vanished, can't be read, another
    file has its place) is a `problem`.

    Raises `Unavailable` when a storage doesn't answer or is full, `Refused` when the target may not be written.
    """
    try:
        return _copied(task, *systems.at(task.source), *systems.at(task.target))
    except _Unfit as unfit:
        return Copied(task, problem=str(unfit))


@dataclass(frozen=True, slots=True)
class Pace:
    """How many threads copy, and how much each takes at a time: handing single small files from thread to thread costs
    as much as copying them."""

    threads: int
    files: int
    bytes: int = 8 << 20


def copy_all(
    tasks: Sequence[CopyTask], systems: Systems, pace: Pace, progress: Callable[[Copied], None] | None = None
) -> Sequence[Copied]:
    """Copy each, in threads; results in the order of the tasks, progress (in the caller's thread) as they come. The
    first error ends it once the copies in hand are done."""
    require_own_targets(tasks)
    done: dict[CopyTask, Copied] = {}
    with ThreadPoolExecutor(pace.threads, thread_name_prefix="copy") as pool:
        futures = [pool.submit(_copy_some, some, systems) for some in _portions(tuple(dict.fromkeys(tasks)), pace)]
        try:
            for future in as_completed(futures):
                for copied in future.result():
                    done[copied.task] = copied
                    if progress:
                        progress(copied)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [done[task] for task in tasks]


def require_own_targets(tasks: Sequence[CopyTask]) -> None:
    """`Broken` when different files are to be copied to one target."""
    tasks_of: dict[str, CopyTask] = {}
    for task in tasks:
        if (other := tasks_of.setdefault(task.target, task)) != task:
            raise Broken(
                f"{task.source} and {other.source} are both to be copied to {task.target}",
                "each object has a directory of its own",
                "Report it with the plan",
            )


def same_content(first: tuple[System, str], second: tuple[System, str], size: int) -> bool:
    """Whether two files have the same content. Raises `OSError`."""
    return _checksum(*first, size) == _checksum(*second, size)


def _portions(tasks: Sequence[CopyTask], pace: Pace) -> Iterator[Sequence[CopyTask]]:
    start, load = 0, 0
    for number, task in enumerate(tasks):
        if number > start and (number - start == pace.files or load + task.size > pace.bytes):
            yield tasks[start:number]
            start, load = number, 0
        load += task.size
    if tasks:
        yield tasks[start:]


def _copy_some(tasks: Sequence[CopyTask], systems: Systems) -> Sequence[Copied]:
    return [copy_file(task, systems) for task in tasks]


class _Unfit(Exception):
    """This file can't be copied; the others can."""


def _copied(task: CopyTask, source: System, path: str, target: System, target_path: str) -> Copied:
    found = _source_facts(task, source, path)
    if isinstance(target, ObjectSystem):
        return _put(task, source, path, found, target, target_path)
    occupied = _target_facts(task, target, target_path)
    if occupied is not None:
        return _kept(task, source, path, found, target, target_path, occupied)
    temporary = f"{target_path.rsplit('/', 1)[0]}/{COPYING}{token_hex(8)}"
    try:
        checksum = _written(task, source, path, target, temporary)
        _require_unchanged(task, source, path, found)
        if _read_back(task, target, temporary) != checksum:
            raise _Unfit(f"{task.target} isn't read back as it was written: its storage, or the way to it, is faulty.")
        _renamed(task, target, temporary, target_path)
    except BaseException:
        _discard(target, temporary)
        raise
    return Copied(task, checksum, bytes_moved=task.size)


def _put(task: CopyTask, source: System, path: str, found: Facts, target: ObjectSystem, target_path: str) -> Copied:
    """To where a file appears whole or not at all: no temporary name. Between two places of one store the store copies
    by itself, and a checksum is known only where it could not prove that both are equal."""
    digest = xxh3_128()

    def hashed() -> Iterator[memoryview]:
        for chunk in _source_chunks(task, source, path):
            digest.update(chunk)
            yield chunk
        _require_unchanged(task, source, path, found)

    try:
        inside = proven = target.copy_from(source, path, found, target_path)
        if inside is None:
            proven = target.create_whole(target_path, hashed(), task.size)
    except FileExistsError as error:
        occupied = _target_facts(task, target, target_path)
        if occupied is None:
            raise trouble("write", task.target, error) from error
        return _kept(task, source, path, found, target, target_path, occupied)
    except FileNotFoundError as error:
        raise _Unfit(f"{task.source} was replaced while it was copied.") from error
    except OSError as error:
        raise _of_target(task, error) from error
    if proven:
        return Copied(task, "" if inside else digest.hexdigest(), bytes_moved=task.size)
    if inside is False:
        for chunk in _source_chunks(task, source, path):
            digest.update(chunk)
    if _read_back(task, target, target_path) != digest.hexdigest():
        _discard(target, target_path)
        raise _Unfit(f"{task.target} isn't read back as it was written: its storage, or the way to it, is faulty.")
    return Copied(task, digest.hexdigest(), bytes_moved=task.size)


def _kept(
    task: CopyTask, source: System, path: str, found: Facts, target: System, target_path: str, occupied: Facts
) -> Copied:
    other = _Unfit(f"{task.target} is there already with other content. Remove it if nothing uses it.")
    if occupied.directory or occupied.size != task.size:
        raise other
    digest = xxh3_128()
    for chunk in _source_chunks(task, source, path):
        digest.update(chunk)
    _require_unchanged(task, source, path, found)
    if _read_back(task, target, target_path) != digest.hexdigest():
        raise other
    try:
        target.date(target_path, task.modified_ns)
    except OSError as error:
        raise _of_target(task, error) from error
    return Copied(task, digest.hexdigest())


def _source_facts(task: CopyTask, source: System, path: str) -> Facts:
    try:
        found = source.facts(path)
    except OSError as error:
        raise _of_source(task, error) from error
    if found is None:
        raise _Unfit(f"{task.source} is not there any more.")
    if found.directory:
        raise _Unfit(f"{task.source} is a directory now.")
    if (found.size, found.modified_ns) != (task.size, task.modified_ns):
        raise _Unfit(
            f"{task.source} is not the file that was listed: {found.size} bytes of {found.modified_ns} ns "
            f"instead of {task.size} of {task.modified_ns}."
        )
    return found


def _require_unchanged(task: CopyTask, source: System, path: str, before: Facts) -> None:
    if _source_facts(task, source, path) != before:
        raise _Unfit(f"{task.source} was replaced while it was copied.")


def _source_chunks(task: CopyTask, source: System, path: str) -> Iterator[memoryview]:
    """The source's content; `_Unfit` unless it is exactly as long as it should be."""
    length = 0
    try:
        for chunk in source.chunks(path, task.size):
            length += len(chunk)
            if length > task.size:
                break
            yield chunk
    except FileNotFoundError as error:
        raise _Unfit(f"{task.source} vanished while it was copied.") from error
    except OSError as error:
        raise _of_source(task, error) from error
    if length != task.size:
        raise _Unfit(f"{task.source} changed its length while it was copied.")


def _of_source(task: CopyTask, error: OSError) -> CalqueError | _Unfit:
    if isinstance(error, ConnectionError | TimeoutError):
        return trouble("read", task.source, error)
    return _Unfit(f"{task.source} can't be read: {type(error).__name__}: {error.strerror or error}.")


def _target_facts(task: CopyTask, target: System, path: str) -> Facts | None:
    try:
        return target.facts(path)
    except OSError as error:
        raise _of_target(task, error) from error


def _written(task: CopyTask, source: System, path: str, target: System, temporary: str) -> str:
    digest = xxh3_128()

    def hashed() -> Iterator[memoryview]:
        for chunk in _source_chunks(task, source, path):
            digest.update(chunk)
            yield chunk

    try:
        target.create(temporary, hashed())
    except OSError as error:
        raise _of_target(task, error) from error
    return digest.hexdigest()


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


def _of_target(task: CopyTask, error: OSError) -> CalqueError | _Unfit:
    if error.errno in OF_THE_NAME:
        return _Unfit(f"{task.target} can't be written: {type(error).__name__}: {error.strerror or error}.")
    return trouble("write", task.target, error)


def _discard(target: System, temporary: str) -> None:
    try:
        target.remove(temporary)
    except OSError:
        # The first error is the one to report; the rest is litter by its name.
        return
