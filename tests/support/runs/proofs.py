"""Tests that only `make prove` runs, of files whose other tests `make test` runs: `@pytest.mark.prove`, also of one
case among others, `pytest.param(…, marks=pytest.mark.prove)`.

In any other profile of hypothesis they are deselected, and the run says at its end how many. `make prove` chooses those
of `contract/` and `integration/` by the marker.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from hypothesis import settings

MARKER = "prove"
LEFT = pytest.StashKey[int]()
"""How many tests a run has deselected."""


def is_proving() -> bool:
    return settings.get_current_profile_name() == "prove"


def one_a_day(values: Sequence[object], seed: int) -> Sequence[ParameterSet]:
    """Parameters of a test of which `make test` tries one, on each day another, and `make prove` all."""
    today = None if is_proving() else values[seed % len(values)]
    return [pytest.param(value, marks=() if value == today else pytest.mark.prove) for value in values]


def one_a_day_or_all(values: Sequence[str], seed: int) -> Sequence[ParameterSet]:
    """A parameter that is a row of values, which a test takes one after the other: `make test` tries rows of one, on
    each day another, and `make prove` the row of all."""
    today = [] if is_proving() else [pytest.param((value := values[seed % len(values)],), id=value)]
    return [*today, pytest.param(tuple(values), marks=pytest.mark.prove, id="all")]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left = [] if is_proving() else [item for item in items if item.get_closest_marker(MARKER)]
    if left:
        items[:] = [item for item in items if item not in left]
        config.hook.pytest_deselected(items=left)
    config.stash[LEFT] = len(left)
    if hasattr(config, "workeroutput"):
        config.workeroutput[MARKER] = len(left)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """All processes of pytest-xdist collect, and deselect, the same tests."""
    node.config.stash[LEFT] = getattr(node, "workeroutput", {}).get(MARKER, 0)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if left := config.stash.get(LEFT, 0):
        terminalreporter.write_line(f"Left to `make prove`: {left} tests")
