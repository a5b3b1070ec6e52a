"""The laws of docs/limits.md, over generated histories through the whole engine, in memory.

A history that breaks one is shrunk to the few actions that do; `play(Story(…))` as it is printed does it again. Gaps of
the log are not among what happens.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from calque.model.policy import Policy
from support.worlds.histories import (
    AS_DELTA,
    AT_FIRST,
    DEATHS,
    HOLES,
    PLAIN,
    POLICIES,
    Capture,
    Meanwhile,
    Read,
    Release,
    Reread,
    Restart,
    Story,
    Twice,
    Window,
    Write,
    differences,
    holes,
    incarnations,
    live_states,
    play,
    stories,
    works,
)

HISTORIES = {"check": 50, "prove": 100_000}
LAW = settings(
    max_examples=HISTORIES.get(settings.get_current_profile_name(), 130),
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)
OF_DELTA_TABLES = settings(LAW, max_examples=HISTORIES.get(settings.get_current_profile_name(), 75))


@LAW
@given(stories(works(others=HOLES), seen=False))
def test_laws_1_and_2_hold_while_the_source_changes_between_all_calls(story: Story) -> None:
    world = play(story)
    assert world.problems == []
    assert differences(world) == []


@LAW
@given(stories(works(others=(Release(),)), seen=True))
def test_law_3_there_is_no_bridge_where_the_evidence_has_no_holes(story: Story) -> None:
    world = play(story)
    assert world.problems == []
    assert differences(world) == []
    assert holes(world) == []


@OF_DELTA_TABLES
@given(stories(works(deaths=DEATHS, others=HOLES), AS_DELTA, seen=False))
def test_laws_hold_of_delta_tables_wherever_calque_dies(story: Story) -> None:
    world = play(story)
    assert world.problems == []
    assert differences(world) == []


@OF_DELTA_TABLES
@given(stories(works(others=(Release(),)), AS_DELTA, seen=True))
def test_law_3_holds_of_delta_tables(story: Story) -> None:
    world = play(story)
    assert world.problems == []
    assert differences(world) == []
    assert holes(world) == []


def follows(policy: Policy) -> bool:
    """Of a table that was made and dropped inside one window nothing can be kept."""
    return policy.drops == "follow"


@LAW
@given(stories(st.just(Window()), POLICIES.filter(follows), seen=True), st.integers(1, 5))
def test_law_4_the_end_does_not_depend_on_the_cuts(story: Story, every: int) -> None:
    writes = [action for action in story.actions if isinstance(action, Write)]
    cuts = [(write, Window()) if count % every == 0 else (write,) for count, write in enumerate(writes)]
    one, two = play(story), play(replace(story, actions=tuple(action for cut in cuts for action in cut)))
    assert live_states(one) == live_states(two)
    if not one.reread | two.reread | one.first_reads | two.first_reads:
        assert incarnations(one) == incarnations(two)


@LAW
@given(stories(works(others=(Twice(),)), seen=False))
def test_law_4_a_window_played_twice_changes_nothing(story: Story) -> None:
    assert differences(play(story)) == []


@LAW
@given(stories(works(deaths=DEATHS, others=HOLES), seen=False))
def test_law_5_dying_anywhere_loses_nothing_and_shows_nothing_wrong(story: Story) -> None:
    world = play(story)
    assert world.problems == []
    assert differences(world) == []


FOUND = {
    "an event between two brackets of an exact read": Story(
        replace(PLAIN, data="none"),
        3,
        AT_FIRST,
        (
            Capture(),
            Reread("d1"),
            Read(
                Meanwhile(
                    (
                        (7, Write("create_table", 0), False),
                        (6, Write("add_partitions", 1), False),
                        (1, Write("add_partitions", 1), False),
                    )
                )
            ),
        ),
        settled=True,
    ),
    "statistics of a partition that come after it was read": Story(
        replace(PLAIN, rename={}),
        4,
        AT_FIRST,
        (
            Capture(),
            Read(
                Meanwhile(
                    (
                        (1, Write("create_table", 0), False),
                        (5, Write("create_table", 0), False),
                        (6, Write("create_table", 0), False),
                        (6, Write("analyze_partition", 1), False),
                    )
                )
            ),
        ),
    ),
    "partitions of a view that is read exactly": Story(
        PLAIN,
        3,
        (Write("create_database", 0), Write("create_partitioned_view", 0)),
        (Window(), Write("change_view_partitions", 0), Window()),
    ),
    "a database dropped while a table of it is set aside": Story(
        PLAIN,
        3,
        (Write("create_database", 1), Write("create_table", 1)),
        (Read(), Write("make_acid", 0), Window(), Write("drop_database_cascade", 1), Restart(), Read()),
    ),
    "a table made under a name that another has left, whose files were copied then": Story(
        PLAIN,
        3,
        AT_FIRST,
        (
            Write("add_partitions", 2),
            Write("rename_table", 2),
            Capture(),
            Window(),
            Write("create_table", 1),
            Capture(),
            Window(),
        ),
        seen=True,
        settled=True,
        patient=False,
    ),
    "a partition that is renamed to what another one of its event was called": Story(
        PLAIN,
        3,
        AT_FIRST,
        (
            Capture(),
            Window(),
            Write("create_table", 0),
            Capture(),
            Window(
                100,
                Meanwhile(
                    (
                        (1, Write("add_partitions", 21), False),
                        (1, Write("rename_partition", 1), False),
                        (1, Write("rename_partition", 638), False),
                    )
                ),
            ),
        ),
        seen=True,
        settled=True,
    ),
    "a table without copied files that is renamed along with its directory": Story(
        replace(PLAIN, data="none"), 3, AT_FIRST, (Write("rename_table", 486), Capture(), Window()), settled=True
    ),
    "a table without copied files that is external after it was renamed along with its directory": Story(
        replace(PLAIN, data="none"),
        3,
        (*AT_FIRST, Write("rename_table", 222), Write("add_partitions", 1)),
        (Write("rename_table", 1), Write("make_external", 2), Capture(), Window()),
        settled=False,
    ),
    "a table without copied files that is made, filled and renamed in one window": Story(
        replace(PLAIN, data="none"),
        3,
        AT_FIRST,
        (
            Write("create_table", 0),
            Write("create_table", 0),
            Capture(),
            Window(),
            Write("drop_and_create", 0),
            Write("insert", 0),
            Capture(),
            Window(100, Meanwhile(((1, Write("rename_table", 0), False),), (0,))),
        ),
        settled=True,
    ),
    "a dropped database is not made again": Story(
        PLAIN,
        3,
        (Write("create_database", 0),),
        (Window(), Write("create_table", 0), Window(), Write("drop_database_cascade", 0), Capture(), Twice()),
    ),
}
DELTA = replace(PLAIN, format="delta", rename={})
FOUND |= {
    "a definition and then a name that change in one window": Story(
        DELTA,
        3,
        AT_FIRST,
        (
            Write("exchange_partition", 930),
            Capture(),
            Window(
                meanwhile=Meanwhile(
                    ((6, Write("drop_database_cascade", 990), True), (4, Write("truncate_table", 192), True))
                )
            ),
            Write("alter_table", 133),
            Write("rename_table", 400),
        ),
        seen=True,
        settled=True,
    ),
    "files that a table gets after a death in its rename": Story(
        DELTA,
        3,
        AT_FIRST,
        (
            Write("rename_table", 950),
            Window(meanwhile=Meanwhile(((2, Write("overwrite_partition", 953), True),), (0,))),
            Window(meanwhile=Meanwhile(deaths=(7,))),
            Write("insert_partition_files", 790),
        ),
        seen=True,
        settled=True,
    ),
    "a name and columns that change in one event": Story(
        DELTA, 3, AT_FIRST, (Write("rename_and_alter", 2), Window()), seen=True, settled=True
    ),
    "a table whose files stay at the source": Story(replace(DELTA, data={"d1.*": "none"}), 3, AT_FIRST, (Window(),)),
}


@pytest.mark.parametrize("name", FOUND)
def test_histories_that_once_broke_a_law_keep_it(name: str) -> None:
    world = play(FOUND[name])
    assert world.problems == []
    assert differences(world) == []


BRIDGED = {
    "a partition that is renamed while its table's facets are read": Story(
        replace(PLAIN, data="none", rename={}),
        3,
        AT_FIRST,
        (
            Write("add_partitions", 55),
            Capture(),
            Read(Meanwhile(((5, Write("rename_partition", 1), False),))),
        ),
        seen=True,
    ),
    "a table that is made anew while its facets are read": Story(
        PLAIN,
        3,
        AT_FIRST,
        (
            Capture(),
            Read(
                Meanwhile(
                    (
                        *((calls, Write("create_table", 0), False) for calls in (1, 1, 3)),
                        (1, Write("drop_and_create", 2), False),
                    )
                )
            ),
        ),
        seen=True,
    ),
    "a table that was quarantined and made anew": Story(
        PLAIN,
        3,
        AT_FIRST,
        (
            Capture(),
            Window(),
            Write("exchange_partition", 0),
            Write("drop_database_cascade", 0),
            Capture(),
            Window(),
            Write("make_acid", 126),
            Write("create_again", 2),
            Capture(),
            Window(),
            Write("add_partitions", 2),
            Capture(),
            Window(),
        ),
        seen=True,
        settled=True,
        patient=False,
    ),
    "tables that are swapped through a name outside the policy": Story(
        replace(PLAIN, exclude=("*.tmp",)),
        3,
        AT_FIRST,
        (Write("drop_table", 0), Capture(), Window(), Write("swap", 0), Capture(), Window()),
        seen=True,
        settled=True,
    ),
    "tables that are swapped through a name whose files stay at the source, before files that are not known": Story(
        replace(PLAIN, rename={}, data={"*.*": "none", "d1.*": "copy", "*.tmp": "none"}),
        3,
        (*AT_FIRST, Write("rename_table", 159)),
        (Write("swap", 0), Write("truncate_partitions", 1), Write("create_table", 0), Capture(), Window()),
        seen=True,
        settled=True,
    ),
    "a large table that was quarantined and made anew": Story(
        PLAIN,
        3,
        AT_FIRST,
        (
            Write("create_table", 0),
            Write("make_acid", 0),
            Write("create_again", 0),
            Capture(),
            Window(100, Meanwhile(((1, Write("add_partitions", 0), False),))),
        ),
        seen=True,
        settled=True,
        batch=1,
    ),
    "a table whose database at the target is dropped while its files are copied": Story(
        replace(PLAIN, rename={"d1": "m", "d2.c": "m.c2"}),
        3,
        AT_FIRST,
        (
            Capture(),
            Window(),
            Write("create_table", 0),
            Write("drop_database_cascade", 1),
            Capture(),
            Window(50, Meanwhile(((1, Write("create_table", 0), False), (1, Write("add_partitions", 0), False)))),
        ),
        seen=True,
        settled=True,
        patient=False,
    ),
    "a partition that goes to another name and back while it is copied": Story(
        PLAIN,
        3,
        AT_FIRST,
        (
            Capture(),
            Window(),
            Write("create_table", 0),
            Capture(),
            Window(100, Meanwhile(((1, Write("add_partitions", 0), False),))),
            Window(100, Meanwhile(((1, Write("rename_partition", 0), False),))),
            Capture(),
            Window(100, Meanwhile(((1, Write("rename_partition", 0), False),))),
        ),
        seen=True,
        settled=True,
    ),
    "swapped tables, and files that an exchange of partitions took along": Story(
        PLAIN,
        3,
        AT_FIRST,
        (
            Capture(),
            Window(),
            Write("drop_table", 0),
            Capture(),
            Read(),
            Write("insert_partition", 0),
            Write("swap", 0),
            Write("exchange_partition", 0),
            Capture(),
            Window(),
        ),
        seen=True,
        settled=True,
    ),
}


@pytest.mark.parametrize("name", BRIDGED)
def test_histories_that_once_crossed_a_bridge_without_a_hole_cross_none(name: str) -> None:
    world = play(BRIDGED[name])
    assert world.problems == []
    assert differences(world) == []
    assert holes(world) == []


def test_a_partition_that_was_renamed_twice_keeps_its_incarnation_over_a_bridge() -> None:
    """Nobody knows the files that it had in between."""
    rename, move = Write("rename_partition", 320), Write("move_partition", 0)
    before = (*AT_FIRST, Write("add_partitions", 226))
    world = play(Story(PLAIN, 3, before, (move, rename, move, rename, Capture(), Window()), False, True, True))
    assert any(window.bridges() for window in world.windows)
    assert "" not in incarnations(world).values()
