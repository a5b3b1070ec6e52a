"""Two metastores that one process captures, each with a target of its own at a third metastore."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

from calque.app import APP
from calque.commands import check
from calque.commands.status import show
from calque.control.status import snapshot
from calque.engine.verify.verify import verify
from calque.model.hive import Column, Database, SerDe, Storage, Table
from calque.model.names import TableName
from calque.sandbox import Metastore
from calque.sandbox.writer import HiveClient
from support.programs import program
from support.services.servers import Shared
from support.services.several_sources import together
from support.worlds.worlds import INPUT, OUTPUT, SERDE


def written(server: Metastore, name: TableName, root: Path, rounds: int) -> None:
    """A table, and events after it that change it."""
    client, location = HiveClient(server.uri), f"file:{root}/{name.database}/{name.table}"
    if name.database not in client.catalog.databases():
        client.create_database(Database(name.database, location=f"file:{root}/{name.database}"))
        folder = root / name.database / name.table
        folder.mkdir(parents=True)
        (folder / "one").write_text(str(name))
        storage = Storage((Column("x", "int"),), location, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={}))
        parameters = {"EXTERNAL": "TRUE"}
        client.create_table(
            Table(name.table, name.database, storage=storage, parameters=parameters, type="EXTERNAL_TABLE")
        )
    for number in range(rounds):
        table = client.catalog.table(name)
        assert table is not None
        client.alter_table(name, replace(table, parameters={"EXTERNAL": "TRUE", "round": str(number)}))


def file_of(root: Path, source: str, server: Metastore, target: str, at: Metastore, database: str) -> Path:
    path = root / f"{source}.toml"
    path.write_text(
        f'[source]\nname = "{source}"\nmetastore = "{server.uri}"\npoll = "50ms"\n[serve]\naddress = ""\n'
        f'[targets.{target}]\nmetastore = "{at.uri}"\nwarehouse = "{root}/{target}"\ninclude = ["{database}.*"]\n'
    )
    return path


def run(files: list[Path], root: Path) -> None:
    command = [*program("support.services.several_sources"), *map(str, files)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def test_one_process_follows_two_sources_and_keeps_their_state_apart(shared: Shared, tmp_path: Path) -> None:
    servers = shared("source-3", "target-3", "target-4")
    hq, lake, at = servers["source-3"], servers["target-4"], servers["target-3"]
    files = [
        file_of(tmp_path, "hq", hq, "from_hq", at, "two_hq"),
        file_of(tmp_path, "lake", lake, "from_lake", at, "two_lake"),
    ]
    written(hq, TableName("two_hq", "t"), tmp_path, 3)
    written(lake, TableName("two_lake", "t"), tmp_path, 5)
    config = together(files)
    findings = check.look(config, APP)
    assert findings.ok, findings
    run(files, tmp_path)
    written(lake, TableName("two_lake", "t"), tmp_path, 2)
    run(files, tmp_path)
    wiring = APP.wiring(config)
    document = snapshot(wiring, APP.status())
    heads = {one["source"]["name"]: one["source"]["head"] for one in document["sources"]}
    assert heads == {"hq": HiveClient(hq.uri).current(), "lake": HiveClient(lake.uri).current()}
    assert document["source"] == document["sources"][0]["source"]
    for target, source in (("from_hq", "hq"), ("from_lake", "lake")):
        assert document["targets"][target]["source"] == source
        assert document["targets"][target]["position"] == heads[source]
        found = verify(wiring.sources[source].side(), wiring.target(target).side(), data="checksum")
        assert (found.compared.tables, found.differences, found.set_aside) == (1, (), ())
    show(document)
    assert {path.name for path in (tmp_path / "state" / "sources" / "lake").iterdir()} >= {"journal", "evidence"}
