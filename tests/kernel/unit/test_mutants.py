"""Bugs that somebody could make in fold, chain, planner and the application of hops are found by the tests.

`mutants.toml` says what is altered, `mutation.py` which tests must fail of it. `make prove` tries all mutants. `make
test` tries those of modules that were changed, and `make check` none. Where git can't tell what was changed, `make
test` tries one in 30, others each day, so that what tries them is tried.
"""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
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
SHARE = 30
"""Of so many mutants one is tried where nobody knows what was changed."""


def rotated(seed: int, share: int) -> Sequence[Mutant]:
    """Seeds that follow each other have others; `share` of them have all."""
    return MUTANTS[seed % share :: share]


def chosen(profile: str, changed: Collection[str] | None, seed: int) -> Sequence[Mutant]:
    """What a profile tries when those files were changed; with `None` it is not known which."""
    match profile, changed:
        case "prove", _:
            return MUTANTS
        case "check", _:
            return []
        case _, None:
            return rotated(seed, SHARE)
        case _:
            return [mutant for mutant in MUTANTS if str(mutant.path.relative_to(ROOT)) in changed]


CHANGED = changed_files(ROOT) if PROFILE == "test" else None
CHOSEN = chosen(PROFILE, CHANGED, seed())
SAID = (
    f"Mutants: {len(CHOSEN)} of {len(MUTANTS)}, in modules that were changed:"
    f" {', '.join(sorted({mutant.module for mutant in CHOSEN}))}"
    if CHANGED is not None
    else f"Mutants: {len(CHOSEN)} of {len(MUTANTS)}"
)


def by_killers(mutants: Sequence[Mutant]) -> Mapping[tuple[str, ...], Sequence[Mutant]]:
    """Mutants by the tests that must fail of them."""
    found = defaultdict[tuple[str, ...], list[Mutant]](list)
    for mutant in mutants:
        found[killers_in(mutant.module)].append(mutant)
    return found


TRIED = by_killers(CHOSEN)


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


def test_prove_tries_all_mutants_check_none_and_test_those_of_changed_modules() -> None:
    one = MUTANTS[0]
    file = str(one.path.relative_to(ROOT))
    of_module = [mutant for mutant in MUTANTS if mutant.module == one.module]
    assert chosen("prove", None, 0) == chosen("prove", {file}, 0) == MUTANTS
    assert chosen("check", None, 0) == chosen("check", {file}, 0) == chosen("test", {"README.md"}, 0) == []
    assert chosen("test", {file, "README.md"}, 0) == of_module
    assert chosen("test", None, 3) == rotated(3, SHARE) != []


@pytest.mark.parametrize("share", [1, 6, 12])
def test_days_that_follow_each_other_try_every_mutant(share: int) -> None:
    days = [rotated(20261129 + day, share) for day in range(share)]
    assert sorted(mutant for day in days for mutant in day) == sorted(MUTANTS)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("tests", TRIED or [pytest.param((), marks=pytest.mark.prove)], ids=" ".join)
def test_every_mutant_is_killed_and_the_sources_as_they_are_survive(
    tests: tuple[str, ...], record_property: Callable[[str, object], None]
) -> None:
    record_property("chosen", SAID)
    unaltered, *found = killers(tests, [None, *TRIED[tests]])
    survivors = [f"{one.module}: {one.name}" for one, killer in zip(TRIED[tests], found, strict=True) if not killer]
    assert (unaltered, survivors) == ("", [])
