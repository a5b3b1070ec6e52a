"""The mark of a directory that targets write below: the directory `_calque_warehouse` directly in it, which its name
hides.

In the mark lies `warehouse.json`. It is made once, exclusively, with a random name, by which the directory is known
under every spelling of its place. Beside it lies a file for each target metastore that uses the directory, and one for
each source, by name.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from secrets import token_hex
from urllib.parse import quote

from calque.core.formats.bounded import parse_json
from calque.core.formats.layout import join, place
from calque.engine.sides.sides import TargetSide
from calque.errors import Broken
from calque.model.identity import MarkedDirectory
from calque.model.names import OURS
from calque.model.policy import Policy
from calque.ports import Storage

MARK = f"{OURS}_warehouse"
NAME = "warehouse.json"
TARGET, SOURCE, SUFFIX = "target.", "source.", ".json"


def roots(policy: Policy) -> tuple[str, ...]:
    """Return the directories that a target writes below: the warehouse, and `external_base` if it lies elsewhere."""
    warehouse, external_base = policy.warehouse, policy.external_base
    if not external_base or place(warehouse).contains(place(external_base)):
        return (warehouse,)
    return warehouse, external_base


def roots_of(side: TargetSide) -> tuple[str, ...]:
    """Return the directories that the target writes below; none where all of its data stay at the source."""
    return roots(side.policy) if side.admission.copies_some else ()


def look(storage: Storage, location: str) -> MarkedDirectory:
    """Return what the mark of the directory says; an empty value for one without a mark. Raises `Broken` where the mark
    can't be read."""
    directory = join(location, MARK)
    names = storage.children(directory)
    if NAME not in names:
        return MarkedDirectory(location)
    record = read(storage, join(directory, NAME))
    targets = [read(storage, join(directory, name)) for name in names if is_record(name, TARGET)]
    sources = [read(storage, join(directory, name)) for name in names if is_record(name, SOURCE)]
    return MarkedDirectory(
        location,
        record.get("nonce", ""),
        record.get("place", ""),
        tuple(sorted(one["target"] for one in targets if "target" in one)),
        {one["source"]: one.get("id", "") for one in sources if "source" in one},
    )


def is_record(name: str, kind: str) -> bool:
    return name.startswith(kind) and name.endswith(SUFFIX)


def first_place(storage: Storage, location: str) -> str:
    """Return the spelling under which the directory was marked first; `location` if it has no mark."""
    content = storage.read(join(location, f"{MARK}/{NAME}"))
    return location if content is None else str(parsed(content, location).get("place") or location)


def mark(storage: Storage, locations: Sequence[str]) -> None:
    """Give each directory a mark if it has none."""
    for location in locations:
        path = join(location, f"{MARK}/{NAME}")
        if storage.read(path) is None:
            record = {"nonce": token_hex(16), "place": str(place(location)), "made_at": now()}
            # Of several that make it one succeeds.
            storage.create({path: text_of(record)})


def note_target(storage: Storage, directory: MarkedDirectory, target: str) -> None:
    """Record in the directory's mark that the metastore `target` uses it."""
    if target and target not in directory.targets:
        storage.write(target_file(directory.location, target), text_of({"target": target, "since": now()}))


def forget_targets(storage: Storage, directory: MarkedDirectory, kept: str) -> None:
    """Remove from the directory's mark all target metastores but `kept`, because they do not use it any more."""
    storage.remove([target_file(directory.location, one) for one in directory.targets if one != kept])


def note_source(storage: Storage, directory: MarkedDirectory, source: str, source_id: str) -> None:
    """Record in the directory's mark that the source has replicas in it."""
    if directory.sources.get(source) != source_id:
        storage.write(source_file(directory.location, source), text_of({"source": source, "id": source_id}))


def target_file(location: str, target: str) -> str:
    return join(location, f"{MARK}/{TARGET}{quote(target, safe='')}{SUFFIX}")


def source_file(location: str, source: str) -> str:
    return join(location, f"{MARK}/{SOURCE}{quote(source, safe='')}{SUFFIX}")


def text_of(record: dict[str, str]) -> bytes:
    return json.dumps(record, ensure_ascii=False, sort_keys=True).encode()


def read(storage: Storage, path: str) -> dict[str, str]:
    """Return the record in the file; empty if the file vanished. Raises `Broken` if it can't be read."""
    content = storage.read(path)
    return {} if content is None else parsed(content, path)


def parsed(content: bytes, path: str) -> dict[str, str]:
    try:
        record = parse_json(content)
    except ValueError as error:
        raise unreadable(path, str(error)) from error
    if not isinstance(record, dict):
        raise unreadable(path, "It is no object of JSON")
    return {str(key): str(value) for key, value in record.items()}


def unreadable(path: str, why: str) -> Broken:
    return Broken(f"The mark {path} can't be read", why, "Restore it from a backup")


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
