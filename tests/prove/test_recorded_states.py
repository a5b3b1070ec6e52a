"""State folders that an older calque wrote: this calque takes them over at its start, and goes on.

`golden/state/README.md` says what the recorded state folders hold and which version wrote them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from deltalake import DeltaTable

from calque.core.formats.layout import place
from calque.demo.source import location_at
from calque.model.hive import Partition, location_of
from calque.model.names import TableName
from calque.sandbox.writer import HiveClient
from support.services.recorded_states import Installation, RestoredStates, restored_states
from support.services.thriftproxy import asked

DIFFERENT, SET_ASIDE = 1, 75
"""Exit codes of `calque verify` when something differs, and when it did not compare everything."""
TABLE = re.compile(rb"t\d\d")


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestoredStates]:
    with restored_states(tmp_path_factory.mktemp("states")) as restored:
        yield restored


@pytest.fixture(scope="module")
def source(states: RestoredStates) -> Iterator[HiveClient]:
    client = HiveClient(states.servers["source"].uri)
    yield client
    client.close()


@pytest.fixture(scope="module")
def three(states: RestoredStates) -> Iterator[HiveClient]:
    client = HiveClient(states.servers["three"].uri)
    yield client
    client.close()


def test_an_operating_state_goes_on_and_what_was_set_aside_stays_so_until_it_is_resumed(
    states: RestoredStates, source: HiveClient, three: HiveClient
) -> None:
    calque, paused = states.installations["operating"], (TableName("shop", "held"), TableName("shop", "left"))
    recorded, files = calque.recorded_outputs["status"], files_at_targets(calque)
    for name in (TableName("shop", "items"), *paused):
        append(source, name)
    add_partition(source, TableName("shop", "orders"), "2024-02-01")
    source.drop_function(TableName("shop", "mask"))
    head = source.current()

    calque.start()
    status = calque.wait_for_status(lambda status: status["targets"]["three"]["position"] == head)
    assert status["journal"]["gaps"] == recorded["journal"]["gaps"]
    assert status["targets"]["four"]["state"] == "paused"
    for key in ("set_aside", "quarantined"):
        assert by_table(status["targets"]["three"][key]) == by_table(recorded["targets"]["three"][key])
    epochs = new_epochs(calque, "three")
    assert {epoch["kind"] for epoch in epochs} == {"window"}
    assert sum(epoch["files"] for epoch in epochs) == 2
    assert new_epochs(calque, "four") == []
    assert files_at_targets(calque).items() >= files.items()
    assert "appended" in file_names(three, TableName("shop", "items"))
    assert not any("appended" in file_names(three, name) for name in paused)
    assert not is_replica(three, TableName("shop", "taken"))
    assert list(three.catalog.functions("shop")) == ["clash"]

    calque.command("resume", "--tables", "*.*")
    calque.command("resume")
    status = calque.wait_for_status(lambda status: all(shows(target, head) for target in status["targets"].values()))
    assert by_table(status["targets"]["three"]["quarantined"]) == by_table(recorded["targets"]["three"]["quarantined"])
    assert by_table(status["targets"]["four"]["quarantined"]).keys() == {"shop.handled"}
    assert [bridge["table"] for epoch in new_epochs(calque, "four") for bridge in epoch["bridges"]] == ["shop.left"]
    assert all("appended" in file_names(three, name) for name in paused)
    assert is_replica(three, TableName("shop", "taken"))

    calque.config.write_text(calque.config.read_text().replace('exclude = ["shop.retired"]', ""))
    calque.command("reload")
    calque.wait_for_status(lambda _: state_at_three(calque, "shop.retired") == "live")
    calque.stop()
    assert differing_objects(calque, "four", code=SET_ASIDE) == []
    assert differing_objects(calque, "three", code=DIFFERENT) == ["shop.clash"]
    assert kinds_in_tables(calque) == {"table", "database", "function"}
    assert files_at_targets(calque).items() >= files.items()
    assert not any("retired" in path.parts for path in files_at_targets(calque).keys() - files.keys())


def test_a_state_with_a_journal_on_kafka_goes_on_and_a_resumed_table_catches_up_from_the_topic(
    states: RestoredStates, source: HiveClient, three: HiveClient
) -> None:
    calque, paused = states.installations["kafka"], TableName("web", "held")
    recorded, files = calque.recorded_outputs["status"]["targets"]["three"], files_at_targets(calque)
    assert [row["table"] for row in recorded["set_aside"]] == [str(paused)]
    append(source, TableName("web", "hits"))
    calque.command("resume", "--tables", "*.*")
    calque.run("--until", "head")
    epochs = new_epochs(calque, "three")
    assert {epoch["kind"] for epoch in epochs} == {"window"}
    assert sum(epoch["files"] for epoch in epochs) == 2
    assert len(file_names(three, paused)) == 1
    assert differing_objects(calque, "three") == []
    assert kinds_in_tables(calque) == {"table"}
    assert files_at_targets(calque).items() >= files.items()


def test_a_bootstrap_that_was_killed_goes_on_and_does_not_read_landed_tables_again(
    states: RestoredStates, source: HiveClient
) -> None:
    calque, uri = states.installations["bootstrapping"], states.servers["source"].uri
    files, rows = files_at_targets(calque), calque.recorded_outputs["status"]["targets"]["three"]["set_aside"]
    landed = {row["table"] for row in rows if row["state"] == "staging"}
    assert landed
    append(source, TableName("many", "t00"), "day=1")
    append(source, TableName("many", "t23"), "day=1")
    with asked(uri) as proxy:
        configuration = calque.config.read_text()
        calque.config.write_text(configuration.replace(uri, proxy.uri))
        calque.run("--until", "head")
        calque.config.write_text(configuration)
    calls = proxy.named("get_partitions")
    read = {f"many.{cast(re.Match[bytes], TABLE.search(call))[0].decode()}" for call in calls}
    assert read == by_table(rows).keys() - landed
    assert new_epochs(calque, "three")[0]["kind"] == "bootstrap"
    assert calque.command("status")["targets"]["three"]["tables"]["live"] == len(rows)
    assert differing_objects(calque, "three") == []
    assert kinds_in_tables(calque) == {"table"}
    assert files_at_targets(calque).items() >= files.items()


def state_at_three(calque: Installation, table: str) -> str | None:
    [shown] = calque.command("sql", "SHOW TABLES AT three")
    rows = [dict(zip(shown["columns"], row, strict=True)) for row in shown["rows"]]
    return next((row["state"] for row in rows if row["table"] == table), None)


def kinds_in_tables(calque: Installation) -> set[str]:
    """The kinds of rows that lie in the ledgers' public tables, counted or not."""
    tables = [
        DeltaTable(str(folder)).to_pyarrow_table(columns=["kind"])
        for folder in calque.folder.glob("state/ledgers/*/tables")
    ]
    return {kind for table in tables for kind in table["kind"].to_pylist()}


def new_epochs(calque: Installation, target: str) -> Sequence[Mapping[str, Any]]:
    """The epochs that follow the recorded ones. Those must be unchanged, in the fields that they had, and the numbers
    without a gap."""
    recorded, epochs = calque.recorded_outputs[f"epochs {target}"], calque.command("epochs", "list", "--target", target)
    assert [{name: now[name] for name in before} for before, now in zip(recorded, epochs, strict=False)] == recorded
    assert [epoch["epoch"] for epoch in epochs] == list(range(1, len(epochs) + 1))
    following: Sequence[Mapping[str, Any]] = epochs[len(recorded) :]
    return following


def by_table(rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
    return {row["table"]: row for row in rows}


def shows(target: Mapping[str, Any], event_id: int) -> bool:
    """Whether, by its status, all of the target shows the event."""
    return target["position"] == event_id and not target["set_aside"]


def differing_objects(calque: Installation, target: str, code: int = 0) -> Sequence[str]:
    """The names of all objects in which the target differs from the source, by checksums."""
    output = calque.command("verify", "--data", "checksum", "--target", target, code=code)
    return [difference["table"] for difference in output["differences"]]


def files_at_targets(calque: Installation) -> Mapping[Path, tuple[int, int]]:
    """All files in the targets' warehouses with inode and time: a file that is copied again gets another inode."""
    paths = (path for path in calque.folder.glob("at_*/**/*") if path.is_file())
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in paths}


def file_names(target: HiveClient, name: TableName) -> set[str]:
    """The names of the data files in the table's directory."""
    table = target.catalog.table(name)
    assert table is not None
    return {path.name for path in Path(place(location_of(table) or "").path).glob("[!_.]*")}


def is_replica(target: HiveClient, name: TableName) -> bool:
    table = target.catalog.table(name)
    assert table is not None
    return (table.parameters or {}).get("calque.source") == f"hq:{name}"


def append(source: HiveClient, name: TableName, partition: str = "") -> None:
    """Writes one more file into the table or its partition, and fires the event."""
    changed = source.catalog.partitions(name, [partition])[partition] if partition else source.catalog.table(name)
    assert changed is not None
    path = Path(place(location_of(changed) or "").path, "appended")
    path.write_text("7\x01appended\n")
    source.insert(name, [location_at(path)], values=changed.values if isinstance(changed, Partition) else None)


def add_partition(source: HiveClient, name: TableName, value: str) -> None:
    """Adds a partition with one file."""
    table = source.catalog.table(name)
    assert table is not None
    assert table.storage is not None
    path = Path(place(location_of(table) or "").path, f"{table.partition_keys[0].name}={value}")
    path.mkdir()
    (path / "added").write_text("7\x01added\n")
    storage = replace(table.storage, location=location_at(path))
    source.add_partitions(name, [Partition((value,), *name, storage=storage)])
