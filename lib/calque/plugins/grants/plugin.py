"""The plugin of grants: a follower beside each target, a check, and a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calque.extension import Plugin

if TYPE_CHECKING:
    from calque.extension import TargetCheck
    from calque.streams.followers import Follower
    from calque.wiring.comparison_kinds import ComparisonKind


def followers() -> tuple[Follower, ...]:
    from calque.plugins.grants.run import FOLLOWER

    return (FOLLOWER,)


def target_checks() -> tuple[TargetCheck, ...]:
    from calque.plugins.grants.checks import check_grants

    return (check_grants,)


def comparisons() -> tuple[ComparisonKind, ...]:
    from calque.plugins.grants.wiring import compared_grants

    return (compared_grants,)


PLUGIN = Plugin(name="grants", followers=followers, target_checks=target_checks, comparisons=comparisons)
