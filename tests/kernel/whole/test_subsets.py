"""A target with a part of the source, from its doors: what `verify` compares, what `check` says, what is set aside."""

from __future__ import annotations

from dataclasses import replace

from calque.core.policy.admit import Admission
from calque.core.records.lifecycle import State
from calque.engine.check.check_source import check_subsets
from calque.engine.check.findings import Findings
from calque.engine.sides.sides import TargetSide
from calque.engine.sides.subset_ports import subset_source
from calque.engine.verify.verify import verify
from calque.model.hive import Column, Database, Partition, SerDe, Storage, Table
from calque.model.names import TableName
from calque.model.policy import Policy
from support.worlds.worlds import INPUT, OUTPUT, SERDE, World

T = TableName("d1", "t")
POLICY = Policy("dr", "hq", include=("d1.*",), warehouse="file:/target", partitions={"d1.t": "ds >= '2'"})


def table(**parameters: str) -> Table:
    storage = Storage((Column("x", "string"),), "file:/source/t", INPUT, OUTPUT, serde=SerDe(SERDE))
    keys = (Column("ds", "string"),)
    return Table(*reversed(T), owner="me", partition_keys=keys, storage=storage, parameters=parameters)


def world_of(policy: Policy) -> World:
    """Settled, with partitions 1 to 3 of one table."""
    world = World(1, policy=policy)
    world.source.create_database(Database("d1"))
    world.source.create_table(table())
    for value in "123":
        world.storage.write(f"file:/source/t/{value}/one", value.encode())
        storage = replace(table().storage or Storage(), location=f"file:/source/t/{value}")
        world.source.add_partitions(T, [Partition((value,), *T, storage=storage)])
    world.open()
    world.settle()
    return world


def shown(world: World) -> list[str] | None:
    at_target = world.side.catalog.table(T)
    return None if at_target is None else sorted(world.side.catalog.partition_names(T))


def take(world: World, policy: Policy) -> None:
    """The target gets another policy, as by `calque reload`."""
    world.policy = policy
    world.side = TargetSide.of(policy, world.side.catalog, world.ledger, world.storage)
    world.looker = replace(world.looker, imaging=world.side.imaging)
    world.replica = world.new_replica()
    world.replica.open()
    world.settle()


def test_a_target_has_the_partitions_of_its_policy_wider_and_narrower() -> None:
    world = world_of(POLICY)
    assert shown(world) == ["ds=2", "ds=3"]
    take(world, replace(POLICY, partitions={}))
    assert shown(world) == ["ds=1", "ds=2", "ds=3"]
    take(world, replace(POLICY, partitions={"d1.t": "ds = '1'"}))
    assert shown(world) == ["ds=1"]


def test_verify_compares_the_part_alone_and_finds_what_is_missing_in_it() -> None:
    world = world_of(POLICY)
    source = subset_source(world.source_side, world.side.admission.subset)
    assert verify(source, world.side).differences == ()
    world.side.catalog.drop_partitions(T, ["ds=3"])
    assert [one.partition for one in verify(source, world.side).differences] == ["ds=3"]


def test_a_predicate_that_does_not_fit_the_table_quarantines_it_until_it_is_corrected() -> None:
    world = world_of(replace(POLICY, partitions={"d1.t": "region = 'eu'"}))
    assert shown(world) is None
    assert world.replica.tables.in_state(State.QUARANTINED) == [T]
    assert "region is no partition key" in world.replica.tables.rows[T].reason
    take(world, POLICY)
    assert shown(world) == ["ds=2", "ds=3"]


def test_check_says_which_predicates_do_not_fit() -> None:
    findings = Findings()
    check_subsets({T: table()}, [Admission(replace(POLICY, partitions={"d1.*": "ds > 3"}))], findings)
    assert [one.what for one in findings.entries] == [
        "The predicate over partitions of d1.t does not fit the table: '3' is a number, and ds is of type string"
    ]


def test_an_alteration_takes_a_table_out_of_where_and_brings_it_back() -> None:
    world = world_of(replace(POLICY, where="param('tier') = 'gold'"))
    assert shown(world) is None
    for tier, expected in (("gold", ["ds=2", "ds=3"]), ("lead", None), ("gold", ["ds=2", "ds=3"])):
        stored = world.source.the_table(T).table
        world.source.alter_table(T, replace(stored, parameters={**(stored.parameters or {}), "tier": tier}))
        world.note()
        world.settle()
        assert shown(world) == expected
