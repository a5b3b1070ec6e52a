"""The laws of docs/limits.md where one remote table has several local names: for all images of a name at once."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from calque.model.names import TableName
from calque.plugins.remotes.model import Links
from support.worlds.histories import (
    AT_FIRST,
    DEATHS,
    HOLES,
    Capture,
    Release,
    Story,
    Twice,
    Window,
    Write,
    holes,
    stories,
    works,
)
from support.worlds.layers import all_differences, play
from support.worlds.links import LINKS, TEMPLATE, policies_of

HISTORIES = {"check": 15, "prove": 10_000}
LAW = settings(
    max_examples=HISTORIES.get(settings.get_current_profile_name(), 90),
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)


@LAW
@given(stories(works(others=HOLES), st.just(TEMPLATE), seen=False), LINKS)
def test_laws_1_and_2_hold_for_all_images_of_a_name(story: Story, links: Links) -> None:
    layers = play(story, policies_of(links))
    assert [layer.problems for layer in layers] == [[]] * len(layers)
    assert all_differences(layers) == []


@LAW
@given(stories(works(others=(Release(),)), st.just(TEMPLATE), seen=True), LINKS)
def test_law_3_there_is_no_bridge_where_the_evidence_has_no_holes(story: Story, links: Links) -> None:
    layers = play(story, policies_of(links))
    assert all_differences(layers) == []
    assert [holes(layer) for layer in layers] == [[]] * len(layers)


@LAW
@given(stories(works(others=(Twice(),)), st.just(TEMPLATE), seen=False), LINKS)
def test_law_4_a_window_played_twice_changes_nothing(story: Story, links: Links) -> None:
    assert all_differences(play(story, policies_of(links))) == []


@LAW
@given(stories(works(deaths=DEATHS, others=HOLES), st.just(TEMPLATE), seen=False), LINKS)
def test_law_5_dying_anywhere_loses_nothing_and_shows_nothing_wrong(story: Story, links: Links) -> None:
    layers = play(story, policies_of(links))
    assert [layer.problems for layer in layers] == [[]] * len(layers)
    assert all_differences(layers) == []


def test_two_layers_share_a_local_database_that_is_dropped_at_the_source() -> None:
    links = Links({TableName("d2", "a"): TableName("d2", "a")}, {"d1": "d1", "d2": "d2"})
    fills = (Write("create_table", 0),) * 3
    actions = (Capture(), Window(), *fills, Write("drop_database_cascade", 0), Capture(), Window())
    layers = play(Story(TEMPLATE, 3, AT_FIRST, actions, settled=True), policies_of(links))
    assert [layer.problems for layer in layers] == [[], []]
    assert all_differences(layers) == []
