"""What comes from a source may be made by an enemy: it is never a path out of the warehouse, and harms itself alone.

A source in memory takes any name, place and text; files are on a disk. Beside what the enemy made stands a table of
somebody else, which has to arrive.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calque.adapters.files.systems import FileSystemSet, OwnLocations
from calque.core.formats.layout import place
from calque.core.records.lifecycle import State
from calque.errors import Refused
from calque.model.hive import Column, Database, Function, Partition, Resource, SerDe, Storage, Table
from calque.model.journal import Event
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.ports import Conflict, CopiedFile, CopyTask
from support.memory.metastore import HIVE_3, HIVE_4
from support.memory.metastore.store import NoDirectories
from support.worlds.disks import Disk
from support.worlds.worlds import INPUT, OUTPUT, SERDE, World

EXAMPLES = {"check": 25, "prove": 20_000}
GOOD = TableName("d1", "good")
CONTENT = b"of somebody else"
PARTS = [
    "..",
    ".",
    "/",
    "\\",
    "%2e%2e",
    "%252e%252e",
    "%2f",
    "\n",
    "\r",
    "\x1b[2J",
    "\x1b]0;x\x07",
    "\x9b",
    "\u202e",
    "\u2028",
]
PARTS += [
    "\0",
    "a" * 300,
    "d1",
    "good",
    "p=1",
    "_calque",
    "_calque_stage",
    "'",
    '"',
    ";",
    "$(touch x)",
    "`x`",
    "|",
    "{",
    "ß",
    "",
]

names = st.lists(st.sampled_from(PARTS), min_size=1, max_size=4).map("".join)
places = st.one_of(
    st.sampled_from(
        [
            "{root}/outside",
            "{root}/target/d1.db/good",
            "{root}/target",
            "{root}/source/../outside",
            "/../../etc",
            "file:{root}/source/x/%2e%2e/%2e%2e/outside",
            "file:{root}/source/x/../../outside",
            "file:/",
            "/",
            "",
            "file://other/{root}/outside",
            "jar:file:{root}/outside/a.jar!/x",
            "http://127.0.0.1:1/x",
            "relative/x",
            "local:{root}/outside",
            "zip://x::file://{root}/outside/a.zip",
            "reference://x",
            "data:text/plain,x",
            "x:",
            "github://a:b@c/x",
            "memory://a/../b",
            "cached::file://{root}/outside",
            "FILE:{root}/outside",
            "file:..%2f..",
        ]
    ),
    names.map("file:{{root}}/source/{}".format),
    names,
)
"""With `{root}` for the folder of everything."""
messages = st.one_of(
    st.sampled_from(
        ["", "{", "[]", "null", "1", '"x"', "[" * 5_000, '{"a":' * 5_000, "{}", '{"tableObjJson": "{}"}', "\0"]
    ),
    names,
    st.sampled_from(["*\\ud800", '*"', "*\\u0000", "*\\ud83d\\ude00", "*\\udc00\\ud800", "*\\u001b[2J", "*\\q"]),
)


@dataclass(frozen=True, slots=True)
class HostileTable:
    database: str
    name: str
    location: str
    partition_location: str
    key: str
    value: str
    text: str


@dataclass(frozen=True, slots=True)
class HostileView:
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class HostileDatabase:
    name: str
    location: str


@dataclass(frozen=True, slots=True)
class HostileFunction:
    name: str
    resource: str


@dataclass(frozen=True, slots=True)
class HostileMessage:
    """An event whose message is that."""

    message: str


@dataclass(frozen=True, slots=True)
class LinkAtTarget:
    """Somebody who may write there puts a link in the place of a directory, or below it."""

    path: str


attacks = st.one_of(
    st.builds(HostileTable, st.just("d1"), names, places, places, names, names, names),
    st.builds(HostileView, names, names),
    st.builds(HostileDatabase, names.map("d{}".format), places),
    st.builds(HostileFunction, names, places),
    st.builds(HostileMessage, messages),
    st.builds(LinkAtTarget, st.sampled_from(["d9.db", "d9.db/t1", "d9.db/_calque", "d9.db/t1/p=1"])),
)


class Guarded(Disk):
    """A disk that remembers where something was written, moved or removed."""

    def __init__(self, warehouse: str) -> None:
        super().__init__()
        self.systems = FileSystemSet(own=OwnLocations((warehouse,)))
        self.changed: list[str] = []

    def copy(
        self, tasks: Sequence[CopyTask], progress: Callable[[CopiedFile], None] | None = None
    ) -> Sequence[CopiedFile]:
        copies = super().copy(tasks, progress)
        self.changed += [task.target for task in tasks]
        return copies

    def publish(self, renames: Sequence[tuple[str, str]]) -> None:
        super().publish(renames)
        self.changed += [location for rename in renames for location in rename]

    def write(self, path: str, content: bytes) -> None:
        super().write(path, content)
        self.changed.append(path)

    def remove(self, locations: Sequence[str]) -> None:
        super().remove(locations)
        self.changed += locations

    def make(self, location: str) -> None:
        """What the target's metastore makes by itself."""
        self.make_directories([location])

    def make_directories(self, locations: Sequence[str]) -> None:
        super().make_directories(locations)
        self.changed += locations


class Garbled:
    """A log some of whose messages are others."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self.messages: dict[str, str] = {}
        """By the names of tables."""

    def current(self) -> int:
        return int(self._log.current())

    def read(self, after: int, limit: int) -> Sequence[Event]:
        return [
            replace(event, message=garbled(event.message, self.messages.get(event.table or "")))
            for event in self._log.read(after, limit)
        ]


def garbled(message: str, by: str | None) -> str:
    """`by` itself, or where that begins with a star, the message with the rest of it as the table's owner."""
    if by is None:
        return message
    return message.replace("hostile-owner", by[1:]) if by.startswith("*") else by


class HostileWorld(World):
    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        warehouse = f"file:{root}/target"
        self.disk = Guarded(warehouse)
        policy = Policy("dr", "hq", include=("d*.*",), warehouse=warehouse, grace=0.0)
        habits = replace(HIVE_4 if seed % 2 else HIVE_3, any_names=True)
        super().__init__(seed, habits, policy, storage=self.disk, root=f"file:{root}", patience=0.0)
        self.source.directories = NoDirectories()
        self.target_store.habits = replace(HIVE_4, any_names=True)
        self.log = Garbled(self.source_side.log)
        self.source_side = replace(self.source_side, log=self.log)
        self.gatherer = type(self.gatherer)(self.source_side, self.side.admission.takes)
        self.capture = type(self.capture)(self.source_side, self.begin, self.gatherer)
        self.replica = self.new_replica()

    def note(self, *_: object) -> None:
        """No reader looks: what an enemy made has no right state."""

    def looked(self, method: str) -> None: ...

    def file(self, path: Path, content: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def table(database: str, name: str, location: str, key: str = "", text: str = "") -> Table:
    return Table(
        name,
        database,
        text or "me",
        storage=Storage(
            location=location,
            input_format=INPUT,
            output_format=OUTPUT,
            serde=SerDe(class_name=SERDE, parameters={"path": location} if text else {}),
            columns=(Column("x", "string", text or None),),
        ),
        partition_keys=(Column(key, "string"),) if key else (),
        parameters={"EXTERNAL": "TRUE", **({"comment": text, "avro.schema.url": location} if text else {})},
        type="EXTERNAL_TABLE",
    )


def begin(world: HostileWorld) -> None:
    root = world.root
    for name in ("outside/secret", "outside/a.jar", "source/d1/good/f", "source/x/f"):
        world.file(root / name, CONTENT)
    (root / "target").mkdir()
    world.source.create_database(Database("d1", location=f"file:{root}/source/d1"))
    world.source.create_table(table("d1", "good", f"file:{root}/source/d1/good"))


def attack(world: HostileWorld, one: object, number: int) -> None:
    """The source's server refuses some of it, as it would."""
    root = str(world.root)
    match one:
        case HostileTable():
            location = one.location.replace("{root}", root)
            name = one.name or f"t{number}"
            world.source.create_table(table(one.database, name, location, one.key, one.text))
            if one.key:
                part = Partition(
                    (one.value,), one.database, name, Storage(location=one.partition_location.replace("{root}", root))
                )
                world.source.add_partitions(TableName(one.database, name.lower()), [part])
        case HostileView():
            view = table("d1", f"v{number}{one.name}", "")
            view = replace(
                view, storage=None, type="VIRTUAL_VIEW", view_original_text=one.text, view_expanded_text=one.text
            )
            world.source.create_table(view)
        case HostileDatabase():
            world.source.create_database(Database(one.name, location=one.location.replace("{root}", root)))
            world.source.create_table(table(one.name, "t", f"{root}/source/x"))
        case HostileFunction():
            resource = Resource(1, one.resource.replace("{root}", root))
            world.source.create_function(Function(f"f{number}{one.name}", "d1", "x.Y", resources=(resource,)))
        case HostileMessage():
            world.log.messages[f"m{number}"] = one.message
            owned = replace(table("d1", f"m{number}", f"file:{root}/source/x"), owner="hostile-owner")
            world.source.create_table(owned)
        case LinkAtTarget():
            link = world.root / "target" / one.path
            link.parent.mkdir(parents=True, exist_ok=True)
            if not link.exists():
                link.symlink_to(world.root / "outside")
            world.source.create_database(Database("d9", location=f"file:{root}/source/x"))
            world.source.create_table(table("d9", "t1", f"file:{root}/source/x", "p"))
            part = Partition(("1",), "d9", "t1", Storage(location=f"file:{root}/source/x"))
            world.source.add_partitions(TableName("d9", "t1"), [part])


def snapshot(root: Path) -> Mapping[str, bytes | None]:
    """All that is below but for the target's warehouse."""
    found: dict[str, bytes | None] = {}
    for folder, folders, names in os.walk(root):
        if Path(folder) == root:
            folders.remove("target")
        found |= {os.path.join(folder, name): None for name in folders}
        found |= {os.path.join(folder, name): Path(folder, name).read_bytes() for name in names}
    return found


@contextmanager
def hostile_world(seed: int) -> Iterator[HostileWorld]:
    with tempfile.TemporaryDirectory() as folder:
        yield HostileWorld(Path(folder).resolve(), seed)


@settings(
    max_examples=EXAMPLES.get(settings.get_current_profile_name(), 75),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.integers(0, 7), st.lists(attacks, min_size=1, max_size=4))
def test_what_an_enemy_makes_at_the_source_reaches_nothing_but_the_warehouse_and_stops_nobody(
    seed: int, enemies: Sequence[object]
) -> None:
    logging.disable(logging.CRITICAL)
    with hostile_world(seed) as world:
        begin(world)
        for number, one in enumerate(enemies):
            try:
                attack(world, one, number)
            except (Refused, Conflict):
                continue
        before = snapshot(world.root)
        world.settle()
        assert snapshot(world.root) == before
        warehouse = f"{world.root}/target"
        assert [
            location
            for location in world.disk.changed
            if not str(Path(place(location).path).parent.resolve()).startswith(warehouse)
        ] == []
        states = {name: status.state for name, status in world.replica.tables.rows.items()}
        assert states[GOOD] is State.LIVE
        stored = world.target_store.the_table(GOOD)
        assert stored.table.storage is not None
        assert world.disk.contents(str(stored.table.storage.location)) == [("f", CONTENT)]
