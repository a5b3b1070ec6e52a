"""A deployment that holds all shapes of `sources.shapes`, and what must hold of their rows at its targets.

    with shaped(shared, "source-3", "target-4", tmp_path) as world:
        world.play()                # at boot, in a window, changed, under another name: rows as engines read them
        world.require_equal()       # `verify` ends with 0
        world.require_found_out()   # a byte behind a pointer does not
        world.require_set_aside()   # with their reasons

Each shape is there twice: one table at boot, which a window changes and the next gives another name, and one that a
window makes and the next changes. The targets are `dr`, with the source's names, and under `rename` `copy` and `none`,
the latter with `data = "none"`.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from calque.model.hive import Database
from calque.model.names import TableName, table_name
from calque.model.policy import Policy
from calque.ports.source import CatalogReader
from calque.sandbox import Metastore
from calque.sandbox.writer import HiveClient
from support.judges.engines import Reading, files_behind, path_of, read
from support.services.deployments import NUMBERS, Deployment, Target
from support.services.servers import SETTINGS, Shared
from support.services.suspension import suspended
from support.sources.shapes import ASIDE, SHAPES, Ground, Rows, SetAside, Shape, begin

TARGETS = ("dr", "copy", "none")
CONNECTOR = "pg"
DESCRIPTION = "described without an event"
LOOK_SECONDS = 900.0
"""Looks at databases are the seldomer, the longer they take."""
NO_FILES = "none"
"""The target to which files do not come."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A table that is there, and the rows that its engine reads."""

    name: TableName
    rows: Rows


class Shaped(Deployment):
    """Of its databases the first has what is replicated, the second what is set aside."""

    def __init__(
        self, root: Path, number: int, version: int, source: Metastore, targets: Mapping[str, Metastore]
    ) -> None:
        self.version, self.server = version, source
        self.remote = f"far{number}"
        super().__init__(root, number, source, targets, seed=1)
        self.standing: dict[str, Standing] = {}
        """By a name that stays; the table may get others."""
        self.ground = Ground(HiveClient(source.uri), *self.databases, root / "data", version)

    def policy(self, name: str, _: int) -> Policy:
        rename = {} if name == "dr" else {database: f"{database}_{name}" for database in (*self.databases, self.remote)}
        include = tuple(f"{database}.*" for database in (*self.databases, self.remote))
        data = "none" if name == NO_FILES else "copy"
        return Policy(name, "hq", include=include, rename=rename, warehouse=f"file://{self.root}/wh_{name}", data=data)

    def text(self, source: Metastore) -> str:
        return super().text(source).replace(f"[targets.{NO_FILES}]", f'[targets.{NO_FILES}]\ndata = "none"')

    # The source

    def play(self, look: Callable[[str], None] = lambda _: None, *, is_described: bool = False) -> None:
        """All that happens; `look` is called with each moment's name when all targets show it. `is_described`: servers
        of 4.x change the database without an event, too (`require_described`)."""
        ground = self.ground
        for database in self.databases:
            self.source.create_database(Database(database))
        begin(ground)
        self.make(SHAPES, "boot")
        for aside in ASIDE:
            aside.make(replace(ground, database=ground.other), f"{aside.name}_boot")
        if self.version == 4:
            self.connect()
        self.start()
        self.arrive("at boot", look)
        if is_described and self.version == 4:
            self.describe()
        with self.window():
            self.make((shape for shape in SHAPES if self.version not in shape.at_boot), "late")
            for aside in ASIDE:
                aside.make(replace(ground, database=ground.other), f"{aside.name}_late")
            self.change("boot")
        self.arrive("in a window", look)
        with self.window():
            self.change("late")
            self.rename("boot")
        self.arrive("under another name", look)

    @contextmanager
    def window(self) -> Iterator[None]:
        assert self.process is not None
        with suspended(self.process.pid):
            yield

    def make(self, shapes: Iterator[Shape] | Sequence[Shape], when: str) -> None:
        for shape in shapes:
            table = f"{shape.name}_{when}"
            shape.make(self.ground, table)
            self.standing[table] = Standing(self.ground.name(table), shape.rows)

    def change(self, when: str) -> None:
        for shape in SHAPES:
            if (table := f"{shape.name}_{when}") in self.standing:
                shape.change(self.ground, table)
                self.standing[table] = replace(self.standing[table], rows=shape.after)

    def rename(self, when: str) -> None:
        for shape in SHAPES:
            if self.version in shape.at_boot:
                continue
            table, to = f"{shape.name}_{when}", f"{shape.name}_renamed"
            self.ground.rename(table, to)
            self.standing[table] = replace(self.standing[table], name=self.ground.name(to))

    def connect(self) -> None:
        """A database over a data connector, which the client has no call for."""
        self.server.sql(
            'INSERT INTO "DATACONNECTORS" ("NAME", "TYPE", "URL", "OWNER_TYPE", "CREATE_TIME") '
            "VALUES (%s, 'postgres', 'jdbc:postgresql://far/db', 'USER', 0) ON CONFLICT DO NOTHING",
            (CONNECTOR,),
        )
        self.source.create_database(Database(self.remote, database_type=2, connector=CONNECTOR))

    def describe(self) -> None:
        """A change of which servers of 4.x log no event."""
        database, head = self.source.the_database(self.databases[0]), self.source.current()
        self.source.alter_database(database.name, replace(database, description=DESCRIPTION))
        assert self.source.current() == head

    # The targets

    def arrive(self, moment: str, look: Callable[[str], None]) -> None:
        """Every target shows the source's newest event, and what engines read there is right."""
        event_id = str(self.source.current())
        for target in self.targets:
            waited = self.calque("wait", "--target", target.name, "--event-id", event_id, "--timeout", "240")
            assert waited.returncode in (0, 75), waited.stderr
            assert waited.returncode == 0 or "set aside" in waited.stderr, waited.stderr + self.tail()
            assert f"{self.databases[0]}." not in waited.stderr, f"{moment}: {waited.stderr}{self.tail()}"
        self.require_rows(moment)
        print(f"{moment}: {time.monotonic():.1f} s")
        look(moment)

    def require_rows(self, moment: str) -> None:
        wrong = [problem for one in self.standing.values() for problem in self.problems_of_rows(one)]
        assert not wrong, "\n".join([f"{moment}:", *wrong, self.tail()])

    def problems_of_rows(self, one: Standing) -> Iterator[str]:
        here = read(self.source.client.catalog, one.name)
        if here.rows != tuple(sorted(one.rows)):
            yield f"{one.name} at the source has {here.rows}, the shape says {one.rows}"
        for target in self.targets:
            home = None if target.name == NO_FILES else target.policy.warehouse
            yield from differences(here, target.catalog, target.admission.name_at_target(one.name), home)

    # What commands say

    def require_equal(self) -> None:
        """Of what is replicated, to the last byte."""
        for target in self.targets:
            found = self.verified(target.name)
            assert found.returncode == 0, found.stdout + found.stderr

    def verified(self, target: str, names: Iterable[str] = ()) -> subprocess.CompletedProcess[str]:
        """Of these tables, or of all that are replicated."""
        tables = [word for name in (*names,) or (f"{self.databases[0]}.*",) for word in ("--tables", name)]
        return self.calque("verify", "--target", target, *tables, "--data", "checksum", "--json")

    def require_found_out(self, *targets: str) -> None:
        """One byte is changed behind each pointer, one pointer of each table at a time: `verify` names the tables."""
        for target in self.targets:
            if target.name not in targets:
                continue
            for number in count():
                changed = self.spoilt(target, number)
                if not changed:
                    break
                found = self.verified(target.name, changed if number else ())
                assert found.returncode == 1, found.stdout + found.stderr
                named = {row["table"] for row in json.loads(found.stdout)["differences"]}
                assert named == set(changed), f"pointer {number} at {target.name}: {named ^ set(changed)}"
                for content in changed.values():
                    content.put_back()
            assert number > 1

    def spoilt(self, target: Target, number: int) -> dict[str, Spoilt]:
        """A byte in a file behind that pointer of each table that has so many; the file's time stays."""
        changed = {}
        for one in self.standing.values():
            there = read(target.catalog, target.admission.name_at_target(one.name))
            if not there.behind and number < len(there.places):
                changed[str(one.name)] = Spoilt.of(files_behind(list(there.places.values())[number])[0])
        return changed

    def require_set_aside(self) -> None:
        """Each with its reason, by `check` and by `status`, and neither a table nor an empty one at any target."""
        checked = self.calque("check", "--json")
        said = "\n".join(str(finding) for finding in json.loads(checked.stdout)["findings"])
        status = json.loads(self.calque("status", "--json").stdout)["targets"]
        for target in self.targets:
            reasons = {row["table"]: row["reason"] for row in status[target.name]["quarantined"]}
            expected = {
                str(name): aside for name, aside in self.aside() if not (aside.only_renamed and target.name == "dr")
            }
            if self.version == 4:
                assert "data connector" in reasons.pop(self.remote)
                assert (
                    target.catalog.database(target.admission.name_at_target(TableName(self.remote, "t")).database)
                    is None
                )
            assert reasons.keys() == expected.keys()
            for name, aside in expected.items():
                assert aside.reason in reasons[name], f"{name}: {reasons[name]}"
                at_target = target.admission.name_at_target(table_name(*name.split(".")))
                assert target.catalog.table(at_target) is None, f"{name} at {target.name}"
        for name, aside in self.aside():
            assert str(name) in said, f"{name} {said}"
            assert aside.reason in said, said

    def aside(self) -> list[tuple[TableName, SetAside]]:
        return [
            (TableName(self.ground.other, f"{aside.name}_{when}"), aside)
            for aside in ASIDE
            for when in ("boot", "late")
        ]

    def require_described(self) -> None:
        """What changed without an event, as servers of 4.x permit."""
        if self.version == 4:
            self.wait_for(lambda _: all(map(self.is_described, self.targets)), LOOK_SECONDS)

    def is_described(self, target: Target) -> bool:
        found = target.catalog.database(target.admission.name_at_target(self.ground.name("t")).database)
        return found is not None and found.description == DESCRIPTION


@dataclass(frozen=True, slots=True)
class Spoilt:
    """A file one byte of which was changed, and what it was."""

    file: Path
    content: bytes

    @classmethod
    def of(cls, file: Path) -> Spoilt:
        found = cls(file, file.read_bytes())
        found.write(bytes([found.content[0] ^ 1]) + found.content[1:])
        return found

    def write(self, content: bytes) -> None:
        status = self.file.stat()
        self.file.write_bytes(content)
        os.utime(self.file, ns=(status.st_atime_ns, status.st_mtime_ns))

    def put_back(self) -> None:
        self.write(self.content)


def differences(here: Reading, catalog: CatalogReader, name: TableName, home: str | None) -> Iterator[str]:
    """What an engine reads otherwise at a target, where the table has that name. Readers are led to places below
    `home` alone, or, where there is none, to those of the source."""
    try:
        there = read(catalog, name)
    except (LookupError, OSError, AssertionError) as problem:
        yield f"{name}: {problem!r}"
        return
    if there.rows != here.rows:
        yield f"{name}: {there.rows} in place of {here.rows}, {there.places}"
    leads = {key: path_of(value) for key, value in there.places.items()}
    if home is None and leads != {key: path_of(value) for key, value in here.places.items()}:
        yield f"{name} leads to {leads} in place of {here.places}"
    if home is not None:
        yield from (
            f"{name}: {key} leads to {path}" for key, path in leads.items() if path_of(home) not in path.parents
        )


@contextmanager
def shaped(shared: Shared, source: str, target: str, root: Path, names: Sequence[str] = TARGETS) -> Iterator[Shaped]:
    """Of the targets with these names."""
    servers = shared(source, target)
    version = int(SETTINGS[source].version[0])
    world = Shaped(root, next(NUMBERS), version, servers[source], dict.fromkeys(names, servers[target]))
    try:
        yield world
    finally:
        world.close()
