"""An exception that nobody expects is a defect of calque. It sets one object aside after three attempts of the same
work, and the others go on; a fallen invariant ends the target, whatever was at hand."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from calque.core.defects import ATTEMPTS, DEFECT
from calque.core.formats.layout import place
from calque.core.records.lifecycle import State
from calque.engine.check.check_source import check_resources, tables_of
from calque.engine.check.findings import Findings
from calque.engine.verify.verify import verify
from calque.errors import Broken, Refused, Unavailable
from calque.model.hive import Database, Function, Resource
from calque.model.ledger import TableState, state_key
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.model.records import DefectiveWork, all_of
from calque.plugins.grants.ports import ForwardingPrivileges
from calque.ports.forwarding import (
    ForwardingCatalog,
    ForwardingCatalogReader,
    ForwardingEvidenceStore,
    ForwardingJournal,
    ForwardingLedger,
    ForwardingStorage,
)
from kernel.whole.test_policies import world_of as policy_world
from kernel.whole.test_staging import LARGE, SIZE, SMALL, SlowWorld
from plugins.grants.whole.test_grants import ALICE, NAME, Rig
from support.faults.defects import Defect
from support.worlds.gapped import add, create, world_of
from support.worlds.histories import differences
from support.worlds.worlds import World

Place = Callable[[World, Defect], None]
BROKEN = Broken("An invariant fell")
VICTIM, OTHER = TableName("d1", "t0"), TableName("d1", "t1")


def source_catalog(world: World, defect: Defect) -> None:
    world.source_side = replace(world.source_side, catalog=ForwardingCatalogReader(world.source_side.catalog, defect))


def source_storage(world: World, defect: Defect) -> None:
    world.source_side = replace(world.source_side, storage=ForwardingStorage(world.source_side.storage, defect))


def journal(world: World, defect: Defect) -> None:
    world.source_side = replace(world.source_side, journal=ForwardingJournal(world.source_side.journal, defect))


def evidence(world: World, defect: Defect) -> None:
    world.source_side = replace(world.source_side, evidence=ForwardingEvidenceStore(world.source_side.evidence, defect))


def target_catalog(world: World, defect: Defect) -> None:
    world.side = replace(world.side, catalog=ForwardingCatalog(world.side.catalog, defect))


def target_storage(world: World, defect: Defect) -> None:
    world.side = replace(world.side, storage=ForwardingStorage(world.side.storage, defect))


def ledger(world: World, defect: Defect) -> None:
    world.side = replace(world.side, ledger=ForwardingLedger(world.ledger, defect))


def with_defect(world: World, place: Place, defect: Defect) -> Defect:
    """Another process, which meets the error once the defect is on."""
    place(world, defect)
    world.background.waiting.clear()
    world.replica = world.new_replica()
    world.open()
    return defect


def about(*texts: str) -> Callable[[tuple[Any, ...]], bool]:
    """Whether a call's arguments name the victim alone, in one of its texts."""
    return lambda arguments: any(text in repr(arguments) for text in texts) and "t1" not in repr(arguments)


OF_VICTIM = about("'t0'", "d1.db/t0", "d1/t0")


def go_on(world: World, rounds: int = 20) -> None:
    for _ in range(rounds):
        world.capture_all()
        world.background.run()
        world.window()
        world.clock.now += 2_000_000_000


def aside(world: World) -> dict[str, str]:
    """Why what is set aside is."""
    rows = world.ledger.tables().values()
    return {".".join(state_key(row)[1:]): row.reason for row in rows if row.state is QUARANTINED}


QUARANTINED = TableState.QUARANTINED


def assert_ends(world: World, error: Exception) -> None:
    """The error ends the target, and no table is set aside."""
    with pytest.raises(type(error)) as raised:
        go_on(world)
    assert raised.value is error
    assert aside(world) == {}


def change(world: World) -> None:
    """Something happens to the victim, and the same to another."""
    for name in (VICTIM.table, OTHER.table):
        add(world, name, "9")


# Broken


@pytest.mark.parametrize(
    ("place", "method"),
    [
        (source_catalog, "table"),
        (source_storage, "list"),
        (target_catalog, "create_table"),
        (target_storage, "copy"),
        (ledger, "put_tables"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_fallen_invariant_in_an_exact_read_ends_the_target(place: Place, method: str) -> None:
    world = world_of(opened=False)
    with_defect(world, place, Defect(method, BROKEN)).on = True
    assert_ends(world, BROKEN)


def test_a_fallen_invariant_while_a_landed_table_is_taken_up_ends_the_target() -> None:
    world = world_of(opened=False)
    world.open()
    world.background.run()
    with_defect(world, target_catalog, Defect("table", BROKEN)).on = True
    assert_ends(world, BROKEN)


@pytest.mark.parametrize("method", ["headers", "constraints"])
def test_a_fallen_invariant_in_a_bulk_comparison_ends_the_target(method: str) -> None:
    world = world_of()
    defect = with_defect(world, source_catalog, Defect(method, BROKEN))
    world.writer.source.create_database(Database("e1"))
    world.lose()
    world.window()
    defect.on = True
    assert_ends(world, BROKEN)


def test_a_fallen_invariant_in_a_window_ends_the_target() -> None:
    world = world_of()
    with_defect(world, target_catalog, Defect("add_partitions", BROKEN)).on = True
    change(world)
    assert_ends(world, BROKEN)


def test_a_fallen_invariant_in_a_copy_beside_the_windows_ends_the_target() -> None:
    world = SlowWorld()
    defect = with_defect(world, target_storage, Defect("copy", BROKEN))
    world.insert(LARGE, b"x" * SIZE)
    world.insert(SMALL, b"x")
    world.go_on()
    assert (world.shows(LARGE), world.shows(SMALL)) == (0, 1)
    defect.on = True
    assert_ends(world, BROKEN)


@pytest.mark.parametrize("error", [MemoryError(), OSError(24, "Too many open files")], ids=["memory", "descriptors"])
def test_what_the_machine_lacks_is_no_tables_fault(error: Exception) -> None:
    world = world_of()
    with_defect(world, target_catalog, Defect("add_partitions", error)).on = True
    change(world)
    assert_ends(world, error)


# One object's trouble is its own

ERRORS = pytest.mark.parametrize(
    "error", [KeyError("d1"), RecursionError("deep")], ids=lambda error: type(error).__name__
)


@ERRORS
@pytest.mark.parametrize(
    ("place", "method"),
    [
        (source_catalog, "table"),
        (source_catalog, "partitions"),
        (source_catalog, "few_partitions"),
        (source_catalog, "constraints"),
        (source_catalog, "statistics"),
        (source_storage, "list"),
        (target_catalog, "table"),
        (target_catalog, "create_table"),
        (target_catalog, "set_statistics"),
        (target_storage, "copy"),
        (target_storage, "publish"),
        (target_storage, "list"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_defect_in_an_exact_read_is_its_tables_own(place: Place, method: str, error: Exception) -> None:
    world = world_of(opened=False)
    with_defect(world, place, defect := Defect(method, error, about=OF_VICTIM)).on = True
    go_on(world, 40)
    if defect.met:
        assert [*aside(world)] == [str(VICTIM)]
        assert DEFECT in aside(world)[str(VICTIM)]
        assert type(error).__name__ in aside(world)[str(VICTIM)]
    assert world.replica.tables.state(OTHER) is State.LIVE
    defect.on = False
    world.replica.reads.reread(lambda name: name == VICTIM, "released", {State.QUARANTINED})
    world.settle()
    assert (world.problems, differences(world), aside(world)) == ([], [], {})
    assert all_of(world.ledger.records(), DefectiveWork) == []


@ERRORS
@pytest.mark.parametrize(
    ("place", "method"),
    [
        (source_storage, "list"),
        (source_storage, "modified"),
        (target_catalog, "table"),
        (target_catalog, "partitions"),
        (target_catalog, "add_partitions"),
        (target_catalog, "alter_partitions"),
        (target_storage, "copy"),
        (target_storage, "publish"),
        (target_storage, "children"),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_defect_in_a_window_is_its_tables_own(place: Place, method: str, error: Exception) -> None:
    world = world_of()
    with_defect(world, place, defect := Defect(method, error, about=OF_VICTIM)).on = True
    change(world)
    go_on(world, 40)
    if defect.met:
        assert [*aside(world)] in ([str(VICTIM)], [])
    assert world.replica.tables.state(OTHER) is State.LIVE
    assert world.replica.epochs.position() == world.source.current()
    defect.on = False
    world.replica.reads.reread(lambda name: name == VICTIM, "released", {State.QUARANTINED})
    world.settle()
    assert (world.problems, differences(world), aside(world)) == ([], [], {})


@ERRORS
@pytest.mark.parametrize(("place", "method"), [(journal, "events"), (evidence, "evidence")])
def test_a_defect_in_what_was_captured_of_one_event_is_its_tables_own(
    place: Place, method: str, error: Exception
) -> None:
    world = world_of()
    add(world, VICTIM.table, "9")
    at = world.source.current()
    with_defect(world, place, defect := Defect(method, error, about=lambda arguments: str(at) in repr(arguments)))
    defect.on = True
    add(world, OTHER.table, "9")
    go_on(world, 40)
    assert [*aside(world)] in ([str(VICTIM)], [])
    assert world.replica.tables.state(OTHER) is State.LIVE
    assert world.replica.epochs.position() == world.source.current()


def test_a_defect_is_tried_three_times_over_restarts(caplog: pytest.LogCaptureFixture) -> None:
    world = world_of()
    defect = Defect("add_partitions", KeyError("p"), on=True, about=OF_VICTIM)
    change(world)
    world.capture_all()
    for attempt in range(1, ATTEMPTS + 1):
        assert aside(world) == {}
        with_defect(world, target_catalog if attempt == 1 else lambda *_: None, defect)
        world.window()
        assert defect.met == attempt
    world.window()
    reason = aside(world)[str(VICTIM)]
    assert (DEFECT in reason, "KeyError" in reason, "defects.py" in reason) == (True, True, True)
    logged = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(logged) == ATTEMPTS
    assert all(record.exc_info and record.exc_info[0] is KeyError for record in logged)


def test_a_refusal_that_can_not_change_is_tried_once() -> None:
    world = world_of()
    defect = Defect("add_partitions", Refused("It is too much"), on=True, about=OF_VICTIM)
    with_defect(world, target_catalog, defect)
    change(world)
    world.capture_all()
    world.window()
    assert (defect.met, [*aside(world)]) == (1, [str(VICTIM)])


@pytest.mark.parametrize("method", ["create_database", "database"])
def test_a_defect_in_a_databases_work_is_its_own(method: str) -> None:
    world = world_of()
    with_defect(world, target_catalog, Defect(method, KeyError("x"), on=True, about=lambda one: "d7" in repr(one)))
    world.writer.source.create_database(Database("d7"))
    add(world, OTHER.table, "9")
    go_on(world)
    assert [*aside(world)] == ["d7."]
    assert world.replica.epochs.position() == world.source.current()


@pytest.mark.parametrize("method", ["create_function", "function"])
def test_a_defect_in_a_functions_work_is_its_own(method: str) -> None:
    world = world_of()
    with_defect(world, target_catalog, Defect(method, KeyError("x"), on=True, about=lambda one: "'f1'" in repr(one)))
    world.writer.source.create_function(Function("f1", "d1", "x.Y"))
    world.writer.source.create_function(Function("f2", "d1", "x.Y"))
    go_on(world)
    assert [*aside(world)] == ["d1.f1"]
    assert world.target_store.functions("d1") == ["f2"]
    assert world.replica.epochs.position() == world.source.current()


@pytest.mark.parametrize("method", ["headers", "constraints"])
def test_a_defect_in_a_bulk_comparison_costs_its_table_a_read(method: str) -> None:
    world = world_of(2, 1)
    defect = with_defect(world, source_catalog, Defect(method, KeyError("x"), about=OF_VICTIM))
    create(world, "new")
    world.lose()
    world.window()
    defect.on = True
    go_on(world)
    assert {*aside(world)} <= {str(VICTIM)}
    assert world.replica.tables.state(OTHER) is State.LIVE


def test_a_defect_in_a_copy_beside_the_windows_is_its_tables_own() -> None:
    world = SlowWorld()
    defect = with_defect(world, target_storage, Defect("copy", KeyError("x"), about=lambda one: "large" in repr(one)))
    world.insert(LARGE, b"x" * SIZE)
    world.insert(SMALL, b"x")
    world.go_on()
    defect.on = True
    go_on(world)
    assert ([*aside(world)], world.shows(SMALL)) == ([str(LARGE)], 1)


def test_verify_goes_on_with_the_next_object_and_names_the_one_with_a_defect() -> None:
    world = world_of()
    source_catalog(world, Defect("table", KeyError("x"), on=True, about=OF_VICTIM))
    verification = verify(world.source_side, world.side, data="none")
    assert [skipped.table for skipped in verification.set_aside] == [VICTIM]
    assert DEFECT in verification.set_aside[0].reason
    assert verification.compared.tables == 4
    assert verification.differences == ()


def test_check_goes_on_with_the_next_table_and_says_that_not_all_was_looked_at() -> None:
    world, findings = world_of(), Findings()
    source_catalog(world, Defect("table", KeyError("x"), on=True, about=OF_VICTIM))
    tables = tables_of(world.source_side.catalog, [world.side.admission], findings)
    assert tables.keys() == {TableName("d1", name) for name in ("t1", "t2", "t3", "plain")}
    assert (findings.unreachable, findings.ok) == (True, False)
    assert [DEFECT in finding.what and str(VICTIM) in finding.what for finding in findings.entries] == [True]


def test_check_counts_functions_whose_resources_lie_where_nothing_is_read() -> None:
    world, findings = world_of(), Findings()
    for name, uri in (("f1", "file:/etc/shadow"), ("f2", "file:/data/f.jar"), ("f3", "ivy://a:b:1"), ("f4", "")):
        world.writer.source.create_function(Function(name, "d1", "x.Y", resources=(Resource(1, uri),)))
    source_catalog(world, Defect("function", KeyError("x"), on=True, about=about("'f4'")))

    def why_not_read(uri: str) -> Refused | None:
        place(uri)
        return Refused("It is not read") if uri.startswith("file:/etc") else None

    check_resources(why_not_read, world.source_side.catalog, [world.side.admission], findings)
    texts = [finding.what for finding in findings.entries]
    assert [text for text in texts if DEFECT not in text] == ["Functions are set aside for their resources: d1.f1"]
    assert [DEFECT in text and "d1.f4" in text for text in texts].count(True) == 1


def test_a_defect_while_a_policys_new_name_is_given_is_its_tables_own() -> None:
    first = Policy("dr", "hq", include=("d1.*",), warehouse="file:/target")
    world = policy_world(first, replace(first, rename={"d1": "e1"}))
    defect = Defect("alter_table", KeyError("x"), on=True, about=lambda one: "'a'" in repr(one[:1]))
    target_catalog(world, defect)
    for _ in range(ATTEMPTS - 1):
        with pytest.raises(Unavailable):
            world.change(1)
    world.change(1)
    defect.on = False
    world.settle()
    assert (defect.met, aside(world)) == (ATTEMPTS, {})
    assert {"a", "b"} <= {*world.target_store.tables("e1")}


def test_a_defect_in_the_grants_of_one_object_leaves_those_of_others() -> None:
    rig = Rig()
    other = TableName("d1", "u")
    rig.create(other)
    for name in (NAME, other):
        rig.source.grant(name, frozenset({ALICE}))
    defect = Defect("grant", KeyError("x"), on=True, about=lambda one: "'t'" in repr(one))
    rig.at_target = ForwardingPrivileges(rig.at_target, defect)
    assert rig.follow() == 1
    assert (rig.target.grants([TableName("e1", "u")])[TableName("e1", "u")], defect.met) == (frozenset({ALICE}), 1)
