"""Targets that somebody filled before calque came, on real metastores: taken over, started from, looked at again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from calque.app import APP
from calque.core.formats.layout import place
from calque.core.formats.pointers import moved
from calque.core.images.image import EVENT, INCARNATION, SOURCE
from calque.demo.source import Source
from calque.model.hive import Column, Database, Partition, Table, location_of
from calque.model.ledger import TableState
from calque.model.names import TableName
from calque.model.records import ReadRequest, all_of
from calque.sandbox import Metastore
from calque.sandbox.writer import HiveClient
from support.services.deployments import NUMBERS, Deployment, whole_table
from support.services.servers import Shared

COLUMNS, DAY = (Column("id", "bigint"), Column("name", "string")), (Column("day", "string"),)
REPL = {"repl.last.id": "7", "hive.repl.ckpt.key": "file:/dump", "repl.scope": "all"}


@pytest.fixture
def servers(shared: Shared) -> Mapping[str, Metastore]:
    return dict(zip(("source", "three", "four"), shared("source-3", "target-3", "target-4").values(), strict=True))


class Filled:
    """A source with four tables, and targets to which somebody copied them with times of their own."""

    def __init__(self, root: Path, servers: Mapping[str, Metastore], targets: tuple[str, ...]) -> None:
        chosen = {name: servers[name] for name in targets}
        self.deployment = Deployment(root, next(NUMBERS), servers["source"], chosen, seed=1)
        self.source = Source(self.deployment.source.client, root / "data")
        database = self.deployment.databases[0]
        self.source.create_database(database)
        self.plain, self.parted = TableName(database, "plain"), TableName(database, "parted")
        self.other, self.missing = TableName(database, "other"), TableName(database, "missing")
        for name in (self.plain, self.other, self.missing):
            self.source.create_table(name, COLUMNS, form="text")
            self.source.insert(name)
        self.source.create_table(self.parted, COLUMNS, DAY, form="text")
        self.source.add_partitions(self.parted, [("1",), ("2",)])
        self.root = root
        self.stores = {name: HiveClient(servers[name].uri) for name in targets}

    def copy(self, target: str, *names: TableName) -> None:
        """By hand: managed tables as Hive's own replication leaves them."""
        store, catalog = self.stores[target], self.deployment.source.client.catalog
        database = names[0].database
        store.create_database(Database(database, None, f"file:{self.root}/{target}.db", REPL, "hive"))
        for name in names:
            found = whole_table(catalog, name)
            there = f"file:{self.root}/hand_{target}/{name.table}"
            copied = by_hand(found.table, there)
            store.create_table(copied)
            if name != self.parted:
                self.copy_files(found.table, there)
                continue
            parts = []
            for part in found.partitions.values():
                parts.append(by_hand(part, f"{there}/day={part.values[0]}"))
                self.copy_files(part, f"{there}/day={part.values[0]}")
            store.add_partitions(name, parts)

    def copy_files(self, thing: Table | Partition, there: str) -> None:
        Path(place(there).path).mkdir(parents=True, exist_ok=True)
        for file in Path(place(location_of(thing) or "").path).iterdir():
            shutil.copyfile(file, Path(place(there).path, file.name))

    def bytes(self, target: str) -> int:
        """Copied, by the ledger."""
        return sum(epoch.bytes for epoch in self.ledger(target).epochs())

    def ledger(self, target: str):  # type: ignore[no-untyped-def]
        return APP.wiring(APP.load(self.deployment.config)).ledger(target)

    def until_none(self, target: str, *states: TableState) -> None:
        deadline = time.monotonic() + 200
        while all_of(self.ledger(target).records(), ReadRequest) or any(
            row.state in states for row in self.ledger(target).tables().values()
        ):
            assert time.monotonic() < deadline, self.deployment.tail()
            time.sleep(0.2)

    def equal(self) -> None:
        """By calque's own comparison, down to checksums."""
        verified = self.deployment.calque("verify", "--data", "checksum")
        assert verified.returncode == 0, verified.stdout + verified.stderr


def by_hand(thing, there: str):  # type: ignore[no-untyped-def]
    parameters = {**(thing.parameters or {}), **REPL}
    return replace(thing, parameters=parameters, storage=moved(thing.storage, there))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path


def files_of(store: HiveClient, name: TableName) -> list[Path]:
    found = store.catalog.table(name)
    return sorted(Path(place(location_of(found) or "").path).rglob("part-*")) if found is not None else []


def test_a_target_filled_by_hand_is_taken_over_and_looked_at_again(
    servers: Mapping[str, Metastore], root: Path
) -> None:
    filled = Filled(root, servers, ("three", "four"))
    deployment, names = filled.deployment, (filled.plain, filled.parted, filled.other)
    for target in filled.stores:
        filled.copy(target, *names)
        spoiled = next(Path(f"{root}/hand_{target}/other").iterdir())
        spoiled.write_bytes(bytes(255 - byte for byte in spoiled.read_bytes()))
    began = filled.source.client.current()
    deployment.start()
    try:
        for target, store in filled.stores.items():
            found = deployment.calque(
                "wait", "--target", target, "--event-id", str(began), "--timeout", "240", timeout=270
            )
            assert found.returncode == 75, found.stderr + deployment.tail()
            before = filled.bytes(target)
            adopted = deployment.calque("adopt", "--target", target, "--tables", f"{filled.plain.database}.*")
            assert adopted.returncode == 0, adopted.stderr
            filled.until_none(target, *set(TableState) - {TableState.LIVE})
            spoiled = next(Path(f"{root}/hand_{target}/other").iterdir())
            assert filled.bytes(target) - before == spoiled.stat().st_size
            for name in names:
                seen = whole_table(store.catalog, name)
                for thing in (seen.table, *seen.partitions.values()):
                    assert {EVENT, INCARNATION} <= thing.parameters.keys()
                    assert not REPL.keys() & thing.parameters.keys()
                assert seen.table.type == "EXTERNAL_TABLE"
                assert seen.table.parameters[SOURCE] == f"hq:{name}"
                assert (f"/hand_{target}/" in location_of(seen.table)) == (name != filled.other)
        filled.equal()
        sizes = {target: filled.bytes(target) for target in filled.stores}
        filled.source.insert(filled.plain)
        filled.source.insert(filled.parted, "day=1")
        filled.source.overwrite(filled.parted, "day=2")
        deployment.settle(240)
        new = sum(sorted(size for size in sizes_of(filled.source, filled)))
        assert all(0 < filled.bytes(target) - before <= new for target, before in sizes.items())
        # A file that was damaged keeps size and time; nothing but its content tells.
        damaged = files_of(filled.stores["three"], filled.plain)[0]
        stat = damaged.stat()
        damaged.write_bytes(b"?" * stat.st_size)
        os.utime(damaged, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        assert deployment.calque("verify", "--target", "three", "--data", "checksum").returncode == 1
        refused = deployment.calque("replay", "--target", "three", "--from", "0")
        assert refused.returncode == 65, refused.stderr
        assert "journal begins" in refused.stderr
        replayed = deployment.calque("replay", "--target", "three", "--from", str(began), "--json")
        assert json.loads(replayed.stdout)["tables"] == [str(filled.parted), str(filled.plain)]
        deadline = time.monotonic() + 200
        while damaged in files_of(filled.stores["three"], filled.plain) and time.monotonic() < deadline:
            time.sleep(0.2)
        deployment.settle(240)
        filled.equal()
        assert deployment.end(signal.SIGTERM) == 0
    finally:
        deployment.close()


def sizes_of(source: Source, filled: Filled) -> list[int]:
    held = source.expected_files()
    return [size for name in (filled.plain, filled.parted) for part in held[name].values() for size in part.values()]


@pytest.mark.prove
def test_a_target_that_equals_the_source_at_an_event_is_followed_from_there(
    servers: Mapping[str, Metastore], root: Path
) -> None:
    filled = Filled(root, servers, ("three", "four"))
    deployment = filled.deployment
    for target in filled.stores:
        filled.copy(target, filled.plain, filled.parted, filled.other, filled.missing)
    start = filled.source.client.current()
    text = deployment.config.read_text()
    deployment.config.write_text(text.replace("warehouse =", f"start = {start + 1000}\nwarehouse ="))
    refused = deployment.calque("run", "--until", "head")
    assert refused.returncode == 65, refused.stderr
    assert "can't start" in refused.stderr
    shutil.rmtree(root / "state")
    deployment.config.write_text(text.replace("warehouse =", f"start = {start}\nwarehouse ="))
    filled.source.insert(filled.plain)
    filled.source.rename_table(filled.other, TableName(filled.other.database, "renamed"))
    found = deployment.calque("run", "--until", "head", timeout=300)
    assert found.returncode == 0, found.stderr
    filled.equal()
    newest = max(files_of(deployment.source.client, filled.plain), key=lambda path: path.stat().st_mtime_ns)
    for target, store in filled.stores.items():
        assert filled.bytes(target) == newest.stat().st_size
        assert f"/hand_{target}/" in (location_of(store.catalog.table(filled.plain)) or "")
