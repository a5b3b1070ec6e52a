"""Column statistics and constraints over generated histories: what the source has of them the target gets."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from calque.core.records.lifecycle import State
from calque.core.states.facets import Rows, by_name, constraint_image, same_constraint, same_statistics
from calque.engine.apply.statistics import ACCURATE
from calque.model.facets import Check, DefaultValue, ForeignKey, PrimaryKey, Statistics
from calque.model.hive import is_view
from calque.model.names import TableName
from calque.model.policy import Policy
from support.worlds.histories import HOLES, Story, Window, Write, play, stories, works
from support.worlds.worlds import World

HISTORIES = {"check": 40, "prove": 20_000}
LAW = settings(
    max_examples=HISTORIES.get(settings.get_current_profile_name(), 110),
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)
FACETS = ("add_primary_key", "add_constraint", "add_foreign_key", "drop_constraint", "analyze", "forget_statistics")
FOLLOWS = st.sampled_from(
    [
        Policy("dr", "hq", include=("d*.*",), rename={"d2": "d2_dr"}, warehouse="file:/target"),
        Policy("dr", "hq", include=("d1.*",), rename={"d1.a": "d2.aa"}, warehouse="file:/target"),
    ]
)


def differences(world: World) -> list[str]:
    """Where a table at the target has other facets than the policy's image of the source's."""
    found = []
    aside = set(world.replica.tables.in_state(State.QUARANTINED))
    for database in world.source.databases():
        for table in world.source.tables(database):
            name = TableName(database, table)
            if world.side.admission.takes(name) and name not in aside:
                found += table_differences(world, name)
    return found


def table_differences(world: World, name: TableName) -> list[str]:
    at = world.side.admission.name_at_target(name)
    here, there = world.source.the_table(name), world.target_store.the_table(at)
    if is_view(here.table):
        return []
    found = []
    wanted: dict[str, Rows] = {}
    shown = by_name(there.constraints)
    for key, rows in by_name(here.constraints).items():
        image = constraint_image(rows, name, world.side.admission)
        if image is not None and stands(world, image):
            wanted[key] = image
        elif image is not None:
            shown.pop(key, None)
    for key in wanted.keys() | shown.keys():
        if key not in wanted or key not in shown or not same_constraint(wanted[key], shown[key]):
            found.append(f"constraint {key} of {name} is {shown.get(key)}, not {wanted.get(key)}")
    if world.habits.facet_events:
        for values in {(), *here.partitions}:
            want, have = here.statistics.get(values, {}), there.statistics.get(values, {})
            if not equal(want, have):
                found.append(f"statistics of {name} {values} are {have}, not {want}")
            one = here.partitions[values] if values else here.table
            other = there.partitions[values] if values else there.table
            accurate = [(thing.parameters or {}).get(ACCURATE) for thing in (one, other)]
            if accurate[0] != accurate[1]:
                found.append(f"{name} {values} calls {accurate[1]} accurate, not {accurate[0]}")
    return found


def stands(world: World, rows: Rows) -> bool:
    """Whether the log tells of it; of a foreign key, whether the key that it points to is there still: without it, the
    time decides."""
    first = rows[0]
    if not isinstance(first, ForeignKey):
        return world.habits.facet_events or not isinstance(first, DefaultValue | Check)
    parent = world.side.admission.source_of(first.parent)
    out = world.replica.tables.in_state(State.QUARANTINED)
    return (
        parent is not None
        and parent not in out
        and any(isinstance(row, PrimaryKey) for row in world.source.constraints(parent))
    )


def equal(one: Statistics, other: Statistics) -> bool:
    return one.keys() == other.keys() and all(same_statistics(one[column], other[column]) for column in one)


@LAW
@given(stories(works(), FOLLOWS, seen=True), st.lists(st.builds(Write, st.sampled_from(FACETS), st.integers(0, 999))))
def test_the_target_has_the_facets_that_the_source_has(story: Story, more: list[Write]) -> None:
    assert differences(play(replace(story, actions=(*story.actions, *more)))) == []


@LAW
@given(stories(works(others=HOLES), FOLLOWS, seen=False))
def test_tables_that_are_read_again_keep_their_facets(story: Story) -> None:
    assert differences(play(story)) == []


@LAW
@given(stories(st.just(Window()), FOLLOWS, seen=True), st.integers(1, 5))
def test_facets_do_not_depend_on_the_cuts(story: Story, every: int) -> None:
    writes = [action for action in story.actions if isinstance(action, Write)]
    cuts = [(write, Window()) if count % every == 0 else (write,) for count, write in enumerate(writes)]
    assert differences(play(replace(story, actions=tuple(action for cut in cuts for action in cut)))) == []
