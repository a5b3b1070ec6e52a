"""Bugs that somebody could make in fold, chain, planner and the application of hops are found by the tests.

`mutants.toml` says what is altered, `mutation.py` which tests must fail of it.
"""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path

import pytest
from hypothesis import settings

from support.faults.mutation import Mutant
from support.programs import program

MUTANTS = [
    Mutant(module, name, old, new)
    for module, bugs in tomllib.loads(Path(__file__).with_name("mutants.toml").read_text(encoding="utf-8")).items()
    for name, (old, new) in bugs.items()
]
TRIED = MUTANTS[:: len(MUTANTS) // 3] if settings.get_current_profile_name() == "check" else MUTANTS


def killers(mutants: list[Mutant | None]) -> list[str]:
    """The first test that fails with each mutant, or with the sources as they are; empty where all pass."""
    run = program("support.faults.mutation")
    done = subprocess.run(run, input=json.dumps(mutants), capture_output=True, text=True, timeout=580, check=False)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.module}: {mutant.name}")
def test_a_mutant_alters_one_place_of_its_module(mutant: Mutant) -> None:
    found = mutant.path.read_text(encoding="utf-8").count(mutant.old)
    assert found == 1, f"{mutant.old!r} is {found} times in {mutant.module}: say in mutants.toml what is there now"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("half", [0, 1])
def test_every_mutant_is_killed_and_the_sources_as_they_are_survive(half: int) -> None:
    tried = TRIED[half::2]
    unaltered, *found = killers([None, *tried])
    assert unaltered == ""
    assert [f"{one.module}: {one.name}" for one, killer in zip(tried, found, strict=True) if not killer] == []
