"""Dumps: their statements parse, a recorded one is loaded into a target in memory, another is written."""

from __future__ import annotations

from pathlib import Path

from calque.app import APP
from plugins.dumps.whole.test_dump import dumped, world_of_two
from support.sources.loads import RECORDED_POLICY, LoadWorld, unpack_recorded
from support.sources.recorded_dumps import BOOTSTRAP


def test_it_works_at_all(tmp_path: Path) -> None:
    for text in ("REPL DUMP sales", "REPL LOAD sales FROM '/dumps'", "EXPORT TABLE t TO '/e'"):
        APP.language().parse(text)
    world = LoadWorld(tmp_path, RECORDED_POLICY)
    assert world.load(f"{unpack_recorded(tmp_path / 'source')}/{BOOTSTRAP}") == []
    assert world.shown("dst")
    assert dumped(world_of_two(), tmp_path / "dumps").last_event > 0
