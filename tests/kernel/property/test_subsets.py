"""The laws of docs/limits.md for targets that have a part of the source: partitions by predicates over their keys,
tables by one over their definition. The judge evaluates the predicates over what the source has; the engine sees
events."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from calque.model.policy import Policy
from support.worlds.histories import (
    DEATHS,
    HOLES,
    PARTITIONS,
    PLAIN,
    SUBSETS,
    WHERE,
    Meanwhile,
    Release,
    Story,
    Twice,
    differences,
    holes,
    play,
    stories,
    works,
)
from support.worlds.policies import Change
from support.worlds.policies import play as play_changes

HISTORIES = {"check": 10, "prove": 20_000}
LAW = settings(
    max_examples=HISTORIES.get(settings.get_current_profile_name(), 20),
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)
CHANGING = st.builds(
    replace, st.just(PLAIN), partitions=PARTITIONS, where=WHERE, rename=st.sampled_from([{}, {"d2": "d2_dr"}])
)
CHANGES = st.dictionaries(
    st.integers(0, 8),
    st.builds(Change, st.integers(0, 2), st.sampled_from([None, 0, 1, 2]), st.builds(Meanwhile, st.just(()), DEATHS)),
    min_size=1,
    max_size=3,
)


@LAW
@given(stories(works(others=HOLES), SUBSETS, seen=False))
def test_laws_1_and_2_hold_for_the_part_that_is_left(story: Story) -> None:
    world = play(story)
    assert world.problems == []
    assert differences(world) == []


@LAW
@given(stories(works(others=(Release(),)), SUBSETS, seen=True))
def test_law_3_no_bridge_is_crossed_where_the_evidence_has_no_holes(story: Story) -> None:
    world = play(story)
    assert world.problems == []
    assert differences(world) == []
    assert holes(world) == []


@LAW
@given(stories(works(deaths=DEATHS, others=(*HOLES, Twice())), SUBSETS, seen=False))
def test_law_5_dying_anywhere_loses_nothing_of_the_part(story: Story) -> None:
    world = play(story)
    assert world.problems == []
    assert differences(world) == []


@LAW
@given(stories(works(deaths=DEATHS, others=HOLES), seen=False), st.lists(CHANGING, min_size=3, max_size=3), CHANGES)
def test_a_part_that_is_widened_and_narrowed_is_in_the_end_the_last_policys(
    story: Story, policies: list[Policy], changes: dict[int, Change]
) -> None:
    assert differences(play_changes(story, policies, changes)) == []
