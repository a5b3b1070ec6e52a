"""Clusters as a plugin: what they add, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calque.extension import Plugin

if TYPE_CHECKING:
    from calque.statements.forms import Statements


def statements() -> Statements:
    from calque.plugins.clusters.statements.forms import STATEMENTS

    return STATEMENTS


PLUGIN = Plugin(name="clusters", statements=statements)
