"""Awkward names and shapes at a real source, each with its outcome at the target: equal in content, or set aside."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from calque.core.formats.layout import place
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table, location_of
from calque.model.names import TableName, partition_name
from calque.sandbox import Metastore
from support.services.deployments import NUMBERS, Deployment
from support.sources.writers import INPUT, OUTPUT, SERDE

NAMES = (
    "a b",
    " leading and trailing ",
    "a%25b",
    "100%",
    "a#b",
    "a=b",
    "a:b",
    "a?b&c+d;e",
    "*[x]{y}~$'\"`\\",
    "tab\tand\nline",
    "Föhre",
    "Fo\u0308hre",
    "槐🌲",
    "x" * 255,
)
VALUES = (
    "a b",
    "a%25b",
    "100%",
    "a#b",
    "a=b",
    "a:b",
    "a/b",
    "2024-01-31 10:00:00.5",
    "*[x]{y}^'\"\\",
    "a?b&c+d;e",
    "Föhre",
    "槐🌲",
    "__HIVE_DEFAULT_PARTITION__",
    "_hidden",
    ".dot",
    "z" * 200,
)
DATA = b"1\n"


@dataclass
class Place:
    """Tables at a source made by hand: their files are where the test puts them."""

    deployment: Deployment
    root: Path

    @property
    def database(self) -> str:
        return self.deployment.databases[0]

    def name(self, table: str) -> TableName:
        return TableName(self.database, table)

    def put(self, path: Path, content: bytes = DATA) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def storage(self, at: Path | str) -> Storage:
        location = at if isinstance(at, str) else f"file:{at}"
        return Storage((Column("x", "string"),), location, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={}))

    def table(self, table: str, at: Path | str, partitions: Mapping[str, Path] | None = None) -> None:
        """A table, or a partitioned one with the partitions of these values."""
        keys = () if partitions is None else (Column("p", "string"),)
        made = Table(table, self.database, "me", storage=self.storage(at), partition_keys=keys)
        self.deployment.source.create_table(replace(made, parameters={"EXTERNAL": "TRUE"}, type="EXTERNAL_TABLE"))
        if partitions:
            rows = [
                Partition((value,), self.database, table, storage=self.storage(path), parameters={})
                for value, path in partitions.items()
            ]
            self.deployment.source.add_partitions(self.name(table), rows)

    def insert(self, table: str, path: Path, value: str | None = None, content: bytes = b"22\n") -> None:
        self.put(path, content)
        values = None if value is None else (value,)
        self.deployment.source.insert(self.name(table), [f"file:{path}"], values=values)

    # What the target shows

    def shown(self, table: str) -> dict[str, dict[str, bytes]]:
        """Data files of each partition (`""`: the plain table) at the target, by relative path."""
        target = self.deployment.targets[0]
        there = target.catalog.table(self.name(table))
        assert there is not None
        if there.partition_keys:
            names = target.catalog.partition_names(self.name(table))
            found: Mapping[str, Table | Partition] = target.catalog.partitions(self.name(table), names)
        else:
            found = {"": there}
        return {partition: files_of(location_of(thing) or "") for partition, thing in found.items()}

    def stored(self, table: str) -> dict[str, dict[str, bytes]]:
        """The same at the source."""
        found = self.deployment.source.the_table(self.name(table))
        if not found.table.partition_keys:
            return {"": files_of(location_of(found.table) or "")}
        rows = found.partitions.items()
        return {partition_name(["p"], values): files_of(location_of(row) or "") for values, row in rows}

    def locations(self, table: str) -> list[str]:
        target = self.deployment.targets[0]
        there = target.catalog.table(self.name(table))
        assert there is not None
        names = target.catalog.partition_names(self.name(table)) if there.partition_keys else ()
        parts = target.catalog.partitions(self.name(table), names)
        return [location_of(thing) or "" for thing in (there, *parts.values())]


def files_of(location: str) -> dict[str, bytes]:
    """What a recursive reader finds, by its own walk."""
    root = place(location).path
    found = {}
    for directory, below, names in os.walk(root, followlinks=True):
        below[:] = [name for name in below if not name.startswith(("_", "."))]
        for path in (Path(directory, name) for name in names if not name.startswith(("_", "."))):
            if path.is_file():
                found[str(path.relative_to(root))] = path.read_bytes()
    return found


@pytest.fixture(scope="module")
def world(servers: Mapping[str, Metastore], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    root = tmp_path_factory.mktemp("awkward")
    deployment = Deployment(root, next(NUMBERS), servers["source"], {"dr": servers["target"]}, seed=1)
    made = Place(deployment, root / "data")
    home = made.root / "home.db"
    home.mkdir(parents=True)
    deployment.source.create_database(Database(made.database, location=f"file:{home}"))
    fill(made, home)
    deployment.start()
    try:
        wait(deployment)
        change(made, home)
        wait(deployment)
        yield made
    finally:
        deployment.close()


def wait(deployment: Deployment) -> None:
    found = deployment.calque(
        "wait", "--target", "dr", "--event-id", str(deployment.source.current()), "--timeout", "90s"
    )
    assert found.returncode in (0, 75), found.stderr + deployment.tail()


def fill(made: Place, home: Path) -> None:
    """Everything that is there before calque begins."""
    root = made.root
    for name in NAMES:
        made.put(root / "names" / name)
    made.table("names", root / "names")
    natural = {value: root / "values" / partition_name(["p"], [value]) for value in VALUES}
    for path in natural.values():
        made.put(path / "f 1%20#=:")
    made.table("vals", root / "values", natural)
    made.put(root / "a b%20#=:Föhre" / "f")
    made.table("odd_place", root / "a b%20#=:Föhre")
    made.put(root / "slashes" / "f")
    made.table("slashes", f"file://{root}//slashes/")
    made.put(root / "empties" / "zero", b"")
    made.table("empties", root / "empties")
    made.table("nothing", root / "nothing")
    made.table("missing", root / "missing")
    shutil.rmtree(root / "missing")
    (root / "gaps" / "p=empty").mkdir(parents=True)
    made.put(root / "gaps" / "p=full" / "f")
    made.table("gaps", root / "gaps", {v: root / "gaps" / f"p={v}" for v in ("empty", "full", "missing")})
    shutil.rmtree(root / "gaps" / "p=missing", ignore_errors=True)
    for name in ("f", "sub/f", "sub/deeper/f", "p=1/f"):
        made.put(root / "deep" / name)
        made.put(root / "deep_parts" / "p=1" / name)
    made.table("deep", root / "deep")
    made.table("deep_parts", root / "deep_parts", {"1": root / "deep_parts" / "p=1"})
    for name in ("f", "_SUCCESS", ".hidden", "_temporary/0/f", ".hive-staging_1/f", "sub/.f.crc", "sub/_x"):
        made.put(root / "hidden" / name)
    made.table("hidden", root / "hidden")
    made.put(root / "elsewhere" / "far" / "f")
    made.put(root / "mixed" / "p=near" / "f")
    made.put(root / "mixed" / "p=near" / "inner" / "f")
    made.table(
        "mixed",
        root / "mixed",
        {
            "near": root / "mixed" / "p=near",
            "far": root / "elsewhere" / "far",
            "within": root / "mixed" / "p=near" / "inner",
        },
    )
    made.put(root / "one" / "f")
    made.put(root / "one" / "inside" / "f")
    for table, at in (("same_1", "one"), ("same_2", "one"), ("inside", "one/inside")):
        made.table(table, root / at)
    made.put(home / "f")
    made.table("lodger", home / "lodger")
    made.put(home / "lodger" / "f")
    made.table("landlord", home)
    made.put(root / "links" / "f")
    made.put(root / "linked_to" / "g")
    (root / "links" / "file").symlink_to(root / "linked_to" / "g")
    (root / "links" / "directory").symlink_to(root / "linked_to")
    (root / "links" / "broken").symlink_to(root / "nowhere")
    made.table("links", root / "links")
    made.put(root / "circle" / "f")
    (root / "circle" / "again").symlink_to(root / "circle")
    made.table("circle", root / "circle")
    os.mkfifo(root / "links" / "pipe")
    made.put(root / "t" / "f")
    made.table("t" * 128, root / "t")
    made.put(root / "short" / "f")
    made.table("too_long", root / "too_long", {"槐" * 100: root / "short"})
    made.table("is_file", root / "is_file")
    (root / "is_file").rmdir()
    made.put(root / "is_file")
    made.table("part_is_file", root / "pif", {"1": root / "pif" / "p=1"})
    shutil.rmtree(root / "pif" / "p=1", ignore_errors=True)
    made.put(root / "pif" / "p=1")
    made.put(root / "bytes" / "f")
    Path(os.fsdecode(os.fsencode(root / "bytes") + b"/\xff\xfe")).write_bytes(DATA)
    made.table("not_utf8", root / "bytes")
    made.put(root / "healthy" / "f")
    made.table("healthy", root / "healthy")


def change(made: Place, home: Path) -> None:
    """Events on everything, while calque runs; first on what can't be replicated."""
    root = made.root
    for table in ("is_file", "not_utf8", "circle"):
        there = made.deployment.source.the_table(made.name(table)).table
        made.deployment.source.alter_table(made.name(table), replace(there, parameters={**there.parameters, "k": "1"}))
    for name in NAMES[:-1]:
        made.insert("names", root / "names" / f"{name}2")
    for value in VALUES:
        made.insert("vals", root / "values" / partition_name(["p"], [value]) / "f 2%20#=:", value)
    made.insert("odd_place", root / "a b%20#=:Föhre" / "g")
    made.insert("slashes", root / "slashes" / "g")
    made.insert("empties", root / "empties" / "zero2", content=b"")
    made.insert("nothing", root / "nothing" / "f")
    made.insert("gaps", root / "gaps" / "p=missing" / "f", "missing")
    shutil.rmtree(root / "gaps" / "p=full")
    part = made.deployment.source.client.catalog.partitions(made.name("gaps"), ["p=full"])["p=full"]
    made.deployment.source.alter_partition(made.name("gaps"), replace(part, parameters={"emptied": "yes"}))
    made.insert("deep", root / "deep" / "sub" / "g")
    made.insert("deep_parts", root / "deep_parts" / "p=1" / "sub" / "g", "1")
    made.insert("hidden", root / "hidden" / "g")
    made.insert("mixed", root / "elsewhere" / "far" / "g", "far")
    made.insert("same_1", root / "one" / "by_1")
    made.insert("lodger", home / "lodger" / "g")
    made.insert("links", root / "linked_to" / "g2")
    made.insert("healthy", root / "healthy" / "g")


EQUAL = (
    "names",
    "vals",
    "odd_place",
    "slashes",
    "empties",
    "nothing",
    "missing",
    "gaps",
    "deep",
    "deep_parts",
    "hidden",
    "mixed",
    "same_1",
    "inside",
    "lodger",
    "links",
    "t" * 128,
    "healthy",
)
BEHIND = {"same_2": "missing: by_1", "landlord": "missing: lodger/g"}
"""Tables that changed through another one, without an event of their own."""
ASIDE = {
    "is_file": "Not a directory",
    "part_is_file": "Not a directory",
    "circle": "A link to a directory above itself",
    "not_utf8": "A name that is not UTF-8",
    "too_long": "File name too long",
}


@pytest.fixture(scope="module")
def verified(world: Place) -> dict[str, Any]:
    found = world.deployment.calque("verify", "--data", "checksum", "--json")
    assert found.returncode == 1, found.stderr
    document: dict[str, Any] = json.loads(found.stdout)
    return document


def test_every_table_has_a_stated_outcome(world: Place) -> None:
    assert {*EQUAL, *BEHIND, *ASIDE} == {*world.deployment.source.tables(world.database)}


def test_all_that_can_be_read_is_equal_to_the_last_byte(world: Place, verified: Mapping[str, Any]) -> None:
    differences = {row["table"].partition(".")[2]: (row["kind"], row["what"]) for row in verified["differences"]}
    assert differences == {table: ("files", what) for table, what in BEHIND.items()}
    assert verified["compared"]["tables"] == len(EQUAL) + len(BEHIND)
    for table in EQUAL:
        assert world.shown(table) == world.stored(table), table


def test_what_can_not_be_read_is_set_aside_alone_with_the_reason(verified: Mapping[str, Any]) -> None:
    reasons = {row["table"].partition(".")[2]: (row["state"], row["reason"]) for row in verified["set_aside"]}
    assert reasons.keys() == ASIDE.keys()
    for table, why in ASIDE.items():
        state, reason = reasons[table]
        assert (state, why in reason) == ("quarantined", True), reason


def test_hidden_files_are_no_data_and_all_others_are(world: Place) -> None:
    assert world.shown("hidden") == {"": {"f": DATA, "g": b"22\n"}}
    assert len(world.shown("names")[""]) == 2 * len(NAMES) - 1


def test_partitions_lie_under_their_names_as_hive_escapes_them(world: Place) -> None:
    found = world.locations("vals")
    names = {name for at in found for name in at.split("/") if name.startswith("p=")}
    assert names == {partition_name(["p"], [value]) for value in VALUES}
    assert "p=2024-01-31 10%3A00%3A00.5" in names


def test_a_partition_without_directory_or_files_is_there_and_empty(world: Place) -> None:
    assert world.shown("gaps") == {"p=empty": {}, "p=full": {}, "p=missing": {"f": b"22\n"}}
    assert world.shown("missing") == {"": {}}


def test_places_that_are_shared_or_lie_in_one_another_are_copied_for_each_object(world: Place) -> None:
    tables = ("same_1", "same_2", "inside", "lodger", "landlord", "mixed")
    found = [place(at).path for table in tables for at in world.locations(table)[-3:]]
    roots = [place(world.locations("mixed")[0]).path]
    leaves = [path for path in found if path not in roots]
    assert len(set(leaves)) == len(leaves)
    assert not [(one, two) for one in leaves for two in leaves if two.startswith(f"{one}/")]
    assert world.shown("mixed")["p=near"] == {"f": DATA, "inner/f": DATA}
    assert world.shown("mixed")["p=within"] == {"f": DATA}


def test_a_change_through_another_table_is_found_by_verify_and_mended_by_repair(
    world: Place, verified: Mapping[str, Any]
) -> None:
    assert {row["table"].partition(".")[2] for row in verified["differences"]} == {*BEHIND}
    tables = [word for table in BEHIND for word in ("--tables", f"{world.database}.{table}")]
    found = world.deployment.calque("repair", *tables)
    assert found.returncode == 0, found.stdout + found.stderr
    until = time.monotonic() + 60
    while any(world.shown(table) != world.stored(table) for table in BEHIND):
        assert time.monotonic() < until, world.deployment.tail()
        time.sleep(0.1)
