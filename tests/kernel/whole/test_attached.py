"""Files that definitions point to beside their data come along, by content, before the definition is written."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from calque.core.formats.attached import address, is_file
from calque.core.records.lifecycle import State
from calque.engine.verify.verify import verify
from calque.model.hive import Column, Database, Function, Partition, Resource, SerDe, Table
from calque.model.hive import Storage as Described
from calque.model.ledger import TableState
from calque.model.names import TableName
from calque.model.policy import Policy
from support.memory.metastore import HIVE_3
from support.worlds.worlds import INPUT, OUTPUT, SERDE, World

T, F = TableName("d1", "t"), TableName("d1", "f")
URL = "avro.schema.url"
SCHEMA = "hdfs://hq/schemas/t.avsc"
JAR = "hdfs://hq/udf.jar"


def addressed(content: bytes, name: str) -> str:
    return f"file:/target/_calque/files/{sha256(content).hexdigest()}/{name}"


def world_of(**policy: Any) -> World:
    world = World(1, HIVE_3, Policy("dr", "hq", include=("d1.*",), warehouse="file:/target", **policy))
    world.source.create_database(Database("d1", location="file:/source/d1.db"))
    world.open()
    return world


@pytest.fixture
def world() -> World:
    return world_of()


def serde(url: str) -> Any:
    return SerDe(class_name=SERDE, parameters={URL: url})


def table(url: str = SCHEMA, **more: Any) -> Table:
    storage = Described((), "file:/source/d1.db/t", INPUT, OUTPUT, serde=serde(url))
    parameters = {"EXTERNAL": "TRUE", URL: url, "avro.schema.literal": SCHEMA}
    return Table("t", "d1", storage=storage, parameters=parameters, type="EXTERNAL_TABLE", **more)


def create(world: World, made: Table) -> None:
    world.writer.source.create_table(made)


def there(world: World) -> Table:
    found: Table = world.target_store.the_table(T).table
    return found


def urls(thing: Table | Partition) -> list[str]:
    assert thing.storage is not None
    assert thing.storage.serde is not None
    return [(thing.parameters or {}).get(URL, ""), (thing.storage.serde.parameters or {}).get(URL, "")]


def differences(world: World, data: str = "size") -> list[tuple[str, str]]:
    found = verify(world.source_side, world.side, data=data).differences
    return [(difference.kind.value, difference.what) for difference in found]


def test_a_schema_file_lies_at_an_address_made_of_its_content(world: World) -> None:
    world.storage.write(SCHEMA, b"{1}")
    create(world, table())
    world.settle()
    at = addressed(b"{1}", "t.avsc")
    assert urls(there(world)) == [at, at]
    assert (there(world).parameters or {})["avro.schema.literal"] == SCHEMA
    assert world.storage.read(at) == b"{1}"
    assert differences(world) == []
    assert not world.problems


def test_a_file_that_changed_gets_a_new_address_with_the_next_event(world: World) -> None:
    world.storage.write(SCHEMA, b"{1}")
    create(world, table())
    world.settle()
    world.storage.write(SCHEMA, b"{2}")
    assert differences(world) == [("content", f"parameters.{URL}: other content")] * 2
    stored = world.source.the_table(T).table
    world.writer.source.alter_table(T, replace(stored, owner="other"))
    world.settle()
    assert urls(there(world)) == [addressed(b"{2}", "t.avsc")] * 2
    assert world.storage.read(addressed(b"{1}", "t.avsc")) == b"{1}"
    assert differences(world) == []


def test_a_read_mends_a_file_that_changed_without_an_event(world: World) -> None:
    world.storage.write(SCHEMA, b"{1}")
    create(world, table())
    world.settle()
    world.storage.write(SCHEMA, b"{2}")
    world.replica.reads.reread(lambda _: True, "repair", [State.LIVE])
    world.settle()
    assert urls(there(world)) == [addressed(b"{2}", "t.avsc")] * 2
    world.storage.remove([addressed(b"{2}", "t.avsc")])
    assert differences(world)
    world.replica.reads.reread(lambda _: True, "repair", [State.LIVE])
    world.settle()
    assert differences(world) == []


def test_partitions_have_theirs_and_an_append_keeps_it(world: World) -> None:
    world.storage.write(SCHEMA, b"{1}")
    create(world, table(partition_keys=(Column("p", "string"),)))
    storage = Described((), "file:/source/d1.db/t/p=1", INPUT, OUTPUT, serde=serde(SCHEMA))
    world.writer.source.add_partitions(T, [Partition(("1",), "d1", "t", storage=storage, parameters={URL: SCHEMA})])
    world.settle()
    world.storage.write("file:/source/d1.db/t/p=1/f", b"x")
    world.writer.source.insert(T, ["file:/source/d1.db/t/p=1/f"], values=("1",))
    world.settle()
    (found,) = world.target_store.the_table(T).partitions.values()
    assert urls(found) == [addressed(b"{1}", "t.avsc")] * 2
    assert differences(world) == []


def test_a_table_whose_schema_is_not_there_is_set_aside_and_others_go_on(world: World) -> None:
    create(world, table())
    create(world, replace(table("http://registry/s"), name="u"))
    world.settle()
    row = world.replica.tables.rows[T]
    assert (row.state, SCHEMA in row.reason) == (TableState.QUARANTINED, True)
    assert urls(world.target_store.the_table(TableName("d1", "u")).table) == ["http://registry/s"] * 2


def test_targets_without_data_point_at_the_source() -> None:
    world = world_of(data="none")
    create(world, table())
    world.writer.source.create_function(Function("f", "d1", "F", resources=(Resource(1, JAR),)))
    world.settle()
    assert urls(there(world)) == [SCHEMA, SCHEMA]
    found = world.side.catalog.function(F)
    assert found is not None
    assert found.resources == (Resource(1, JAR),)
    assert differences(world) == []


def test_a_functions_resources_come_along_by_content(world: World) -> None:
    world.storage.write(JAR, b"jar 1")
    kept = Resource(1, "ivy://org:udf:1.0")
    made = Function("f", "d1", "F", resources=(Resource(1, JAR), kept))
    world.writer.source.create_function(made)
    world.settle()
    found = world.side.catalog.function(F)
    assert found is not None
    assert found.resources == (Resource(1, addressed(b"jar 1", "udf.jar")), kept)
    assert differences(world) == []
    world.storage.write(JAR, b"jar 2")
    assert [kind for kind, _ in differences(world)] == ["definition"]
    world.writer.source.drop_function(F)
    world.writer.source.create_function(made)
    world.settle()
    found = world.side.catalog.function(F)
    assert found is not None
    assert found.resources == (Resource(1, addressed(b"jar 2", "udf.jar")), kept)
    world.storage.remove([addressed(b"jar 2", "udf.jar")])
    assert [kind for kind, _ in differences(world)] == ["files"]


def test_a_function_whose_jar_is_not_there_is_set_aside_and_comes_with_it(world: World) -> None:
    made = Function("f", "d1", "F", resources=(Resource(1, JAR),))
    world.writer.source.create_function(made)
    world.settle()
    assert world.side.catalog.function(F) is None
    assert JAR in world.replica.functions.owned[F].reason
    world.storage.write(JAR, b"jar")
    world.writer.source.drop_function(F)
    world.writer.source.create_function(made)
    world.settle()
    assert world.side.catalog.function(F) is not None


def test_a_function_of_ours_whose_new_jar_is_not_there_stays_ours(world: World) -> None:
    world.storage.write(JAR, b"jar")
    made = Function("f", "d1", "F", resources=(Resource(1, JAR),))
    world.writer.source.create_function(made)
    world.settle()
    world.storage.remove([JAR])
    world.writer.source.drop_function(F)
    world.writer.source.create_function(replace(made, class_name="G"))
    world.settle()
    found = world.side.catalog.function(F)
    assert found is not None
    assert found.class_name == "F"
    world.writer.source.drop_function(F)
    world.settle()
    assert world.side.catalog.function(F) is None


def test_a_chained_target_parks_the_url_that_it_has_it_from(world: World) -> None:
    world.storage.write(SCHEMA, b"{1}")
    made = table()
    before = {**(made.parameters or {}), f"calque.source.{URL}": "hdfs://first/s"}
    create(world, replace(made, parameters=before))
    world.settle()
    assert (there(world).parameters or {})[f"calque.source.{URL}"] == SCHEMA
    assert differences(world) == []


@pytest.mark.parametrize(
    ("url", "copied"),
    [
        ("/a/b", True),
        ("file:/a", True),
        ("s3a://b/k", True),
        ("hdfs:///x", True),
        ("http://h/s", False),
        ("https://h/s", False),
        ("ivy://a:b:1", False),
        ("none", False),
        ("", False),
        ("zip://x::file:///etc/passwd", False),
        ("jar:file:/etc/x!/y", False),
        ("file:/a/../etc/passwd", False),
    ],
)
def test_files_are_told_from_what_both_sides_reach(url: str, copied: bool) -> None:
    assert is_file(url) is copied


def test_equal_files_of_one_name_are_one_file() -> None:
    assert address("/w", "c", "hdfs://a/x.jar") == address("/w", "c", "s3a://b/y/x.jar") == "/w/_calque/files/c/x.jar"


def test_a_file_that_many_partitions_share_is_looked_at_once(world: World) -> None:
    world.storage.write(SCHEMA, b"{}")
    create(world, table(partition_keys=(Column("p", "string"),)))
    rows = [
        Partition((str(at),), "d1", "t", storage=replace(table().storage, location=f"file:/source/d1.db/t/p={at}"))
        for at in range(50)
    ]
    world.writer.source.add_partitions(T, rows)
    world.settle()
    looked: list[str] = []
    world.storage.before = lambda call, about: looked.append(about) if call == "checksum" and about == SCHEMA else None
    world.replica.reads.reread(lambda _: True, "the test wants it", {State.LIVE})
    world.settle()
    assert len(looked) <= 2
    looked.clear()
    assert verify(world.source_side, world.side).differences == ()
    assert len(looked) <= 2
