"""`engine.verify.verify` on whole worlds in memory: equal worlds are equal, every tampering is found, load gives no
alarm."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace

import pytest

from calque.core.formats.layout import join
from calque.core.images.compare import ComparedCounts, Difference, DifferenceKind
from calque.engine.failpoints import EFFECTS
from calque.engine.verify.outcomes import TOO_FAST
from calque.engine.verify.report import SkippedObject, Verification
from calque.engine.verify.verify import verify
from calque.errors import Unavailable
from calque.model.hive import Column, Database, Function, Partition, Resource, SerDe, Storage, Table, location_of
from calque.model.ledger import TableState
from calque.model.names import TableName
from calque.model.policy import Policy
from support.runs.seeds import history_seeds
from support.worlds.worlds import InlineExecutor, World

SEEDS = history_seeds(40)
PLAIN, PARTED, VIEW = TableName("d2", "plain"), TableName("d2", "parted"), TableName("d2", "seen")
FUNCTION = TableName("d2", "f")
AT = {name: TableName("d2_dr", name.table) for name in (PLAIN, PARTED, VIEW, FUNCTION)}


def pool(_workers: int, _name: str) -> Executor:
    return InlineExecutor()


def compare(world: World, tables: tuple[str, ...] = (), data: str = "checksum") -> Verification:
    return verify(world.source_side, world.side, tables, data, pool=pool)


def opened(world: World) -> World:
    world.begin = world.capture.after = world.source.current()
    world.gatherer.resume(world.begin, world.begin)
    world.replica.open()
    return world


def settled(seed: int = 0, policy: Policy | None = None) -> World:
    """A world at rest with one of each kind of object in `d2`, which is `d2_dr` at the target."""
    world = World(seed, policy=policy)
    world.source.create_database(Database("d2", "ours", parameters={"k": "1"}, owner="me"))
    storage = Storage((Column("x", "int"),), None, "in", "out", serde=SerDe(class_name="lib", parameters={"sep": ","}))
    plain = Table(
        "plain", "d2", owner="me", storage=storage, parameters={"v": "1", "numRows": "7"}, type="MANAGED_TABLE"
    )
    world.source.create_table(plain)
    world.source.create_table(replace(plain, name="parted", partition_keys=(Column("p", "string"),)))
    for number in range(3):
        world.storage.write(join(place(world, PLAIN), f"part-{number}"), b"abc")
    rows = []
    for value in ("1", "a b%"):
        at = join(place(world, PARTED), f"p={value}")
        world.storage.write(join(at, "part-0"), b"abcd")
        rows.append(Partition((value,), "d2", "parted", storage=replace(storage, location=at), parameters={"w": "1"}))
    world.source.add_partitions(PARTED, rows)
    text = "SELECT x FROM d2.plain"
    view = Table("seen", "d2", type="VIRTUAL_VIEW", view_original_text=text, view_expanded_text=text)
    world.source.create_table(replace(view, storage=Storage((Column("x", "int"),))))
    world.storage.write("file:/f.jar", b"classes")
    world.source.create_function(Function("f", "d2", "org.F", "me", 1, type=1, resources=(Resource(1, "file:/f.jar"),)))
    opened(world).settle()
    return world


def place(world: World, name: TableName) -> str:
    return location_of(world.source.the_table(name).table) or ""


def there(world: World, name: TableName) -> Table:
    return world.target_store.the_table(AT[name]).table


def part_there(world: World, value: str) -> Partition:
    return world.target_store.the_table(AT[PARTED]).partitions[(value,)]


def following(world: World, dies: float = 0.0) -> None:
    """From now on time lets the replica work, too; it dies before a share of its calls, leaving half a window. Nobody
    writes while it works."""
    inside = False

    def die(method: str) -> None:
        if method in EFFECTS["catalog"] and world.rng.random() < dies:
            raise Unavailable("It died")

    def work() -> None:
        nonlocal inside
        if not inside:
            inside, busy, between = True, world.busy, world.between
            world.busy, world.between = False, die
            world.capture_all()
            world.background.run()
            world.window()
            inside, world.busy, world.between = False, busy, between

    world.clock.asleep = work


# Equal


def test_a_settled_world_equals_its_source_at_the_newest_event() -> None:
    world = settled()
    assert compare(world) == Verification("dr", world.source.current(), ComparedCounts(1, 3, 2, 5, 17))


@pytest.mark.parametrize("seed", SEEDS)
def test_any_settled_history_verifies_equal(seed: int) -> None:
    world = World(seed)
    world.write(world.rng.randrange(40))
    opened(world)
    world.write(world.rng.randrange(40))
    world.settle()
    found = compare(world)
    assert (found.event_id, found.differences, found.set_aside) == (world.source.current(), (), ())
    assert found.compared.tables == len(world.source_states())


def test_sizes_and_no_data_count_what_they_looked_at() -> None:
    world = settled()
    assert compare(world, data="size").compared == ComparedCounts(1, 3, 2, 5, 17)
    assert compare(world, data="none").compared == ComparedCounts(1, 3, 2, 0, 0)


def test_patterns_choose_tables_and_only_whole_databases() -> None:
    world = settled()
    assert compare(world, ("d2.p*",)).compared == ComparedCounts(0, 2, 2, 5, 17)
    assert compare(world, ("d2.*",)).compared.databases == 1
    assert compare(world, ("d1.*",)).compared == ComparedCounts()


def test_what_a_metastore_sets_by_itself_may_differ() -> None:
    world = settled()
    table = there(world, PLAIN)
    parameters = {**(table.parameters or {}), "transient_lastDdlTime": "1", "numFilesErasureCoded": "0"}
    world.target_store.alter_table(AT[PLAIN], replace(table, parameters=parameters))
    assert compare(world).differences == ()


def test_objects_of_others_where_the_source_has_nothing_are_no_difference() -> None:
    world = settled()
    world.target_store.create_table(Table("theirs", "d2_dr", storage=Storage((Column("x", "int"),))))
    world.target_store.create_database(Database("d7"))
    world.target_store.create_database(Database("elsewhere"))
    found = compare(world)
    assert (found.differences, found.set_aside) == ((), ())


# Different


Tampering = Callable[[World], object]


def with_parameters(world: World, **changes: str | None) -> None:
    table = there(world, PLAIN)
    parameters = {key: value for key, value in {**(table.parameters or {}), **changes}.items() if value is not None}
    world.target_store.alter_table(AT[PLAIN], replace(table, parameters=parameters))


def without(world: World, mark: str) -> None:
    with_parameters(world, **{mark: None})


def moved_in(world: World, name: TableName, location: str | None) -> None:
    table = there(world, name)
    world.target_store.alter_table(
        AT[name], replace(table, storage=replace(table.storage or Storage(), location=location))
    )


def changed_view(world: World) -> None:
    view = there(world, VIEW)
    text = "SELECT x FROM d2_dr.other"
    world.target_store.alter_table(AT[VIEW], replace(view, view_original_text=text))


def changed_function(world: World) -> None:
    function = world.target_store.function(AT[FUNCTION])
    assert function is not None
    world.target_store.drop_function(AT[FUNCTION])
    world.target_store.create_function(replace(function, class_name="org.G"))


def extra_partition(world: World) -> None:
    world.target_store.add_partitions(AT[PARTED], [replace(part_there(world, "1"), values=("9",))])


def changed_partition(world: World) -> None:
    part = part_there(world, "1")
    parameters = {**(part.parameters or {}), "w": "2"}
    world.target_store.alter_partition(AT[PARTED], replace(part, parameters=parameters))


def changed_database(world: World) -> None:
    database = world.target_store.the_database("d2_dr")
    world.target_store.alter_database("d2_dr", replace(database, description="theirs"))


def foreign_table(world: World) -> None:
    table = there(world, PLAIN)
    world.target_store.drop_table(AT[PLAIN])
    world.target_store.create_table(replace(table, parameters={}))


def file_there(world: World, number: int) -> str:
    return join(location_of(there(world, PLAIN)) or "", f"part-{number}")


def difference(
    name: TableName,
    kind: DifferenceKind,
    what: str,
    source: str | None,
    target: str | None,
    partition: str = "",
    of: str = "table",
) -> Difference:
    return Difference(name, partition, kind, what, source, target, of)


MISSING, EXTRA, DEFINITION = DifferenceKind.MISSING, DifferenceKind.EXTRA, DifferenceKind.DEFINITION
FILES = DifferenceKind.FILES
THREE = "3 files, 9 bytes"
TAMPERINGS: dict[str, tuple[Tampering, Difference]] = {
    "a changed parameter": (
        lambda world: with_parameters(world, v="2"),
        difference(PLAIN, DEFINITION, "parameters.v", "1", "2"),
    ),
    "changed statistics": (
        lambda world: with_parameters(world, numRows="8"),
        difference(PLAIN, DEFINITION, "parameters.numRows", "7", "8"),
    ),
    "an added parameter": (
        lambda world: with_parameters(world, mine=""),
        difference(PLAIN, DEFINITION, "parameters.mine", None, ""),
    ),
    "a wrong source's name": (
        lambda world: with_parameters(world, **{"calque.source": "hq:d2.other"}),
        difference(PLAIN, DEFINITION, "parameters.calque.source", "hq:d2.plain", "hq:d2.other"),
    ),
    "a lost type": (
        lambda world: without(world, "calque.type"),
        difference(PLAIN, DEFINITION, "parameters.calque.type", "MANAGED_TABLE", None),
    ),
    "a changed view": (
        changed_view,
        difference(VIEW, DEFINITION, "view original text", "SELECT x FROM d2_dr.plain", "SELECT x FROM d2_dr.other"),
    ),
    "a dropped table": (
        lambda world: world.target_store.drop_table(AT[PLAIN]),
        difference(PLAIN, MISSING, "table", "table d2.plain", None),
    ),
    "a foreign table": (
        foreign_table,
        difference(
            PLAIN,
            DifferenceKind.FOREIGN,
            "what stands there is not ours: no matching calque.source",
            "table d2.plain",
            "table d2_dr.plain",
        ),
    ),
    "a dropped partition": (
        lambda world: world.target_store.drop_partitions(AT[PARTED], ["p=1"]),
        difference(PARTED, MISSING, "partition", "p=1", None, "p=1"),
    ),
    "a changed partition": (
        changed_partition,
        difference(PARTED, DEFINITION, "parameters.w", "1", "2", "p=1"),
    ),
    "a missing file": (
        lambda world: world.storage.delete(file_there(world, 1)),
        difference(PLAIN, FILES, "missing: part-1", THREE, "2 files, 6 bytes"),
    ),
    "an extra file": (
        lambda world: world.storage.write(file_there(world, 9), b"z"),
        difference(PLAIN, FILES, "extra: part-9", THREE, "4 files, 10 bytes"),
    ),
    "a truncated file": (
        lambda world: world.storage.write(file_there(world, 0), b"a"),
        difference(PLAIN, FILES, "other size: part-0", THREE, "3 files, 7 bytes"),
    ),
    "a dropped function": (
        lambda world: world.target_store.drop_function(AT[FUNCTION]),
        difference(FUNCTION, MISSING, "function", "d2.f", None, of="function"),
    ),
    "a changed function": (
        changed_function,
        difference(FUNCTION, DEFINITION, "function: class name", "org.F", "org.G", of="function"),
    ),
    "a changed database": (
        changed_database,
        difference(TableName("d2"), DEFINITION, "description", "ours", "theirs", of="database"),
    ),
}


@pytest.mark.parametrize("tampering", TAMPERINGS)
def test_tampering_at_the_target_is_found_and_named(tampering: str) -> None:
    world = settled()
    tamper, expected = TAMPERINGS[tampering]
    tamper(world)
    assert compare(world).differences == (expected,)


def test_a_flipped_byte_is_found_by_checksums_only() -> None:
    world = settled()
    world.storage.write(file_there(world, 0), b"abd")
    assert compare(world, data="size").differences == ()
    (found,) = compare(world, data="checksum").differences
    assert (found.kind, found.what) == (DifferenceKind.CONTENT, "other content: part-0")
    assert len({found.source, found.target}) == 2


def test_an_extra_partition_is_found_and_so_is_its_shared_directory() -> None:
    world = settled()
    extra_partition(world)
    found = compare(world).differences
    assert [(one.kind, one.what, one.partition) for one in found] == [
        (DEFINITION, "location, shared with d2.parted p=1", "p=9"),
        (EXTRA, "partition", "p=9"),
    ]


def test_an_extra_table_of_ours_is_found() -> None:
    world = settled()
    table = there(world, VIEW)
    world.target_store.create_table(replace(table, name="old"))
    expected = difference(TableName("d2", "old"), EXTRA, "view", None, "view d2_dr.old")
    assert compare(world).differences == (expected,)


def test_a_lost_incarnation_is_found() -> None:
    world = settled()
    without(world, "calque.incarnation")
    (found,) = compare(world).differences
    assert (found.kind, found.what, found.target) == (DEFINITION, "parameters.calque.incarnation", None)


def test_a_mark_from_the_future_is_found() -> None:
    world = settled()
    with_parameters(world, **{"calque.event": str(world.source.current() + 1)})
    (found,) = compare(world).differences
    assert (found.kind, found.what) == (DEFINITION, "parameters.calque.event")


def test_a_table_that_became_managed_is_found() -> None:
    world = settled()
    with_parameters(world, EXTERNAL=None)
    assert {found.what for found in compare(world).differences} == {"parameters.EXTERNAL", "type"}


def test_tables_that_share_a_directory_are_found() -> None:
    world = settled()
    moved_in(world, PARTED, location_of(there(world, PLAIN)))
    (found,) = compare(world).differences
    assert (found.table, found.kind, found.what) == (PLAIN, DEFINITION, "location, shared with d2.parted")


def test_another_place_alone_is_no_difference() -> None:
    world = settled()
    moved_in(world, PARTED, "file:/target/elsewhere")
    assert compare(world).differences == ()


def test_with_metadata_only_another_place_is_the_difference() -> None:
    policy = Policy("dr", "hq", include=("d*.*",), rename={"d2": "d2_dr"}, warehouse="file:/target", data="none")
    world = settled(policy=policy)
    assert compare(world).differences == ()
    moved_in(world, PARTED, "file:/target/elsewhere")
    expected = difference(PARTED, DEFINITION, "location", place(world, PARTED), "file:/target/elsewhere")
    assert compare(world).differences == (expected,)


def test_files_that_changed_at_the_source_without_an_event_are_found() -> None:
    world = settled()
    world.storage.write(join(place(world, PLAIN), "part-8"), b"x")
    (found,) = compare(world).differences
    assert (found.kind, found.what) == (FILES, "missing: part-8")


# Set aside


def test_a_stopped_target_is_compared_where_nothing_is_pending_and_the_rest_is_set_aside() -> None:
    world = settled()
    position = world.replica.epochs.position()
    plain = world.source.the_table(PLAIN).table
    world.source.alter_table(PLAIN, replace(plain, parameters={"v": "2"}))
    found = compare(world)
    event = world.source.current()
    reason = f"the target shows event {position}, and event {event} changed it since"
    assert found == Verification(
        "dr", event, ComparedCounts(1, 2, 2, 2, 8), set_aside=(SkippedObject(PLAIN, "live", position, reason),)
    )


def test_quarantined_tables_are_set_aside_and_their_foreign_namesakes_named() -> None:
    world = settled()
    foreign_table(world)
    world.source.alter_table(PLAIN, replace(world.source.the_table(PLAIN).table, parameters={"v": "2"}))
    world.capture_all()
    world.window()
    assert world.replica.tables.is_(PLAIN, {TableState.QUARANTINED})
    found = compare(world)
    assert [(one.table, one.kind) for one in found.differences] == [(PLAIN, DifferenceKind.FOREIGN)]
    assert [(one.table, one.state) for one in found.set_aside] == [(PLAIN, "quarantined")]


def test_before_the_first_epoch_everything_is_set_aside() -> None:
    world = World(0)
    world.source.create_database(Database("d1"))
    world.writer.source.create_table(Table("a", "d1", storage=Storage((Column("x", "int"),))))
    opened(world)
    found = compare(world)
    assert (found.compared, found.differences) == (ComparedCounts(), ())
    assert [(one.table, one.state) for one in found.set_aside] == [
        (TableName("d1"), "unknown"),
        (TableName("d1", "a"), "unknown"),
        (TableName("default"), "unknown"),
    ]


def test_a_table_that_never_rests_is_set_aside_and_never_different() -> None:
    world = settled()
    following(world)
    plain = world.source.the_table(PLAIN).table

    def write(_: str) -> None:
        world.source.alter_table(PLAIN, replace(plain, parameters={"v": world.writer.fresh()}))

    world.between = write
    found = compare(world, ("d2.*",))
    assert found.differences == ()
    assert [(one.table, one.reason) for one in found.set_aside] == [(PLAIN, TOO_FAST)]
    assert found.compared.tables == 2


# Under load


@pytest.mark.parametrize("seed", SEEDS)
def test_load_between_all_remote_calls_never_looks_like_a_difference(seed: int) -> None:
    """Unless the target did show what the source never had; then every reader sees it (`World.problems`)."""
    world = World(seed)
    world.write(world.rng.randrange(80))
    opened(world)
    world.settle()
    following(world, dies=world.rng.choice([0.0, 0.1]))
    share = world.rng.choice([0.02, 0.1, 0.5])

    def disturb(_: str) -> None:
        if world.rng.random() < share:
            world.write()
        if world.rng.random() < 0.2:
            world.clock.asleep()

    world.between = disturb
    found = compare(world)
    assert found.differences == () or world.problems, "\n".join(world.writer.done)


def test_a_table_that_is_written_now_and_then_is_compared_all_the_same() -> None:
    world = settled()
    following(world)
    calls = 0

    def write(_: str) -> None:
        nonlocal calls
        calls += 1
        if calls % 40 == 0:
            table = world.source.the_table(PLAIN).table
            parameters = {**(table.parameters or {}), "v": world.writer.fresh()}
            world.source.alter_table(PLAIN, replace(table, parameters=parameters))

    world.between = write
    found = compare(world)
    assert (found.compared.tables, found.differences, found.set_aside) == (3, (), ())


def test_tables_made_while_others_are_compared_are_compared_too() -> None:
    world = settled()
    following(world)
    made = False

    def write(method: str) -> None:
        nonlocal made
        if method == "partition_names" and not made:
            made = True
            world.source.create_table(replace(world.source.the_table(PLAIN).table, name="late", storage=Storage()))

    world.between = write
    found = compare(world)
    assert (found.event_id, found.compared.tables, found.differences) == (world.source.current(), 4, ())


def test_a_difference_under_load_is_found() -> None:
    world = settled()
    following(world)
    with_parameters(world, mine="1")
    calls = 0

    def write(_: str) -> None:
        nonlocal calls
        calls += 1
        if calls % 10 == 0:
            world.writer.create_database()
            world.writer.alter_database()

    world.between = write
    assert [one.what for one in compare(world).differences] == ["parameters.mine"]


def test_files_that_are_placed_before_their_event_are_no_difference() -> None:
    world = settled()
    following(world)
    path = join(place(world, PLAIN), "part-7")
    listed = 0

    def insert(call: str, about: str) -> None:
        nonlocal listed
        if call == "list" and about == place(world, PLAIN):
            listed += 1
            if listed == 1:
                world.storage.write(path, b"new")
            if listed == 5:
                world.source.insert(PLAIN, [path])

    world.storage.before = insert
    found = compare(world)
    assert (found.differences, found.set_aside) == ((), ())
    assert listed > 5
