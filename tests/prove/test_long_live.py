"""The live proof for long, and on real servers that it finds wrong planners out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.faults.wrong import WRONG
from support.programs import program
from support.runs.seeds import seed
from support.services.live import deployed, late, live, until_found_out
from support.services.servers import Shared, shared_servers

OBSERVATIONS = int(os.environ.get("CALQUE_OBSERVATIONS", "30000"))
"""Of each source; all of them with rows."""
LATE = 0.05
"""Seconds between the calls of a wrong planner, in which readers look."""
SEED = seed()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    with shared_servers(tmp_path_factory.mktemp) as servers:
        yield servers


@pytest.mark.timeout(0)
@pytest.mark.parametrize("version", [3, 4])
def test_readers_see_only_what_the_source_had_and_in_its_order_for_long(
    version: int, shared: Shared, tmp_path: Path
) -> None:
    with deployed(shared, version, tmp_path, SEED) as deployment:
        live(deployment, OBSERVATIONS)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("planner", WRONG)
def test_a_wrong_planner_is_found_out_on_real_servers(planner: str, shared: Shared, tmp_path: Path) -> None:
    with deployed(shared, 3, tmp_path, SEED) as deployment, late(deployment, LATE):
        deployment.program = (*program("support.faults.wrong")[1:], planner, "calque.cli")
        until_found_out(deployment)
