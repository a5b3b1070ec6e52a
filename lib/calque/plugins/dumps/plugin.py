"""The plugin of dumps: its section of the configuration, and its statements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calque.extension import Plugin

if TYPE_CHECKING:
    from calque.config.sections import SectionKind
    from calque.statements.forms import Statements


def statements() -> Statements:
    from calque.plugins.dumps.statements.forms import STATEMENTS

    return STATEMENTS


def sections() -> tuple[SectionKind[Any], ...]:
    from calque.plugins.dumps.config import REPL

    return (REPL,)


PLUGIN = Plugin(name="dumps", sections=sections, statements=statements)
