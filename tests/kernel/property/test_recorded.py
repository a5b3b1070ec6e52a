"""The ledger's rows, put together, are what the target has: at each epoch, for each table that the epoch covers, over
generated histories through the whole engine. Where calque can't know, the rows say so."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from calque.model.policy import Policy
from support.judges.recorded import UNKNOWN, unlike_target
from support.worlds.histories import (
    AT_FIRST,
    BETWEEN,
    DEATHS,
    HOLES,
    POLICIES,
    Capture,
    Meanwhile,
    Player,
    Read,
    Reread,
    Story,
    Window,
    Write,
    stories,
    works,
)

HISTORIES = {"check": 15, "prove": 20_000}
LAW = settings(
    max_examples=HISTORIES.get(settings.get_current_profile_name(), 110),
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)
LOSSES = st.builds(Write, st.sampled_from(["purge", "forget", "back_up", "restore"]), st.integers(0, 2))


def has_files(policy: Policy) -> bool:
    """What a policy keeps that is dropped at the source has no rows."""
    return policy.data == "copy" and policy.drops == "follow"


COPIES = POLICIES.filter(has_files).map(lambda policy: replace(policy, max_drop=1.0))


def watched(story: Story) -> list[str]:
    """What was wrong when an epoch was published; now and then all but the newest ones are forgotten before."""
    player, found = Player(story), list[str]()

    def look() -> None:
        ledger = player.world.ledger
        last = ledger.last_epoch()
        assert last is not None
        if last.epoch % 3 == 0:
            ledger.forget(last.epoch - last.event_id % 3)
        found.extend(unlike_target(player.world))

    player.world.published = look
    player.begin()
    for action in story.actions:
        player.act(action)
    player.end()
    return found


@LAW
@given(stories(works(deaths=DEATHS, others=HOLES), COPIES, seen=False))
def test_the_ledger_says_what_the_target_has_wherever_calque_dies(story: Story) -> None:
    assert watched(story) == []


@LAW
@given(
    stories(
        works(deaths=DEATHS, others=HOLES),
        COPIES.flatmap(
            lambda policy: st.sampled_from([replace(policy, consistency="database"), replace(policy, atomicity="rows")])
        ),
        seen=False,
    )
)
def test_the_ledger_says_what_the_target_has_whatever_is_promised_to_readers(story: Story) -> None:
    assert watched(story) == []


@LAW
@given(stories(works(BETWEEN, DEATHS, others=HOLES) | LOSSES, COPIES, seen=False))
def test_after_a_gap_the_ledger_says_what_the_target_has_or_that_it_is_not_known(story: Story) -> None:
    assert [problem for problem in watched(story) if not problem.endswith(UNKNOWN)] == []


def test_after_a_gap_what_a_window_that_died_had_done_is_not_known() -> None:
    """The ledger had no row yet of what it made, and none any more of what it dropped."""
    policy = Policy("dr", "hq", include=("d*.*",), warehouse="file:/target", max_drop=1.0)
    made = (Write("create_table", 0), Write("create_table", 0))
    dropped = (Write("drop_database_cascade", 1),)
    for writes, point in product((made, dropped), range(0, 26, 2)):
        window = Window(100, Meanwhile(deaths=(point,)))
        actions = (Capture(), Window(100), *writes, Capture(), window, Write("forget", 0))
        story = Story(policy, 3, AT_FIRST, actions, settled=True)
        assert [problem for problem in watched(story) if not problem.endswith(UNKNOWN)] == [], point


def test_a_table_that_is_read_and_gone_is_told_before_it_goes_wherever_calque_dies() -> None:
    policy = Policy("dr", "hq", include=("d*.*",), warehouse="file:/target", max_drop=1.0)
    work = (Capture(), Reread("d2"), Write("add_partitions", 0), Write("rename_table", 17), Capture())
    for point in range(1, 10):
        actions = (*work, Read(Meanwhile(deaths=(point,))), Window(50))
        assert watched(Story(policy, 3, AT_FIRST, actions, settled=True)) == [], point


def test_what_a_waiting_table_shows_is_told_wherever_the_publication_dies() -> None:
    policy = Policy("dr", "hq", include=("d*.*",), warehouse="file:/target", max_drop=1.0, consistency="database")
    work = (Write("rename_partition", 1), Capture(), Write("insert_partition", 1), Capture())
    for point in range(10, 30):
        last = (Write("exchange_partition", 1), Capture(), Window(50, Meanwhile(deaths=(point,))))
        story = Story(policy, 3, (*AT_FIRST, Write("add_partitions", 1)), (Capture(), *work, *last), settled=True)
        assert watched(story) == [], point
