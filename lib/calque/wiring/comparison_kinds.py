"""What plugins compare of a target with its source, besides what the engine does."""

from __future__ import annotations

from collections.abc import Callable

from calque.engine.verify.comparison import Comparison
from calque.wiring.target import TargetWiring

ComparisonKind = Callable[[TargetWiring], Comparison | None]
"""Makes the comparison of one target; None where its policy wants none."""
