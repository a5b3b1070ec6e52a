"""Remote tables as a plugin: what they add, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calque.extension import Plugin

if TYPE_CHECKING:
    from calque.extension import Check
    from calque.statements.forms import Statements


def statements() -> Statements:
    from calque.plugins.remotes.statements.forms import STATEMENTS

    return STATEMENTS


def checks() -> tuple[Check, ...]:
    from calque.plugins.remotes.checks import check_links

    return (check_links,)


PLUGIN = Plugin(name="remotes", statements=statements, checks=checks)
