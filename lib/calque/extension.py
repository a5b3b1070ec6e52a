"""What a plugin is to the rest of calque: a frozen value that names what it adds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calque.engine.check.findings import Findings
    from calque.statements.forms import Statements
    from calque.statements.language import Language
    from calque.wiring.wiring import Wiring

    Check = Callable[[Wiring, Findings], None]


def no_statements() -> Statements:
    from calque.statements.forms import NO_STATEMENTS

    return NO_STATEMENTS


@dataclass(frozen=True, kw_only=True, slots=True)
class Plugin:
    """`name` is that of its folder, of its tests and of its page. The other fields are functions, so that a command
    loads what it needs and nothing else."""

    name: str
    statements: Callable[[], Statements] = no_statements
    checks: Callable[[], tuple[Check, ...]] = tuple
    """What `calque check` looks at besides."""


@dataclass(frozen=True, slots=True)
class App:
    """calque with these plugins; without any it is the kernel alone."""

    plugins: tuple[Plugin, ...] = ()

    def language(self) -> Language:
        """The statements of all, in the order of the plugins."""
        return language_of(self.plugins)

    def checks(self) -> tuple[Check, ...]:
        return tuple(check for plugin in self.plugins for check in plugin.checks())


@cache
def language_of(plugins: tuple[Plugin, ...]) -> Language:
    from calque.statements.language import Language

    return Language(plugin.statements() for plugin in plugins)
