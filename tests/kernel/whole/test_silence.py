"""Not being answered for a while, anywhere in any history: who goes on is never stuck, and copies nothing twice."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from kernel.whole.test_crashes import ALL, BRIEF, SEED, alive, check, copies
from support.faults.crashes import HISTORIES
from support.faults.silence import Silence, played_in_silence

EACH = 2 if BRIEF else 5
"""Places of each history that are tried."""
CALLS = (1, 3)
"""That fail in a row."""


@cache
def calls_of(history: str) -> int:
    """How many calls an undisturbed one makes."""
    with TemporaryDirectory() as root:
        never = Silence(2**62, 0)
        played_in_silence(history, Path(root), never)
        return never.answered


def silences() -> Iterator[tuple[str, Silence]]:
    rng = random.Random(SEED)
    for history in HISTORIES:
        calls = range(calls_of(history))
        for first in calls if ALL else sorted(rng.sample(calls, EACH)):
            for times in CALLS if ALL else [rng.choice(CALLS)]:
                yield history, Silence(first, times)


def test_whoever_is_not_answered_for_a_while_goes_on_and_copies_nothing_twice(tmp_path: Path) -> None:
    silent = 0
    for number, (history, silence) in enumerate(silences()):
        root = tmp_path / str(number)
        try:
            play = played_in_silence(history, root, silence)
            again = copies(play.world) - alive(history).copied
            assert not again, f"copied twice: {again}"
            with play.world.uninterrupted():
                check(play)
        except Exception as error:
            raise AssertionError(f"{history}: {silence}") from error
        silent += bool(silence.unanswered)
        shutil.rmtree(root, ignore_errors=True)
    # One that is to be silent at its last calls may end before.
    assert silent > number / 2


def test_directories_are_claimed_for_a_ledger_whose_id_was_recorded_though_it_was_silent_first(tmp_path: Path) -> None:
    play = played_in_silence("windows", tmp_path, Silence(92, 1))
    with play.world.uninterrupted():
        check(play)
