"""What came from the target is not carried back there, whatever becomes of the marks that say so."""

from __future__ import annotations

from dataclasses import replace

from calque.core.images.image import ORIGIN, SOURCE
from calque.core.records.lifecycle import State
from calque.engine.check.chains import carried_to
from calque.engine.check.findings import Findings, Severity
from calque.engine.check.sides import Source, Target
from calque.engine.target.origin_registry import PREFIX, known_at
from calque.model.hive import Column, Database, Function, Partition, SerDe, Storage, Table
from calque.model.names import TableName
from calque.model.records import ReadMode
from calque.ports.services import Listeners
from support.worlds.rings import Link, Metastores
from support.worlds.worlds import INPUT, OUTPUT, SERDE

T = TableName("d", "t")


class Silent:
    """A server that says nothing of itself."""

    def version(self) -> str:
        return "4.2.0"

    def listeners(self) -> Listeners:
        return Listeners(False)

    def setting(self, _: str) -> str:
        return ""

    def has_compare_and_swap(self, _: Table) -> bool:
        return True


def ring() -> tuple[Metastores, Link, Link]:
    """Of two metastores that have a database `d` each by themselves."""
    world = Metastores(0, "a", "b")
    for store in world.stores.values():
        store.create_database(Database("d"))
    return world, world.link("a", "b"), world.link("b", "a")


def create(world: Metastores, at: str, name: TableName = T, content: bytes = b"") -> None:
    location = f"file:/{at}/{name.database}.db/{name.table}"
    storage = Storage((Column("x", "int"),), location, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={}))
    world.storage.write(f"{location}/part-0", content or at.encode())
    world.stores[at].create_table(Table(name.table, name.database, storage=storage, parameters={"made": at}))


def parameters(world: Metastores, at: str, name: TableName = T) -> dict[str, str]:
    return dict(world.stores[at].the_table(name).table.parameters or {})


def say(world: Metastores, at: str, name: TableName = T, **parameters: str) -> None:
    """An ALTER TABLE by somebody else."""
    there = world.stores[at].the_table(name).table
    kept = {key: value for key, value in (there.parameters or {}).items() if key not in parameters}
    said = {key: value for key, value in parameters.items() if value}
    world.stores[at].alter_table(name, replace(there, parameters={**kept, **said}))


def test_the_path_of_origins_grows_along_a_chain() -> None:
    world = Metastores(0, "a", "b", "c")
    world.link("a", "b")
    world.link("b", "c")
    world.stores["a"].create_database(Database("d"))
    create(world, "a")
    world.settle()
    assert ORIGIN not in parameters(world, "a")
    assert parameters(world, "b")[ORIGIN] == "a"
    assert parameters(world, "c")[ORIGIN] == "a,b"
    assert parameters(world, "c")[SOURCE] == "b:d.t"


def test_each_target_is_told_of_all_sources_that_a_path_can_name() -> None:
    world = Metastores(0, "a", "b", "c")
    world.link("b", "c")
    world.settle()
    world.link("a", "b")
    world.settle()
    assert {(one.name, one.id) for one in known_at(world.links[0].side.catalog)} == {("a", "id of a"), ("b", "id of b")}


def test_a_name_that_both_homes_use_stays_at_each_of_them_and_is_set_aside() -> None:
    world, there, back = ring()
    world.settle()
    create(world, "a")
    create(world, "b")
    world.settle()
    assert parameters(world, "a") == {**parameters(world, "a"), "made": "a"}
    assert parameters(world, "b") == {**parameters(world, "b"), "made": "b"}
    assert SOURCE not in parameters(world, "a")
    assert SOURCE not in parameters(world, "b")
    for link in (there, back):
        assert link.quarantined() == ["d.t"]
        assert "drop or rename it there, or take it over with `calque adopt`" in link.replica.tables.rows[T].reason


def test_taking_over_one_of_two_namesakes_makes_it_a_replica_for_both() -> None:
    world, there, back = ring()
    world.settle()
    create(world, "a")
    create(world, "b")
    world.settle()
    there.replica.reads.reread(lambda name: name == T, "it is taken over", State, ReadMode.ADOPT)
    world.settle()
    assert parameters(world, "b")["made"] == "a"
    assert parameters(world, "b")[SOURCE] == "a:d.t"
    assert SOURCE not in parameters(world, "a")
    assert not there.quarantined()
    assert not back.quarantined()
    assert T not in back.replica.tables.rows


def test_a_table_that_is_said_to_come_from_the_target_is_dropped_there_and_comes_again_without_that() -> None:
    world, _, _ = ring()
    world.settle()
    create(world, "b", TableName("d", "u"))
    world.settle()
    assert parameters(world, "a", TableName("d", "u"))[SOURCE] == "b:d.u"
    say(world, "b", TableName("d", "u"), **{ORIGIN: "a"})
    world.settle()
    assert "d.u" not in world.tables_of("a")
    say(world, "b", TableName("d", "u"), **{ORIGIN: ""})
    world.settle()
    assert parameters(world, "a", TableName("d", "u"))[SOURCE] == "b:d.u"
    assert "d.u" in world.tables_of("b")


def test_a_table_that_lost_its_path_meets_its_own_home_as_a_namesake() -> None:
    world, there, back = ring()
    create(world, "a")
    world.settle()
    say(world, "b", **{ORIGIN: "", SOURCE: ""})
    world.settle()
    assert SOURCE not in parameters(world, "a")
    assert back.quarantined() == ["d.t"]
    assert there.verify().differences


def test_a_replica_that_somebody_renames_is_not_carried_under_its_new_name() -> None:
    world, _, back = ring()
    create(world, "a")
    world.settle()
    moved = replace(world.stores["b"].the_table(T).table, name="moved")
    world.stores["b"].alter_table(T, moved)
    world.settle()
    assert world.tables_of("a") == {"d.t"}
    assert not back.quarantined()


def test_a_dropped_database_of_replicas_is_not_dropped_at_home() -> None:
    world = Metastores(0, "a", "b")
    world.stores["a"].create_database(Database("d"))
    create(world, "a")
    world.link("a", "b")
    world.link("b", "a")
    world.settle()
    world.stores["b"].drop_database("d", cascade=True, delete_data=False)
    world.settle()
    assert world.tables_of("a") == {"d.t"}


def test_functions_come_from_where_their_database_came_from() -> None:
    world = Metastores(0, "a", "b")
    world.stores["a"].create_database(Database("d"))
    world.stores["a"].create_function(Function("f", "d", "org.F", "me", 1, type=1))
    world.link("a", "b")
    back = world.link("b", "a")
    world.settle()
    assert world.stores["b"].functions("d") == ["f"]
    assert not back.replica.functions.owned
    world.stores["b"].drop_function(TableName("d", "f"))
    world.settle()
    assert world.stores["a"].functions("d") == ["f"]


def test_a_metastore_that_takes_the_place_of_another_under_its_name_is_written_down_too() -> None:
    world = Metastores(0, "a", "z", "b")
    world.link("a", "b").turn()
    other = world.link("z", "b")
    other.source = replace(other.source, name="a")
    other.replica.unfiltered_source = other.source
    other.turn()
    assert {(one.name, one.id) for one in known_at(other.side.catalog)} == {("a", "id of a"), ("a", "id of z")}


def test_what_stands_in_a_target_is_said_once() -> None:
    world = Metastores(0, "a", "b")
    link = world.link("a", "b")
    world.settle()
    head = world.heads()["b"]
    link.replica.open()
    assert world.heads()["b"] == head
    assert [name for name in world.stores["b"].tables("_calque") if name.startswith(PREFIX)]


def checked(link: Link) -> tuple[list[str], Findings]:
    """The tables that go to the target, and what is found."""
    source = Source(Silent(), link.source.log, link.source.catalog, link.source.storage)
    target = Target(link.side.policy, Silent(), link.side.catalog, link.side.storage, lambda _: None)
    names = [TableName(*name.split(".")) for name in sorted(link.stores.tables_of(link.source.name))]
    tables = {name: link.store.the_table(name).table for name in names}
    findings = Findings()
    return [str(name) for name in carried_to(source, target, tables, findings)], findings


def test_check_tells_what_came_from_the_target_and_what_is_a_replica_itself() -> None:
    world = Metastores(0, "a", "b", "c")
    for source, target in ("ab", "ba", "bc"):
        world.link(source, target)
    for at in ("a", "b"):
        world.stores[at].create_database(Database(f"of_{at}"))
        create(world, at, TableName(f"of_{at}", "t"))
    world.settle()
    there, back, on = map(checked, world.links)
    assert there[0] == ["of_a.t"]
    assert back[0] == ["of_b.t"]
    assert [finding.what for finding in back[1].entries] == [
        "Tables that came from this target are not carried back: of_a.t"
    ]
    assert on[0] == ["of_a.t", "of_b.t"]
    assert [finding.what for finding in on[1].entries] == ["Tables are replicas themselves: of_a.t"]


def test_check_tells_of_two_metastores_with_one_name() -> None:
    world = Metastores(0, "a", "b", "c")
    link = world.link("a", "b")
    world.stores["a"].create_database(Database("d"))
    create(world, "a")
    world.settle()
    world.stores["a"].identity = "another id"
    found = checked(link)[1].entries
    assert [(finding.severity, finding.what) for finding in found] == [
        (Severity.WARNING, 'Two metastores are called "a"')
    ]


def test_a_hidden_build_of_another_calque_is_followed_by_its_events_and_not_read() -> None:
    world = Metastores(0, "a", "b", "c")
    first, second = world.link("a", "b"), world.link("b", "c")
    world.stores["a"].create_database(Database("d"))
    world.settle()
    storage = Storage((Column("x", "int"),), "file:/a/t", INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={}))
    keys = (Column("p", "string"),)
    world.stores["a"].create_table(Table("t", "d", storage=storage, partition_keys=keys, parameters={}))
    for value in ("1", "2"):
        world.storage.write(f"file:/a/t/p={value}/part-0", value.encode())
    parts = [Partition((v,), "d", "t", storage=replace(storage, location=f"file:/a/t/p={v}")) for v in ("1", "2")]
    world.stores["a"].add_partitions(T, parts)
    first.turn()
    second.capture_all()
    second.window()
    assert [event.event_type for event in world.stores["b"].events(0)][-3:] == [
        "CREATE_TABLE",
        "ADD_PARTITION",
        "ALTER_TABLE",
    ]
    assert second.replica.tables.rows[T].state == State.LIVE
    assert len(world.stores["c"].the_table(T).partitions) == 2
    assert not second.verify().differences
