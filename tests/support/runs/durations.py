"""How long tests take, remembered from run to run, and the order that follows: the longest files first, so that several
processes end together.

A run remembers in pytest's cache, `.pytest_cache/v/calque/durations`: seconds by test, the longest first. Files that
nobody has run here have the seconds of `tests/durations.json`, which is written anew from what this checkout remembers
by `PYTHONPATH=tests python -m support.runs.durations`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property

import pytest

from support.places import ROOT, TESTS

Seconds = Mapping[str, float]
"""By test, as pytest names it, or by file."""
PLACE = "calque/durations"
START = TESTS / "durations.json"
LEAST_SECONDS = 3.0
"""Of files in `START`."""


def function_of(test: str) -> str:
    """The test without its parameters."""
    return test.partition("[")[0]


def file_of(test: str) -> str:
    return test.partition("::")[0]


def remembered(before: Seconds, now: Seconds) -> Seconds:
    """What is known after a run, the longest first: of a function that it tried, what it tried alone."""
    tried = {function_of(test) for test in now}
    kept = {test: seconds for test, seconds in before.items() if function_of(test) not in tried}
    return dict(sorted((kept | now).items(), key=lambda item: -item[1]))


def seconds_of_files(tests: Iterable[str], known: Seconds, start: Seconds) -> Seconds:
    """What the files of the tests will take. A test whose parameters are new takes what its function's tests took on
    average."""
    by_function = defaultdict[str, list[float]](list)
    for test, seconds in known.items():
        by_function[function_of(test)].append(seconds)
    known_files = {file_of(test) for test in known}
    found = defaultdict[str, float](float)
    for test in tests:
        file, took = file_of(test), by_function.get(function_of(test), [0.0])
        found[file] = found[file] + sum(took) / len(took) if file in known_files else start.get(file, 0.0)
    return found


class Durations:
    """A plugin that remembers and sorts. Processes of one run must all have the same order: those that pytest-xdist
    starts are told by the first one what it remembers."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.from_first: Seconds | None = getattr(config, "workerinput", {}).get(PLACE)
        self.now = defaultdict[str, float](float)

    @property
    def cache(self) -> pytest.Cache | None:
        return getattr(self.config, "cache", None)

    def read(self) -> Seconds:
        return dict(self.cache.get(PLACE, {})) if self.cache is not None else {}

    @cached_property
    def known(self) -> Seconds:
        return self.read() if self.from_first is None else self.from_first

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: object) -> None:
        node.workerinput[PLACE] = self.known  # type: ignore[attr-defined]

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        start = json.loads(START.read_text(encoding="utf-8"))
        seconds = seconds_of_files([item.nodeid for item in items], self.known, start)
        items.sort(key=lambda item: -seconds[file_of(item.nodeid)])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.now[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        if self.from_first is None and self.cache is not None and self.now:
            self.cache.set(PLACE, remembered(self.read(), {test: round(took, 2) for test, took in self.now.items()}))


def write_start() -> None:
    known: Seconds = json.loads((ROOT / ".pytest_cache" / "v" / PLACE).read_text(encoding="utf-8"))
    files = defaultdict[str, float](float)
    for test, seconds in known.items():
        files[file_of(test)] += seconds
    long = {file: round(took) for file, took in files.items() if took >= LEAST_SECONDS}
    START.write_text(json.dumps(dict(sorted(long.items(), key=lambda item: -item[1])), indent=2) + "\n")


if __name__ == "__main__":
    write_start()
