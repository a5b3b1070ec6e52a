"""Policies that change while the source does, over generated histories through the whole engine, in memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from calque.model.policy import Policy
from support.worlds.histories import (
    AT_FIRST,
    DEATHS,
    HOLES,
    MIXED,
    PLAIN,
    QUIET,
    Capture,
    Meanwhile,
    Story,
    Window,
    Write,
    differences,
    stories,
    works,
)
from support.worlds.policies import Change, PolicyWorld, play

HISTORIES = {"check": 40, "prove": 50_000}
LAW = settings(
    max_examples=HISTORIES.get(settings.get_current_profile_name(), 110),
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)
NAMES = (
    {},
    {"d2": "d2_dr"},
    {"d1": "m", "d2.c": "m.c2"},
    {"d1.a": "d1.b", "d1.b": "d1.a"},
    {"d1": "d2", "d2": "d1"},
    {"d1.a": "d1.b", "d1.b": "d1.c", "d1.c": "n.a"},
)
POLICIES = st.builds(
    replace,
    st.just(PLAIN),
    include=st.sampled_from([("d*.*",), ("d*.*",), ("d1.*",), ("d1.*", "d2.a", "d2.v"), ("d2.*",)]),
    exclude=st.sampled_from([(), (), ("*.tmp",), ("d1.b", "*.pv")]),
    rename=st.sampled_from(NAMES),
    properties=st.sampled_from([{}, {}, {"made": "by calque", "v": ""}]),
    consistency=st.sampled_from(["table", "table", "database"]),
    data=st.sampled_from(["copy", "copy", "copy", "none", *MIXED]),
    appends=st.sampled_from(["in_place", "new_directory"]),
    external_base=st.sampled_from(["", "file:/target/outside"]),
)
CHANGES = st.dictionaries(
    st.integers(0, 8),
    st.builds(
        Change,
        st.integers(0, 2),
        st.sampled_from([None, 0, 1, 2]),
        st.builds(
            Meanwhile,
            st.just(()),
            DEATHS,
        ),
    ),
    min_size=1,
    max_size=4,
)


MOVES = Write("move_partition", 0)
MOVES_AS_ITS_FILES_ARE_COPIED = Story(
    PLAIN, 3, (*AT_FIRST, MOVES), (Capture(None, QUIET), Window(100, QUIET), MOVES, Capture(None, QUIET)), seen=False
)


@LAW
@example(MOVES_AS_ITS_FILES_ARE_COPIED, [replace(PLAIN, data="none"), PLAIN], {0: Change(1)})
@example(
    MOVES_AS_ITS_FILES_ARE_COPIED, [replace(PLAIN, data="none"), replace(PLAIN, properties={"v": ""})], {0: Change(1)}
)
@given(stories(works(deaths=DEATHS, others=HOLES), seen=False), st.lists(POLICIES, min_size=3, max_size=3), CHANGES)
def test_whatever_policy_comes_when_readers_see_states_of_the_source_and_the_end_is_the_last_ones(
    story: Story, policies: list[Policy], changes: Mapping[int, Change]
) -> None:
    world = play(story, policies, changes)
    assert world.problems == []
    assert [found for found in differences(world) if not (rebasing(world) and found.startswith("database "))] == []


def rebasing(world: PolicyWorld) -> bool:
    """Whether databases say that a quarantined table of theirs is not as it should be."""
    return world.policy.consistency == "database" and bool(world.replica.not_shown_as_is())
