"""Bugs that somebody could make in fold, chain, planner and the application of hops are found by the tests.

`mutants.toml` says what is altered, `mutation.py` which tests must fail of it. `make prove` tries all mutants. `make
test` tries a ninth of them, another one each day, and all in modules that were changed; `make check` tries a few.
"""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import settings

from support.faults.mutation import ROOT, Mutant, killers_in
from support.programs import program
from support.runs.changes import changed_files
from support.runs.seeds import seed

MUTANTS = [
    Mutant(module, name, old, new)
    for module, bugs in tomllib.loads(Path(__file__).with_name("mutants.toml").read_text(encoding="utf-8")).items()
    for name, (old, new) in bugs.items()
]
PROFILE = settings.get_current_profile_name()
SHARE = {"check": 12, "test": 9}.get(PROFILE, 1)
"""One of so many is tried."""


def rotated(seed: int, share: int) -> Sequence[Mutant]:
    """Seeds that follow each other have others; `share` of them have all."""
    return MUTANTS[seed % share :: share]


def in_changed_modules() -> Sequence[Mutant]:
    changed = changed_files(ROOT) or frozenset()
    return [mutant for mutant in MUTANTS if str(mutant.path.relative_to(ROOT)) in changed]


ROTATED = rotated(seed(), SHARE)
CHANGED = [mutant for mutant in in_changed_modules() if mutant not in ROTATED] if PROFILE == "test" else []
CHOSEN = (
    f"Mutants: {len(ROTATED)} of {len(MUTANTS)}, one in {SHARE} from number {seed() % SHARE} on, and {len(CHANGED)} in"
    f" modules that were changed: {', '.join(sorted({mutant.module for mutant in CHANGED})) or 'none'}"
)


def by_killers(mutants: Sequence[Mutant]) -> Mapping[tuple[str, ...], Sequence[Mutant]]:
    """Mutants by the tests that must fail of them."""
    found = defaultdict[tuple[str, ...], list[Mutant]](list)
    for mutant in mutants:
        found[killers_in(mutant.module)].append(mutant)
    return found


TRIED = by_killers([*ROTATED, *CHANGED])


def killers(tests: Sequence[str], mutants: Sequence[Mutant | None]) -> list[str]:
    """The first test that fails with each mutant, or with the sources as they are; empty where all pass."""
    run = program("support.faults.mutation")
    done = subprocess.run(run, input=json.dumps([tests, mutants]), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.module}: {mutant.name}")
def test_a_mutant_alters_one_place_of_its_module(mutant: Mutant) -> None:
    found = mutant.path.read_text(encoding="utf-8").count(mutant.old)
    assert found == 1, f"{mutant.old!r} is {found} times in {mutant.module}: say in mutants.toml what is there now"


@pytest.mark.parametrize("share", [1, 6, 12])
def test_days_that_follow_each_other_try_every_mutant(share: int) -> None:
    days = [rotated(20261129 + day, share) for day in range(share)]
    assert sorted(mutant for day in days for mutant in day) == sorted(MUTANTS)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("tests", TRIED, ids=" ".join)
def test_every_mutant_is_killed_and_the_sources_as_they_are_survive(
    tests: tuple[str, ...], record_property: Callable[[str, object], None]
) -> None:
    """In `make check`, where the same tests try the sources as they are anyway, only the mutants."""
    record_property("chosen", CHOSEN)
    unaltered = [] if PROFILE == "check" else [None]
    found = killers(tests, [*unaltered, *TRIED[tests]])
    survivors = [
        f"{one.module}: {one.name}"
        for one, killer in zip(TRIED[tests], found[len(unaltered) :], strict=True)
        if not killer
    ]
    assert (found[: len(unaltered)], survivors) == ([""] * len(unaltered), [])
