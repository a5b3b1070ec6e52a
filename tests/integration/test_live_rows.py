"""Laws 1 and 2 of the design on rows: what readers of files see while the source never stands still."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from liverows import live

READS = int(os.environ.get("CALQUE_READS", "500"))
"""At each of two targets."""
SEED = int(os.environ.get("CALQUE_SEED", str(time.time_ns() % 100_000)))


@pytest.mark.timeout(600)
def test_readers_of_rows_see_only_what_the_source_had_and_in_its_order(tmp_path: Path) -> None:
    live(tmp_path, READS, SEED)
