"""Clusters as a plugin: what they add, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calque.extension import Plugin

if TYPE_CHECKING:
    from calque.extension import Check
    from calque.statements.forms import Statements


def statements() -> Statements:
    from calque.plugins.clusters.statements.forms import STATEMENTS

    return STATEMENTS


def checks() -> tuple[Check, ...]:
    from calque.plugins.clusters.api.matching import check_clusters

    return (check_clusters,)


PLUGIN = Plugin(name="clusters", statements=statements, checks=checks)
