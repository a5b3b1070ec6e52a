"""`calque plan`: what it foresees is what the next window does, and looking changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from calque.adapters.delta.journal import DeltaJournal
from calque.adapters.delta.ledger import DeltaLedger
from calque.app import APP
from calque.cli import main
from calque.commands.plan import document, hop_rows, operation_of, show, stops
from calque.control.requests import leave_request
from calque.core.events.rows import rows_of_events
from calque.core.plan.cost import Cost, calls_of, costs
from calque.core.plan.limits import HIDDEN_BATCH
from calque.engine.replica.dry_run import ExplainedCall, ExplainedWindow, explain_next_window
from calque.engine.window.result import WindowResult
from calque.errors import Unavailable
from calque.model.files import File, Listing
from calque.model.hive import Column, Database, Function, Partition, Resource, SerDe, Storage, Table
from calque.model.ledger import Epoch, TableRow, TableState
from calque.model.names import TableName
from calque.model.plan import (
    AddPartitions,
    AlterPartitions,
    AlterTable,
    CommitTable,
    Data,
    DropPartitions,
    Head,
    HiddenBuild,
    Hop,
    Part,
    PrepareFlipSweep,
    Publish,
    Rebuild,
    Version,
)
from calque.model.policy import Limits, Policy
from calque.model.requests import Action
from support.judges.documents import read_document
from support.worlds.worlds import INPUT, OUTPUT, SERDE, World

BLAH = TableName("d1", "blah")
OUT = (TableState.UNKNOWN, TableState.READING, TableState.STAGING)
AT = "2024-01-01T00:00:00.000+00:00"


def plan(world: World, upto: int | None = None, most: int = 100_000) -> ExplainedWindow:
    return explain_next_window(world.source_side, world.side, lambda: world.begin, upto, most)


def everything(world: World) -> object:
    """What looking must not change."""
    files = {path: world.storage.read(path) for path in world.storage.paths()}
    epochs = [(epoch, world.ledger.objects(epoch.epoch)) for epoch in world.ledger.epochs()]
    at = world.target_store.current(), world.target_states(), world.target_store.databases()
    ledger = dict(world.ledger.tables()), world.ledger.records()
    return at, files, epochs, ledger, world.evidence.considered(), world.background.waiting[:]


def captured(world: World) -> None:
    """The journal has all events, and evidence is as good as it gets."""
    for _ in range(5):
        world.capture_all()


def next_window(world: World) -> WindowResult:
    before = len(world.windows)
    world.window_alone()
    assert len(world.windows) == before + 1
    return world.windows[-1]


def begun(seed: int = 1, policy: Policy | None = None) -> World:
    """A world with an empty database, and a target that follows it."""
    world = World(seed, policy=policy)
    world.source.create_database(Database("d1"))
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    world.open()
    captured(world)
    world.settle()
    return world


def create_blah(world: World) -> int:
    storage = Storage((Column("x", "int"),), None, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={}))
    keys = (Column("p", "string"),)
    world.source.create_table(Table(*reversed(BLAH), "me", storage=storage, partition_keys=keys, parameters={}))
    captured(world)
    return world.source.current()


def insert(world: World, value: str, size: int) -> int:
    """Into a partition, which it adds where it is missing."""
    stored = world.source.the_table(BLAH)
    location = f"{stored.table.storage.location}/p={value}"
    world.writer.files += 1
    path = f"{location}/part-{world.writer.files:05d}"
    world.storage.write(path, bytes(size))
    if (value,) in stored.partitions:
        world.source.insert(BLAH, [path], values=(value,))
    else:
        storage = Storage((Column("x", "int"),), location, INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={}))
        world.source.add_partitions(BLAH, [Partition((value,), *BLAH, storage=storage, parameters={})])
    captured(world)
    return world.source.current()


def hops(found: ExplainedWindow) -> list[tuple[str, int, int]]:
    return [(operation_of(hop), hop.to_event, hop.objects) for group in found.groups for hop in group.plan.hops]


def numbers(found: ExplainedWindow) -> tuple[int, int]:
    """Files and bytes."""
    found_costs = [cost for group in found.groups for cost in group.costs]
    return sum(cost.files for cost in found_costs), sum(cost.bytes for cost in found_costs)


def bridged(window: WindowResult) -> bool:
    return any(hop.bridge for done in window.plans for hop in done.hops)


@pytest.mark.parametrize("shown", [0, 1, 2, 3])
def test_the_example_s_hops_depend_on_the_state_that_the_target_shows(shown: int) -> None:
    world = begun()
    ids = []
    steps = [
        lambda: create_blah(world),
        lambda: insert(world, "a", 5),
        lambda: insert(world, "b", 10),
        lambda: insert(world, "a", 15),
    ]
    for number, step in enumerate(steps, start=1):
        ids.append(step())
        if number <= shown:
            world.settle()
    last = ids[-1]
    expected = {
        0: ([("hidden_build", last, 2)], ids[:3], (3, 30)),
        1: ([("add_partitions", last, 2)], ids[1:3], (3, 30)),
        2: ([("add_partitions", ids[2], 1), ("publish", last, 1)], [], (2, 25)),
        3: ([("publish", last, 1)], [], (1, 15)),
    }[shown]
    found = plan(world)
    [group] = found.groups
    assert (hops(found), list(group.plan.stops_passed), numbers(found)) == expected
    assert (found.events, found.span.upto, group.complete) == (4 - shown, last, True)


@pytest.mark.parametrize("atomicity", ["listing", "rows"])
@pytest.mark.parametrize("seed", range(8))
def test_the_next_window_makes_the_hops_that_were_foreseen_and_looking_changed_nothing(
    seed: int, atomicity: str
) -> None:
    policy = Policy("dr", "hq", ("d*.*",), rename={"d2": "d2_dr"}, warehouse="file:/target", atomicity=atomicity)
    world = World(seed, policy=policy, pins=True)
    world.write(30)
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    world.open()
    world.settle()
    hops_seen = 0
    for _ in range(8):
        for _ in range(world.rng.randrange(1, 9)):
            world.write()
            captured(world)
        if world.replica.epochs.position() == world.source.current():
            continue
        before = everything(world)
        found = plan(world)
        assert everything(world) == before
        done = next_window(world)
        assert (found.span, found.events) == (done.span, done.events)
        assert [group.plan for group in found.groups] == done.plans
        if not bridged(done):
            assert numbers(found) == (done.applied.files, done.applied.bytes)
        hops_seen += sum(len(done_plan.hops) for done_plan in done.plans)
        assert [row.table for row in found.reads] == [name.table for name in world.replica.tables.in_state(*OUT)]
        world.settle()
    assert hops_seen > 0


@pytest.mark.parametrize("seed", range(6))
def test_calls_are_counted_as_they_are_made(seed: int) -> None:
    world = World(seed)
    world.write(30)
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    world.open()
    world.settle()
    for _ in range(6):
        for _ in range(3):
            world.write()
            captured(world)
        if world.replica.epochs.position() == world.source.current():
            continue
        found = plan(world)
        databases = sum(item.operation != "create_database" for item in found.other_calls)
        done = next_window(world)
        if not bridged(done) and len(found.other_calls) == databases:
            assert sum(group.calls for group in found.groups) + databases == done.applied.calls
        world.settle()


def test_a_target_that_was_never_begun_with_is_foreseen_to_read_every_table() -> None:
    world = World(5)
    while len(world.source_states()) < 3:
        world.write()
    world.begin = world.source.current()
    before = everything(world)
    found = plan(world)
    assert everything(world) == before
    assert not found.began
    assert {TableName(row.database, row.table) for row in found.reads} == set(world.source_states())
    assert {row.reason for row in found.reads} == {"bootstrap"}
    made = {str(item.name) for item in found.other_calls if item.operation == "create_database"}
    assert made == set(world.source.databases()) & {"d1", "d2"}


def test_a_bootstrap_that_died_is_foreseen_to_read_what_is_left() -> None:
    world = World(5)
    while len(world.source_states()) < 3:
        world.write()
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    world.open()
    found = plan(world)
    assert found.began
    assert {TableName(row.database, row.table) for row in found.reads} == set(world.source_states())


def test_databases_and_functions_are_named_as_at_the_source_in_the_order_of_their_events() -> None:
    world = begun()
    world.source.create_database(Database("d2"))
    made = world.source.current()
    world.source.create_function(Function("f", "d1", "com.example.F"))
    world.source.alter_database("d1", Database("d1", "said"))
    captured(world)
    found = plan(world)
    assert [(str(item.name), item.operation, item.to_event) for item in found.other_calls] == [
        ("d2", "create_database", made),
        ("d1.f", "create_function", made + 1),
        ("d1", "alter_database", made + 2),
    ]
    world.settle()
    assert plan(world).other_calls == ()


def test_a_function_whose_jar_the_target_does_not_have_is_made_and_its_jar_is_not_copied_by_looking() -> None:
    world = begun()
    world.storage.write("file:/jars/f.jar", b"classes")
    resources = (Resource(1, "file:/jars/f.jar"),)
    world.source.create_function(Function("f", "d1", "com.example.F", resources=resources))
    made = world.source.current()
    captured(world)
    before = everything(world)
    assert plan(world).other_calls == (ExplainedCall(TableName("d1", "f"), "create_function", made),)
    assert everything(world) == before


def test_a_database_that_still_holds_something_at_the_target_is_not_said_to_be_dropped() -> None:
    world = begun()
    create_blah(world)
    world.settle()
    foreign = Table("foreign", "d1", parameters={"EXTERNAL": "TRUE"})
    world.target_store.create_table(foreign)
    world.source.drop_database("d1", cascade=True)
    captured(world)
    found = plan(world)
    assert ([hop[0] for hop in hops(found)], found.other_calls) == (["drop_table"], ())
    world.target_store.drop_table(TableName("d1", "foreign"))
    assert [(str(call.name), call.operation) for call in plan(world).other_calls] == [("d1", "drop_database")]


def test_a_table_that_can_not_be_folded_is_foreseen_to_be_read_and_a_foreign_one_to_be_quarantined() -> None:
    world = begun()
    storage = Storage((Column("x", "int"),), "file:/x", INPUT, OUTPUT, serde=SerDe(class_name=SERDE, parameters={}))
    world.target_store.create_table(Table(*reversed(BLAH), storage=storage, parameters={"EXTERNAL": "TRUE"}))
    create_blah(world)
    found = plan(world)
    [row] = found.quarantined
    assert (row.table, found.groups) == ("blah", ())
    assert "is not ours" in row.reason
    assert world.ledger.tables().get(("table", *BLAH)) is None


def test_a_drop_that_the_policy_keeps_is_no_call() -> None:
    policy = Policy("dr", "hq", include=("d*.*",), warehouse="file:/target", drops="keep")
    world = begun(policy=policy)
    create_blah(world)
    world.settle()
    world.source.drop_table(BLAH)
    captured(world)
    found = plan(world)
    [group] = found.groups
    assert ([hop[0] for hop in hops(found)], group.calls, group.keeps) == (["drop_table"], 0, True)
    assert 'not done: drops = "keep"' in str(hop_rows(group)[0][-1])
    assert next_window(world).applied.calls == 0


def test_states_without_known_files_are_told_apart_from_those_with_a_cheaper_way_past() -> None:
    world = begun()
    create_blah(world)
    world.settle()
    first = insert(world, "a", 5)
    stored = world.source.the_table(BLAH)
    path = f"{stored.table.storage.location}/p=a/part-{world.writer.files:05d}"
    lost = []
    for size in (6, 7):
        world.storage.remove([path])
        world.storage.write(path, bytes(size))
        world.source.insert(BLAH, [path], values=("a",), replace=True)
        lost.append(world.source.current())
    captured(world)
    [group] = plan(world).groups
    assert group.plan.stops_passed == (first, lost[0])
    assert group.plan.unvisitable == (lost[0],)
    assert stops(group) == [
        f"d1.blah: passes over the states after event {first}: fewer hops lead past them",
        f"d1.blah: passes over the states after event {lost[0]}: their files are not exactly known",
    ]


def test_a_table_whose_newest_files_are_not_known_is_foreseen_to_wait() -> None:
    world = begun()
    create_blah(world)
    world.settle()
    stored = world.source.the_table(BLAH)
    storage = Storage((Column("x", "int"),), f"{stored.table.storage.location}/p=a", INPUT, OUTPUT)
    world.source.add_partitions(BLAH, [Partition(("a",), *BLAH, storage=storage, parameters={})])
    events = world.source.events(world.capture.last())
    world.capture.append(rows_of_events(events))
    [group] = plan(world).groups
    assert (group.complete, group.plan.hops) == (False, ())
    assert "waits at event" in stops(group)[-1]


def test_a_window_takes_no_more_events_than_its_limit_and_upto_ends_it() -> None:
    world = begun()
    first = create_blah(world)
    insert(world, "a", 1)
    insert(world, "b", 1)
    assert plan(world, most=1).span.upto == first
    assert hops(plan(world, upto=first)) == [("create_table", first, 1)]
    assert hops(plan(world, most=2)) == [("hidden_build", first + 1, 1)]
    world.settle()
    assert (plan(world, upto=first).span.upto, plan(world).events) == (first + 2, 0)


def test_a_target_that_shows_what_the_journal_does_not_have_is_unavailable() -> None:
    world = begun()
    create_blah(world)
    world.settle()
    at = world.side.admission.name_at_target(BLAH)
    there = world.target_store.the_table(at).table
    parameters = {**(there.parameters or {}), "calque.event": "9999"}
    insert(world, "a", 1)
    world.target_store.alter_table(at, Table(**{**fields(there), "parameters": parameters}))
    with pytest.raises(Unavailable, match="shows event 9999, which the journal does not have"):
        plan(world)


def fields(table: Table) -> dict[str, Any]:
    return {name: getattr(table, name) for name in Table.__dataclass_fields__}


# What hops cost


def content(event_id: int, place: str, *sizes: int) -> tuple[Data, Listing]:
    files = tuple(File(f"f{number}", size, number) for number, size in enumerate(sizes))
    return Data(event_id, place), Listing(place, files)


def test_files_that_a_rename_takes_along_are_not_copied_and_those_of_what_was_dropped_are() -> None:
    head = Head(0, Version(9))
    was, now = content(1, "/a", 3), content(9, "/a", 3, 4)
    part = Part("p=1", Version(9), now[0])
    new = TableName("d1", "new")
    hops = [
        Hop(7, AlterTable(new, BLAH, head), 1),
        Hop(9, Publish(new, "p=1", now[0], 9), 1),
        Hop(9, CommitTable(new, new, head, (("p=1", None), ("p=2", Part("p=1", Version(9), now[0])))), 2),
        Hop(9, CommitTable(new, new, head, (("p=1", Part("p=2", Version(9), now[0])), ("p=2", None))), 2),
        Hop(10, CommitTable(new, new, head, (("p=1", None),)), 1),
        Hop(11, CommitTable(new, new, head, (("p=1", part),)), 1),
        Hop(12, DropPartitions(new, ("p=1",)), 1),
        Hop(13, AddPartitions(new, (("p=1", part),)), 1),
    ]
    found = costs(hops, {(BLAH, "p=1"): was[1]}, dict([now]), Limits())
    assert found == [Cost(1), Cost(0, 1, 4), Cost(1), Cost(1), Cost(1), Cost(1, 2, 7), Cost(1), Cost(1, 2, 7)]


def test_lists_beyond_a_limit_take_several_calls() -> None:
    parts = tuple((f"p={number}", Part("", Version(1), Data(1, ""))) for number in range(5))
    names = tuple(name for name, _ in parts)
    limits = Limits(add_partitions=2, alter_partitions=3, drop_partitions=4)
    operations = (
        HiddenBuild(BLAH, Head(0, Version(1)), parts),
        AddPartitions(BLAH, parts),
        AlterPartitions(BLAH, parts),
        DropPartitions(BLAH, names),
        PrepareFlipSweep(BLAH, parts[:1], parts[1:3], names[3:]),
        Rebuild(BLAH, BLAH, Head(0, Version(1)), parts),
    )
    assert [calls_of(operation, limits) for operation in operations] == [5, 3, 2, 2, 4, 7]


def test_a_large_table_is_built_by_several_calls() -> None:
    parts = tuple((f"p={number}", Part("", Version(1), Data(1, ""))) for number in range(2 * HIDDEN_BATCH + 1))
    assert calls_of(HiddenBuild(BLAH, Head(0, Version(1)), parts), Limits()) == 2 + 3
    assert calls_of(AddPartitions(BLAH, parts), Limits()) == 1


# The command


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration whose metastores do not answer."""
    monkeypatch.chdir(tmp_path)
    text = '[source]\nname = "hq"\nmetastore = "thrift://127.0.0.1:1"\n[targets.dr]\n'
    text += 'metastore = "thrift://127.0.0.1:2"\nwarehouse = "dr"\n'
    (tmp_path / "calque.toml").write_text(text)
    return tmp_path


def journal_of(world: World, folder: Path) -> int:
    """The source's whole log in the state folder; its last event."""
    events = world.source.events(0)
    DeltaJournal(f"{folder}/state/journal").append(rows_of_events(events))
    APP.wiring(APP.load("calque.toml")).control.put("journal", {"source": "hq", "after": 0})
    return events[-1].event_id


def shown_at(event_id: int, folder: Path, *rows: TableRow) -> None:
    """The target's ledger has an epoch there."""
    epoch = Epoch(1, event_id, 0, AT, "bootstrap")
    DeltaLedger(f"{folder}/state/ledgers/dr").publish(epoch, [], rows)


def below(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_a_plan_is_one_document_and_leaves_no_trace(configured: Path, capsys: pytest.CaptureFixture[str]) -> None:
    last = journal_of(begun(), configured)
    lost = TableRow("d1", "x", TableState.UNKNOWN, 1, "its files stayed unknown", 1)
    bad = TableRow("d1", "y", TableState.QUARANTINED, None, "ACID", 1)
    shown_at(last, configured, lost, bad)
    leave_request(APP.wiring(APP.load("calque.toml")), "dr", Action.RELEASE, ("d1.none",))
    before = below(configured)
    assert main(["plan", "--json"]) == 0
    out, err = capsys.readouterr()
    assert (read_document("plan", out), err) == (
        {
            "target": "dr",
            "from": last,
            "upto": last,
            "events": 0,
            "groups": [
                {
                    "tables": ["d1.x"],
                    "events": 0,
                    "stops_passed": [],
                    "hops": [],
                    "calls": 0,
                    "files": 0,
                    "bytes": 0,
                    "reads": [{"table": "d1.x", "since_event": 1, "reason": "its files stayed unknown"}],
                }
            ],
            "databases_and_functions": [],
            "quarantined": [{"table": "d1.y", "reason": "ACID"}],
            "hops": 0,
            "calls": 0,
        },
        "",
    )
    assert below(configured) == before


def test_what_operators_asked_for_is_in_the_plan_and_is_still_asked_for(
    configured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    last = journal_of(begun(), configured)
    shown_at(last, configured, TableRow("d1", "y", TableState.QUARANTINED, None, "ACID", 1))
    leave_request(APP.wiring(APP.load("calque.toml")), "dr", Action.RELEASE, ())
    for _ in range(2):
        assert main(["plan", "--json"]) == 0
        [group] = read_document("plan", capsys.readouterr().out)["groups"]
        assert group["reads"] == [{"table": "d1.y", "since_event": last, "reason": "asked for by release"}]


def test_an_event_that_the_journal_does_not_have_is_refused(
    configured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    todo = "Let `calque run` capture it, name an earlier event, or leave --upto out.\n"
    assert main(["plan", "--upto", "7"]) == 65
    said = f"calque: Event 7 is not in the journal. It has no events yet. {todo}"
    assert capsys.readouterr() == ("", said)
    last = journal_of(begun(), configured)
    assert main(["plan", "--upto", "700", "--json"]) == 65
    out, err = capsys.readouterr()
    assert err == f"calque: Event 700 is not in the journal. It ends at event {last}. {todo}"
    assert read_document("plan", out)["error"]["code"] == 65


def test_metastores_that_are_needed_and_do_not_answer_are_75(
    configured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plan", "--json"]) == 75
    out, err = capsys.readouterr()
    assert (read_document("plan", out)["error"]["kind"], err.count("\n")) == ("unavailable", 1)
    assert err.startswith("calque: No metastore answers at thrift://127.0.0.1:1.")
    world = begun()
    position = world.source.current()
    create_blah(world)
    journal_of(world, configured)
    shown_at(position, configured)
    assert main(["plan"]) == 75
    assert capsys.readouterr().err.startswith("calque: No metastore answers at thrift://127.0.0.1:2.")


def test_people_are_told_what_is_done_what_is_passed_over_and_why(
    configured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = begun()
    position = world.source.current()
    create_blah(world)
    insert(world, "a", 5)
    insert(world, "b", 10)
    last = insert(world, "a", 15)
    journal_of(world, configured)
    wiring = APP.wiring(APP.load("calque.toml"))
    wiring.control.put("paused/dr", {})
    show(wiring, plan(world, upto=last - 1))
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    passed = f"events {last - 3}, {last - 2}"
    world.settle()
    added = insert(world, "c", 1)
    show(wiring, plan(world))
    assert capsys.readouterr().out.splitlines()[-1].split()[:4] == ["d1.blah", str(added), "add_partitions", "p=c"]
    assert lines == [
        f"dr: from event {position} to {last - 1}: 3 events, 1 hop, 3 calls, 2 files (15 bytes) to copy",
        f"dr: the journal goes on to event {last}, for later windows",
        "dr: it is paused, and nothing happens before `calque resume --target dr`",
        "table to event operation objects calls files bytes remark",
        f"d1.blah {last - 1} hidden_build 2 3 2 15 -",
        f"d1.blah: passes over the states after {passed}: fewer hops lead past them",
    ]


def test_the_document_has_the_contract_s_keys_for_each_group_and_hop(configured: Path) -> None:
    world = begun()
    create_blah(world)
    insert(world, "a", 5)
    world.settle()
    added = insert(world, "b", 10)
    last = insert(world, "a", 15)
    journal_of(world, configured)
    [group] = document(APP.wiring(APP.load("calque.toml")), plan(world))["groups"]
    same = {"table": "d1.blah", "objects": 1, "bridge": False, "in_parts": 1, "files": 1}
    assert group == {
        "tables": ["d1.blah"],
        "events": 2,
        "stops_passed": [],
        "stops_without_files": [],
        "shows": last,
        "complete": True,
        "hops": [
            {"to_event": added, "operation": "add_partitions", "calls": 1, "bytes": 10} | same,
            {"to_event": last, "operation": "publish", "calls": 0, "bytes": 15} | same,
        ],
        "kept": False,
        "calls": 1,
        "files": 2,
        "bytes": 25,
        "reads": [],
    }
