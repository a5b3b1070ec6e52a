"""All shapes of tables that users have, at once, over a source of one version, the next day of the other: readers at
targets read what the source's readers read, `verify` says no less, and what can't follow is set aside with the reason.

Both targets are under `rename`, one with `data = "none"`. Rows are read as their engines would, by `judges.engines`.
Nothing here reads Avro and Presto's views, nor knows what a real Hive does with a skewed directory. A change of a
database without an event is in `test_flow`; all versions, a target with the source's names, dumps and Spark are in
`prove/test_all_shapes.py`.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from support.runs.proofs import one_a_day
from support.runs.seeds import seed
from support.services.servers import Shared
from support.services.shaped import shaped


@pytest.mark.timeout(600)
@pytest.mark.parametrize("source", one_a_day(["source-3", "source-4"], seed()))
def test_readers_of_every_shape_read_the_same_rows_at_every_target(source: str, shared: Shared, tmp_path: Path) -> None:
    with shaped(shared, source, "target-4", tmp_path, ("copy", "none")) as world:
        world.play()
        world.require_equal()
        world.require_found_out("copy")
        world.require_set_aside()
        assert world.end(signal.SIGTERM) == 0
