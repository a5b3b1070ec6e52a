"""The live proof in memory: it finds nothing wrong with calque as it is, and wrong planners out.

`tests/prove/test_live.py` has the same with real servers.
"""

from __future__ import annotations

import json
import subprocess

import pytest

from support.faults.wrong import WRONG
from support.programs import program
from support.worlds.liveworlds import POLICIES, watched

SEEDS = range(3)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_observation_is_a_state_of_the_source_and_none_is_older_than_the_one_before(policy: str) -> None:
    for seed in SEEDS:
        found = watched(policy, seed)
        assert found.problems == [], f"seed {seed}"
        assert found.observations > 200
        assert found.changes > 20


@pytest.mark.parametrize("planner", WRONG)
def test_a_wrong_planner_is_found_out(planner: str) -> None:
    run = [*program("support.faults.wrong"), planner, "support.worlds.liveworlds", *map(str, SEEDS)]
    done = subprocess.run(run, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [policy for policy in POLICIES if not any(verdict["problems"] for verdict in found[policy])] == []


@pytest.mark.parametrize("planner", WRONG)
def test_a_wrong_planner_alters_one_place_of_its_module(planner: str) -> None:
    mutant = WRONG[planner]
    assert mutant.path.read_text(encoding="utf-8").count(mutant.old) == 1
