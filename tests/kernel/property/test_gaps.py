"""Gaps of the log, over generated histories through the whole engine, in memory: purged under the journal's end, some
or all of it, or gone back with a metastore that was restored. And targets that the journal does not wait for.

States that the source had while nobody read its log are the source's all the same.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from support.worlds.bootstraps import boot
from support.worlds.histories import (
    BETWEEN,
    DEATHS,
    HOLES,
    POLICIES,
    WRITES,
    Story,
    Write,
    differences,
    play,
    stories,
    works,
)

HISTORIES = {"check": 15, "prove": 20_000}
GAP = settings(
    max_examples=HISTORIES.get(settings.get_current_profile_name(), 110),
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)
PURGES = st.builds(Write, st.just("purge"), st.integers(0, 2))
RESTORES = st.builds(Write, st.sampled_from(["back_up", "restore"]), st.just(0))
ALL_MAY_GO = POLICIES.map(lambda policy: replace(policy, max_drop=1.0))
FORGETS = st.builds(Write, st.just("forget"), st.integers(0, 3))
FORGOTTEN_BETWEEN = st.lists(st.tuples(st.integers(1, 8), WRITES | FORGETS | FORGETS, st.booleans()), max_size=5).map(
    tuple
)
PURGED_BETWEEN = st.lists(st.tuples(st.integers(1, 8), WRITES | PURGES, st.booleans()), max_size=4).map(tuple)


@GAP
@given(stories(works(PURGED_BETWEEN, DEATHS, others=HOLES) | PURGES, ALL_MAY_GO, seen=False))
def test_a_log_that_is_purged_costs_no_law_wherever_calque_dies(story: Story) -> None:
    world = play(story)
    assert world.problems == []
    assert differences(world) == []


@GAP
@given(stories(works(BETWEEN, DEATHS, others=HOLES) | PURGES | RESTORES, ALL_MAY_GO, seen=False))
def test_a_metastore_that_is_restored_is_followed_from_where_it_is_wherever_calque_dies(story: Story) -> None:
    world = play(story)
    assert world.problems == []
    assert differences(world) == []
    assert world.marks_ahead() == []


@GAP
@given(stories(works(FORGOTTEN_BETWEEN, DEATHS, others=HOLES) | FORGETS | PURGES, ALL_MAY_GO, seen=False))
def test_a_target_that_falls_behind_the_journal_starts_again_and_no_epoch_claims_too_much(story: Story) -> None:
    world = boot(story)
    assert world.problems == []
    assert world.false_claims == []
    assert differences(world) == []
    assert world.replica.gaps_behind() == []
