"""Laws 1 and 2 of the design on real servers: readers of targets in every mode, while a source never stands still.

That they would see it if calque planned otherwise, `tests/kernel/whole/test_live_proof.py` shows, and
`test_long_live.py` with real servers. That one has both versions for long; this one finds in minutes what is often
wrong.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.runs.seeds import seed
from support.services.live import deployed, live
from support.services.servers import Shared, shared_servers

OBSERVATIONS = int(os.environ.get("CALQUE_OBSERVATIONS", "1200"))
"""Of each source."""
SEED = seed()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    with shared_servers(tmp_path_factory.mktemp) as servers:
        yield servers


@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", [3 + SEED % 2])
def test_readers_see_only_what_the_source_had_and_in_its_order(version: int, shared: Shared, tmp_path: Path) -> None:
    """A source of one version, of the other one with the next seed."""
    with deployed(shared, version, tmp_path, SEED) as deployment:
        live(deployment, OBSERVATIONS)
