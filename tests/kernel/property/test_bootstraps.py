"""Bootstraps while an adversary changes the source between any two calls, from the first one of the listing on.

What readers of the target see, what its epochs claim, and how often tables are read. Gaps of the log are not among what
happens.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from calque.model.policy import Policy
from support.sources.writers import OPERATIONS, RARER
from support.worlds.bootstraps import Bootstrap, boot, taken_up
from support.worlds.histories import (
    AT_FIRST,
    DEATHS,
    HOLES,
    NONE,
    POLICIES,
    Action,
    Capture,
    Meanwhile,
    Read,
    Story,
    Window,
    Write,
    differences,
)

HISTORIES = {"check": 50, "prove": 100_000}
LAW = settings(
    max_examples=HISTORIES.get(settings.get_current_profile_name(), 105),
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)
LEFT_OUT = {"insert_files", "insert_partition_files", "make_acid"}
"""One INSERT of several files is seen before its event: which event its table shows then, can't be told. A quarantined
table keeps a database whose tables go together from ever being whole again."""
HARD = (
    "create_table",
    "create_table",
    "create_again",
    "create_again",
    "drop_and_create",
    "drop_table",
    "rename_table",
    "rename_table",
    "rename_chain",
    "swap",
    "drop_database_cascade",
    "create_database",
    "add_partitions",
    "add_partitions",
    "rename_partition",
    "drop_partitions",
    "alter_partitions",
    "exchange_partition",
    "overwrite",
    "insert",
    "add_column",
    "create_view",
    "create_function",
)
WRITES = st.builds(
    Write, st.sampled_from([*HARD, *HARD, *sorted({*OPERATIONS, *RARER} - LEFT_OUT)]), st.integers(0, 999)
)
BETWEEN = st.lists(st.tuples(st.integers(1, 6), WRITES, st.booleans()), max_size=6).map(tuple)
BEFORE = st.lists(WRITES, max_size=8).map(lambda drawn: (*AT_FIRST, *drawn))
WIDE = POLICIES.flatmap(
    lambda policy: st.sampled_from([policy, policy, replace(policy, consistency="database", drops="follow")])
)


def works(deaths: st.SearchStrategy[tuple[int, ...]] = NONE) -> st.SearchStrategy[Action]:
    meanwhile = st.builds(Meanwhile, BETWEEN, deaths)
    windows = st.builds(Window, st.sampled_from([100, 100, 60, 30]), meanwhile)
    reads = st.builds(Read, meanwhile, st.sampled_from([None, 1, 1, 2, 3]))
    captures = st.builds(Capture, st.sampled_from([None, None, 1, 3]), st.builds(Meanwhile, BETWEEN))
    return st.one_of(windows, windows, reads, reads, reads, captures, st.sampled_from(HOLES))


def stories(
    deaths: st.SearchStrategy[tuple[int, ...]] = NONE,
    policies: st.SearchStrategy[Policy] = WIDE,
    *,
    settled: bool = False,
) -> st.SearchStrategy[Story]:
    """Reads, windows and some writing, from a listing on that is disturbed like everything else."""
    actions = st.lists(st.one_of(works(deaths), works(deaths), WRITES), max_size=14).map(tuple)
    return st.builds(
        Story,
        policies,
        st.sampled_from([3, 4]),
        BEFORE,
        actions,
        st.booleans(),
        st.just(settled),
        st.sampled_from([True, True, False]),
        st.builds(Meanwhile, BETWEEN, deaths),
    )


def require_laws(world: Bootstrap) -> None:
    assert world.problems == []
    assert world.false_claims == []
    assert differences(world) == []
    assert world.reads() <= world.reads_allowed(), world.background.run_with


@LAW
@given(stories())
def test_readers_see_and_epochs_claim_only_what_the_source_had_while_it_is_read(story: Story) -> None:
    require_laws(boot(story))


@LAW
@given(stories(DEATHS))
def test_a_bootstrap_that_dies_anywhere_is_taken_up_and_shows_nothing_wrong(story: Story) -> None:
    require_laws(boot(story))


def follows(policy: Policy) -> bool:
    return policy.drops == "follow"


@settings(LAW, max_examples=LAW.max_examples // 4)
@given(stories(policies=WIDE.filter(follows), settled=True))
def test_a_target_that_equals_the_source_at_an_event_is_taken_up_there_and_copied_nothing(story: Story) -> None:
    require_laws(taken_up(story))
