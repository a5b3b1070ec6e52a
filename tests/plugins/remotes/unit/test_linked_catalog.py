"""A link outlives what it stands for: what the engine's calls do to local objects that are links."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from calque.adapters.control import ControlStore
from calque.core.images.image import EVENT, INCARNATION, SOURCE
from calque.core.images.own_parameters import CONNECTED_TO
from calque.engine.failpoints import FailpointGuard
from calque.errors import Broken, Refused
from calque.model.hive import Column, Database, Partition, Storage, Table
from calque.model.names import TableName
from calque.plugins.remotes.core.definitions import URIS, VIA
from calque.plugins.remotes.core.objects import unfilled_table
from calque.plugins.remotes.engine.linked_catalog import linked_parts, put_back
from calque.plugins.remotes.wiring.missing_links import RecordedMissingLinks
from calque.ports import Catalog, Conflict, parts_of
from calque.ports.forwarding import ForwardingCatalog
from support.memory.metastore import HIVE_3, HIVE_4, MemoryCatalog, MemoryMetastore

LINK = {CONNECTED_TO: "shop.t", VIA: "thrift", URIS: "thrift://far:9083"}
OTHER = {CONNECTED_TO: "shop.u", VIA: "thrift", URIS: "thrift://far:9083"}
DATABASE = {CONNECTED_TO: "shop", VIA: "thrift", URIS: "thrift://far:9083"}
T, U, V = TableName("here", "t"), TableName("here", "u"), TableName("all", "v")
KEY = Column("p", "string")


def replica(name: TableName, *keys: Column, event: int = 7, **more: str) -> Table:
    """As the engine makes it."""
    return Table(
        name.table,
        name.database,
        storage=Storage((Column("x", "int"),), "file:/far/t", "in", "out", parameters={}),
        partition_keys=keys,
        parameters={"EXTERNAL": "TRUE", SOURCE: f"remote.far:{name}", EVENT: str(event), INCARNATION: "1", **more},
        type="EXTERNAL_TABLE",
    )


def view(name: TableName, text: str) -> Table:
    return replace(replica(name), type="VIRTUAL_VIEW", view_original_text=text, view_expanded_text=text)


class Died(BaseException):
    """Nobody catches it, as no process survives its death."""


class World:
    """A local catalog with two links and a linked database, none of them filled; `made` are directories. Who writes
    dies before the call with the number `dies_at`, from 0."""

    def __init__(self, folder: Path, habits: object = HIVE_3) -> None:
        self.dies_at, self.calls = -1, 0
        self.plain = MemoryCatalog(MemoryMetastore(habits, "file:/warehouse"))  # type: ignore[arg-type]
        self.made: list[str] = []
        self.plain.create_database(Database("here", location="file:/warehouse/here.db", parameters={}))
        self.plain.create_database(Database("all", location="file:/warehouse/all.db", parameters=DATABASE))
        for name, link in ((T, LINK), (U, OTHER)):
            self.plain.create_table(unfilled_table(name, replica(name), link, f"file:/warehouse/empty/{name.table}"))
        links = {T: LINK, U: OTHER, TableName("all"): DATABASE}
        self.missing_links = RecordedMissingLinks(ControlStore(folder))
        guarded = FailpointGuard(self.hit).catalog(self.plain)
        parts = linked_parts(
            parts_of(guarded), links, lambda name: name in (T, U, V), self.made.extend, self.missing_links
        )
        self.linked = ForwardingCatalog(parts)

    def hit(self, name: str) -> None:
        if name.endswith(".before"):
            if self.calls == self.dies_at:
                raise Died
            self.calls += 1

    def parameters(self, name: TableName) -> dict[str, str]:
        table = self.plain.table(name)
        assert table is not None
        return dict(table.parameters or {})

    def location(self, name: TableName) -> str | None:
        table = self.plain.table(name)
        assert table is not None
        assert table.storage is not None
        return table.storage.location


@pytest.fixture(params=[HIVE_3, HIVE_4], ids=["3", "4"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(tmp_path, request.param)


def test_a_link_that_is_not_filled_is_missing_and_a_filled_one_has_no_parameters_of_a_link(world: World) -> None:
    assert world.linked.table(T) is None
    assert world.linked.headers("here", ["t", "u"]) == {}
    world.linked.create_table(replica(T))
    assert world.parameters(T).items() >= {**LINK, SOURCE: "remote.far:here.t"}.items()
    shown = world.linked.table(T)
    assert shown is not None
    assert not LINK.keys() & (shown.parameters or {}).keys()
    assert world.linked.headers("here", ["t", "u"]).keys() == {"t"}


def test_a_dropped_link_stays_empty_and_comes_back(world: World) -> None:
    world.linked.create_table(replica(T))
    world.linked.drop_table(T)
    assert world.linked.table(T) is None
    assert world.parameters(T) == {"EXTERNAL": "TRUE", **LINK, **volatile(world.parameters(T))}
    assert world.location(T) == "file:/warehouse/here.db/_calque_links/t"
    assert world.made == [world.location(T)]
    world.linked.create_table(replica(T, event=9))
    assert world.parameters(T)[EVENT] == "9"
    assert world.location(T) == "file:/far/t"


def test_partitions_of_a_dropped_link_go_and_other_keys_make_it_anew(world: World) -> None:
    world.linked.create_table(replica(T, KEY))
    world.linked.add_partitions(T, [Partition(("1",), *T, storage=Storage(location="file:/far/t/p=1"), parameters={})])
    world.linked.drop_table(T)
    assert not world.plain.partition_names(T)
    assert world.parameters(T).items() >= LINK.items()
    world.linked.create_table(replica(T))
    assert world.parameters(T).items() >= LINK.items()


def test_a_rename_of_the_remote_table_leaves_an_empty_link_and_fills_the_other(world: World) -> None:
    world.linked.create_table(replica(T, colour="red"))
    shown = world.linked.table(T)
    assert shown is not None
    world.linked.alter_table(T, replace(shown, name="u"))
    assert world.parameters(U).items() >= {**OTHER, "colour": "red"}.items()
    assert world.linked.table(T) is None
    assert world.parameters(T).items() >= LINK.items()


def test_a_link_that_somebody_dropped_is_not_made_again(world: World) -> None:
    world.plain.drop_table(T)
    with pytest.raises(Conflict):
        world.linked.create_table(replica(T))
    with pytest.raises(Conflict):
        world.linked.drop_table(T)


@pytest.mark.parametrize("starts_anew", [True, False])
@pytest.mark.parametrize("what", ["other keys", "dropped", "renamed in", "renamed between"])
def test_whoever_dies_between_two_calls_loses_no_link(world: World, what: str, *, starts_anew: bool) -> None:
    """Whether the links are looked after at a start, or only by who fills them: the local catalog may be away then."""
    hidden = TableName("all", "hidden")

    def prepare() -> None:
        if what == "renamed in":
            world.plain.create_table(replica(hidden, KEY))
        if what in ("dropped", "renamed between"):
            world.linked.create_table(replica(T, KEY) if what == "dropped" else replica(T))
        if what == "dropped":
            world.plain.alter_table(T, replace(present(world.plain, T), type="VIRTUAL_VIEW"))

    def act() -> None:
        if what == "other keys":
            world.linked.create_table(replica(T, KEY))
        elif what == "dropped":
            world.linked.drop_table(T)
        elif what == "renamed in":
            world.linked.alter_table(hidden, replace(present(world.plain, hidden), database=T.database, name=T.table))
        else:
            world.linked.alter_table(T, replace(present(world.linked, T), name="u"))

    prepare()
    act()
    calls, deaths = world.calls, 0
    for death in range(calls):
        for name in (T, U, hidden):
            if world.plain.table(name) is not None:
                world.plain.drop_table(name)
        for name, link in ((T, LINK), (U, OTHER)):
            world.plain.create_table(unfilled_table(name, replica(name), link, "file:/warehouse/empty"))
            world.missing_links.remove(name)
        prepare()
        world.calls, world.dies_at = 0, death
        try:
            act()
        except Died:
            deaths += 1
        world.dies_at = -1
        if starts_anew:
            put_back(world.plain, world.missing_links)
            for name, link in ((T, LINK), (U, OTHER)):
                assert world.parameters(name).items() >= link.items()
        for name in (T, U):
            if world.linked.table(name) is None:
                world.linked.create_table(replica(name, event=11))
        assert world.parameters(T).items() >= LINK.items()
        assert world.parameters(U).items() >= OTHER.items()
        put_back(world.plain, world.missing_links)
        assert not list(world.missing_links)
    assert deaths


def test_a_link_that_nobody_could_change_is_in_nobodys_hand(world: World) -> None:
    world.linked.create_table(replica(T))
    shown = present(world.linked, T)
    world.plain.drop_table(U)
    with pytest.raises(Conflict):
        world.linked.alter_table(T, replace(shown, name="u"))
    world.plain.create_table(replica(TableName("here", "taken")))
    with pytest.raises(Conflict):
        world.linked.alter_table(T, replace(shown, name="taken"))
    assert not list(world.missing_links)
    assert world.parameters(T).items() >= LINK.items()


def test_a_record_of_a_link_that_is_there_makes_none_later(world: World) -> None:
    world.missing_links.put(present(world.plain, T))
    put_back(world.plain, world.missing_links)
    world.plain.drop_table(T)
    put_back(world.plain, world.missing_links)
    assert world.plain.table(T) is None


@pytest.mark.parametrize("record", [{}, {"link": "no TJSON"}, {"link": 7}])
def test_a_record_of_a_link_that_cannot_be_read_is_told_of(tmp_path: Path, record: dict[str, object]) -> None:
    control = ControlStore(tmp_path)
    control.put("links-in-hand/1", record)  # type: ignore[arg-type]
    with pytest.raises(Broken, match="links-in-hand/1 of a link can't be read"):
        list(RecordedMissingLinks(control))


def present(catalog: Catalog, name: TableName) -> Table:
    table = catalog.table(name)
    assert table is not None
    return table


def test_links_of_others_are_neither_dropped_nor_moved(world: World) -> None:
    others = ForwardingCatalog(
        linked_parts(parts_of(world.plain), {U: OTHER}, lambda _: True, world.made.extend, world.missing_links)
    )
    world.linked.create_table(replica(T))
    with pytest.raises(Conflict):
        others.drop_table(T)
    table = others.table(T)
    assert table is not None
    with pytest.raises(Conflict):
        others.alter_table(T, replace(table, name="x"))
    with pytest.raises(Conflict):
        others.drop_database("all")


def test_a_linked_database_stays_where_it_is(world: World) -> None:
    linked, name = world.linked, "all"
    assert linked.database(name) is None
    linked.create_database(Database(name, "far", "file:/far/shop.db", {SOURCE: "remote.far:shop", EVENT: "3"}))
    made = world.plain.database(name)
    assert made is not None
    assert made.location == "file:/warehouse/all.db"
    assert (made.parameters or {}).items() >= DATABASE.items()
    shown = linked.database(name)
    assert shown is not None
    assert shown.parameters == {SOURCE: "remote.far:shop", EVENT: "3"}
    linked.alter_database(name, replace(shown, description="farther"))
    linked.create_table(replica(V))
    linked.drop_table(V)
    linked.drop_database(name)
    assert linked.database(name) is None
    left = world.plain.database(name)
    assert left is not None
    assert left.parameters == DATABASE


def test_a_view_of_tables_that_are_not_linked_is_refused(world: World) -> None:
    world.linked.create_table(view(T, "SELECT x FROM here.u"))
    for text in ("SELECT x FROM here.own", "SELECT x FROM own", "SELECT FROM FROM ("):
        with pytest.raises(Refused):
            world.linked.create_table(view(V, text))
    assert world.plain.table(V) is None


def volatile(parameters: dict[str, str]) -> dict[str, str]:
    """What the server sets by itself."""
    return {key: value for key, value in parameters.items() if key.startswith(("transient", "num", "total"))}
