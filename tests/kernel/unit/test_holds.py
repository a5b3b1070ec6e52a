"""Epochs that readers hold."""

from __future__ import annotations

from pathlib import Path

from calque.adapters.control import ControlStore
from calque.control.epoch_holds import held_since, hold


def test_the_oldest_hold_counts_until_its_time_is_over(tmp_path: Path) -> None:
    control = ControlStore(tmp_path)
    assert held_since(control, "dr", 10) is None
    first = hold(control, "dr", 5, 100)
    hold(control, "dr", 7, 200)
    hold(control, "other", 1, 200)
    assert held_since(control, "dr", 99) == 5
    assert held_since(control, "dr", 100) == 7
    assert control.read(first) is None
    assert held_since(control, "dr", 200) is None
