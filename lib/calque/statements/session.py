"""What statements are carried out with: the configured world, and what earlier statements said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from calque.errors import Refused
from calque.wiring.wiring import Wiring


def say_nothing(_text: str) -> None:
    pass


@dataclass(slots=True)
class Session:
    """One person's, or one connection's. `target` is what statements mean that name none; `database` is the one of
    names without one, from `USE`."""

    wiring: Wiring
    target: str | None = None
    database: str | None = None
    report: Callable[[str], None] = field(default=say_nothing)
    """Shows how far a long statement is, in place of what it showed before."""

    def only_target(self, name: str | None) -> str:
        """The named target, else the session's, else the only one. Raises `Refused`."""
        config = self.wiring.config
        chosen = name or self.target
        targets = config.select([chosen] if chosen else [])
        if len(targets) == 1:
            return targets[0]
        raise Refused("No target is named", f"There are {', '.join(targets)}", "Write AT and one of them")
