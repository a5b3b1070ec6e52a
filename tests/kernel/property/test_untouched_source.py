"""With `data = "none"` a target's objects lie where the source's do, and nothing there is changed but by the source.

The metastores in memory make directories as real ones do (`tests/contract` holds both beside each other), so that a
table or partition that were added at a place that the source has left would show.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from calque.model.ledger import DatabaseRow
from support.worlds.histories import (
    AT_FIRST,
    DEATHS,
    HOLES,
    PLAIN,
    POLICIES,
    Capture,
    Player,
    Reread,
    Story,
    Window,
    Write,
    differences,
    stories,
    works,
)

HISTORIES = {"check": 30, "prove": 20_000}
DATA = st.sampled_from(["none", "none", {"*.*": "none", "d1.a": "copy", "d2.*": "copy"}, {"d1.*": "none"}])
METADATA_ONLY = st.builds(lambda policy, data: replace(policy, data=data), POLICIES, DATA)


def played(story: Story) -> Player:
    player = Player(story)
    player.begin()
    for action in story.actions:
        player.act(action)
    player.end()
    return player


def test_tables_that_users_made_managed_take_no_files_along_and_become_external_again() -> None:
    player = Player(Story(replace(PLAIN, data="none"), 3, AT_FIRST, settled=True))
    player.begin()
    world = player.world
    for name, stored in world.stored_at_target():
        parameters = {**(stored.table.parameters or {}), "EXTERNAL": "FALSE"}
        world.target_store.alter_table(name, replace(stored.table, parameters=parameters, type="MANAGED_TABLE"))
    for seed in range(10):
        player.act(Write("rename_partition", seed))
    player.act(Capture())
    player.act(Window())
    player.act(Reread("d1"))
    player.act(Reread("d2"))
    player.end()
    assert player.touched == []
    assert {stored.table.type for _, stored in world.stored_at_target()} == {"EXTERNAL_TABLE"}


def test_a_warehouse_that_is_the_source_s_own_is_refused() -> None:
    create = (Write("create_database", 0), *(Write("create_table", seed) for seed in range(5)))
    player = Player(Story(replace(PLAIN, data="none", warehouse="file:/source"), 4, create))
    player.begin()
    player.world.settle()
    player.look_for_strangers()
    [row] = [row for row in player.world.ledger.tables().values() if isinstance(row, DatabaseRow)]
    assert row.reason.startswith("Database d2_dr would be made where the source's databases are")
    assert player.touched == []


@settings(
    max_examples=HISTORIES.get(settings.get_current_profile_name(), 110),
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)
@given(stories(works(deaths=DEATHS, others=HOLES), METADATA_ONLY, seen=False))
def test_nothing_lies_below_the_source_but_what_its_writer_left_there(story: Story) -> None:
    player = played(story)
    assert player.touched == []
    assert player.world.problems == []
    assert differences(player.world) == []
