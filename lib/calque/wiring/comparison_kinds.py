"""The kind of comparison that plugins add to those of the engine between a target and its source."""

from __future__ import annotations

from collections.abc import Callable

from calque.engine.verify.comparison import Comparison
from calque.wiring.target import TargetWiring

ComparisonKind = Callable[[TargetWiring], Comparison | None]
"""A function that makes the comparison of one target; it returns None where the target's policy wants none."""
