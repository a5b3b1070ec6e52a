"""Hive 4.0.1 itself loads what calque dumps: `make interop`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from getpass import getuser
from pathlib import Path

import pytest

from calque.cli import main
from calque.core.formats.layout import join
from calque.model.hive import Function, Resource, location_of
from calque.model.names import TableName
from calque.sandbox import Metastore
from support.services.hdfs import Hdfs
from support.services.hive_driver import HIVE_4_0, Hive, hive
from support.sources.dumped import DatabaseState, KnownSource
from support.storages import any_storage

LAZY, EAGER = "", " WITH ('hive.repl.run.data.copy.tasks.on.target' = 'false')"
POLICY = "src.'[a-z]+'"


@pytest.fixture
def metastore(tmp_path: Path) -> Iterator[Metastore]:
    with Metastore.start(HIVE_4_0, tmp_path / "metastore") as started:
        yield started


def shown(source: KnownSource, database: str) -> DatabaseState:
    """What the metastore has of the replica, by names of files."""
    catalog, state = source.client.catalog, {}
    for table in catalog.tables(database):
        name = TableName(database, table)
        header = catalog.table(name)
        assert header is not None
        partitions = catalog.partitions(name, catalog.partition_names(name))
        places = {each: location_of(one) for each, one in partitions.items()} or {"": location_of(header)}
        contents = {each: files_at(place or "") for each, place in places.items()} if header.storage else {}
        state[table] = (
            (header.parameters or {}).get("k", ""),
            {} if header.partition_keys and not partitions else contents,
        )
    return state


def files_at(place: str) -> frozenset[tuple[str, bytes]]:
    storage = any_storage()
    return frozenset((file.path, storage.read(join(place, file.path))) for file in storage.list([place])[place].files)


def test_hive_loads_bootstraps_and_increments(
    metastore: Metastore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = KnownSource.make(metastore, "src")
    with hive(tmp_path, metastore) as program:
        config = configured(tmp_path, metastore)

        def follow(clause: str = "", options: str = LAZY) -> None:
            """Dump, load, compare."""
            nonlocal last
            assert main(["sql", f"REPL DUMP {clause}{options}", "--json", "-c", str(config)]) == 0
            [[_, last]] = json.loads(capsys.readouterr().out)[0]["rows"]
            load(program, options)
            assert program.run("REPL STATUS dst") == [str(last)]

        last = 0
        source.create("a", partitioned=True)
        for value in "12":
            source.add("a", value)
        source.create("b", files=2)
        source.create("d")
        source.client.create_function(
            Function("f", "src", "org.apache.hadoop.hive.ql.udf.generic.GenericUDFAbs", "me", 1, 0, 1, (JAR,))
        )
        follow("src")
        assert shown(source, "dst") == source.state
        source.insert("a", "p=1")
        source.add("a", "3")
        source.drop_partition("a", "p=2")
        source.alter("b")
        source.insert("b")
        source.create("e", partitioned=True)
        source.add("e", "9")
        follow(f"src FROM {last}")
        assert shown(source, "dst") == source.state
        source.rename("e", "g")
        source.insert("g", "p=9")
        source.drop("d")
        follow(f"src FROM {last}")
        assert shown(source, "dst") == source.state
        source.create("t5", files=1)
        source.insert("b")
        follow(f"src FROM {last}", EAGER)
        assert shown(source, "dst") == source.state
        source.insert("b")
        follow(f"{POLICY} REPLACE src FROM {last}")
        assert shown(source, "dst") == {name: one for name, one in source.state.items() if name != "t5"}
        source.insert("t5")
        source.rename("t5", "t")
        follow(f"{POLICY} FROM {last}")
        assert shown(source, "dst") == source.state


def test_hive_loads_external_tables_below_its_base_directory(metastore: Metastore, tmp_path: Path) -> None:
    """It takes none on this machine's files: the directory has to have an authority."""
    with (
        Hdfs.start(tmp_path / "hdfs") as hdfs,
        hive(tmp_path, metastore, **{"hive.distcp.privileged.doAs": getuser()}) as program,
    ):
        options = {
            "hive.repl.include.external.tables": "true",
            "hive.repl.dump.metadata.only.for.external.table": "false",
            "hive.repl.replica.external.table.base.dir": f"{hdfs.uri}/base",
        }
        clause = f"WITH ({', '.join(f'{key!r} = {value!r}' for key, value in options.items())})"
        source = KnownSource.make(metastore, "src")
        config = configured(tmp_path, metastore)
        source.create("plain", external=f"file:{tmp_path}/outside/plain", files=2)
        source.create("parted", partitioned=True, external=f"file:{tmp_path}/outside/parted")
        source.add("parted", "1")
        assert main(["sql", f"REPL DUMP src {clause}", "-c", str(config)]) == 0
        program.run(f"REPL LOAD src INTO dst {clause}")
        assert shown(source, "dst") == source.state
        last = source.client.current()
        source.insert("plain")
        source.add("parted", "2")
        assert main(["sql", f"REPL DUMP src FROM {last} {clause}", "-c", str(config)]) == 0
        program.run(f"REPL LOAD src INTO dst {clause}")
        assert shown(source, "dst") == source.state


def configured(folder: Path, metastore: Metastore) -> Path:
    config = folder / "calque.toml"
    config.write_text(
        f'[source]\nname = "hq"\nmetastore = "{metastore.uri}"\n[repl]\nroot = "{folder}/dumps"\n'
        f'[targets.dr]\nmetastore = "{metastore.uri}"\nwarehouse = "{folder}/dr"\n'
        'include = ["x.*"]\nrename = { "x" = "y" }\n'
    )
    return config


JAR = Resource(1, "file:///dev/null")


def load(program: Hive, options: str) -> None:
    assert program.run(f"REPL LOAD src INTO dst{options}") == []
