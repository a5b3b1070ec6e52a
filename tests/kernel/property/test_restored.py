"""Calque's own records are put back as they were at an earlier time, or lost: a ledger that says less than the target
shows, a journal that ends before what was shown, nothing at all. Over generated histories through the whole engine."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from calque.model.policy import Policy
from support.judges.recorded import UNKNOWN, unlike_target
from support.worlds.histories import (
    AT_FIRST,
    DEATHS,
    POLICIES,
    Capture,
    Restart,
    Story,
    Window,
    Write,
    differences,
    stories,
    works,
)
from support.worlds.restored import Restorer
from support.worlds.worlds import World

HISTORIES = {"check": 10, "prove": 20_000}
LAW = settings(
    max_examples=HISTORIES.get(settings.get_current_profile_name(), 45),
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)
COPIES = POLICIES.filter(lambda policy: policy.data == "copy" and policy.drops == "follow").map(
    lambda policy: replace(policy, max_drop=1.0)
)
WAYS = {
    "the ledger": ("copy_ledger", "restore_ledger"),
    "the journal": ("copy_journal", "restore_journal"),
    "the ledger and the journal": ("copy_state", "restore_state"),
    "the state folder beside a journal on Kafka": ("copy_folder", "restore_folder"),
    "all that calque knows": ("lose_state", "lose_state"),
}


def put_back(story: Story, way: tuple[str, str]) -> tuple[World, list[str]]:
    """The world after the story, with a copy made after a third of it and put back after two; and where the ledger said
    what the target has not."""
    actions, third = story.actions, len(story.actions) // 3
    first, second, last = actions[:third], actions[third : 2 * third], actions[2 * third :]
    keep, restore = (Write(operation, 0) for operation in way)
    player, wrong = Restorer(story), list[str]()
    player.world.published = lambda: wrong.extend(unlike_target(player.world))
    player.begin()
    for action in (*first, keep, *second, restore, *last):
        player.act(action)
    player.end()
    assert player.restored
    return player.world, [problem for problem in wrong if not problem.endswith(UNKNOWN)]


@pytest.mark.parametrize("what", WAYS)
@LAW
@given(story=stories(works(deaths=DEATHS, others=(Restart(),)), COPIES, seen=True))
def test_an_older_copy_in_its_place_converges_and_shows_nothing_that_was_not(what: str, story: Story) -> None:
    world, wrong = put_back(story, WAYS[what])
    assert world.problems == []
    assert [problem for problem in differences(world) if not is_unowned_function(what, problem)] == []
    assert wrong == []


def is_unowned_function(what: str, problem: str) -> bool:
    """Functions carry no marks: once the ledger is lost, nobody knows whose one is that the source has dropped."""
    return what == "all that calque knows" and problem.startswith("function ") and problem.endswith(" is there still")


def test_what_was_dropped_while_all_was_lost_goes_from_a_database_of_renamed_tables_too() -> None:
    policy = Policy("dr", "hq", include=("d1.*",), rename={"d1.a": "d2.aa"}, warehouse="file:/target", max_drop=1.0)
    story = Story(
        policy, 3, AT_FIRST, (Capture(), Window(), Write("drop_database_cascade", 1)), seen=True, settled=True
    )
    world, _ = put_back(story, WAYS["all that calque knows"])
    assert differences(world) == []


@pytest.mark.parametrize("what", ["the ledger", "the ledger and the journal"])
def test_a_function_that_was_made_and_dropped_since_the_copy_goes(what: str) -> None:
    policy = Policy("dr", "hq", include=("d*.*",), warehouse="file:/target", max_drop=1.0)
    before = (Capture(), Window(), Capture(), Window())
    made = (Write("create_function", 0), Capture(), Window(), Write("drop_function", 0))
    actions = (*before, *made, Capture(), Window(), Capture(), Window())
    world, _ = put_back(Story(policy, 3, AT_FIRST, actions, seen=True, settled=True), WAYS[what])
    assert differences(world) == []
