"""The number that decides what a run draws: the day's, unless `CALQUE_SEED` says another.

All processes of a run have it from the environment, where `tests/conftest.py` puts it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

SEED, HISTORIES = "CALQUE_SEED", "CALQUE_HISTORIES"
APART = 1000
"""Between the first histories of two seeds."""


def settle_seed(*, proving: bool) -> None:
    """Puts the seed where this process and all that it starts find it: in proofs a new one, otherwise the day's."""
    os.environ.setdefault(SEED, str(time.time_ns() % 100_000) if proving else time.strftime("%Y%m%d"))


def seed(environment: Mapping[str, str] = os.environ) -> int:
    return int(environment[SEED])


def history_seeds(
    number: int, most: int | None = None, environment: Mapping[str, str] = os.environ, times: int = 1
) -> range:
    """Seeds of so many histories, or of `times` as many as `CALQUE_HISTORIES` says, but for no more than `most`.

    With `CALQUE_SEED=7`, `history_seeds(40)` is 7000 to 7039.
    """
    wished = int(environment[HISTORIES]) * times if HISTORIES in environment else number
    first = seed(environment) * APART
    return range(first, first + (wished if most is None else min(wished, most)))
