"""What a running process takes over of a configuration that it reads again, and what it can't."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from calque.config import Config
from calque.config.conflicts import unsupported
from calque.errors import Refused

FIXED = (("source", "name"), ("source", "metastore"), ("state", ""), ("journal", ""), ("serve", ""))
"""Sections, and keys of them, that the journal and all that is open depend on."""


@dataclass(frozen=True, slots=True)
class Reread:
    """How a process reads its configuration again, and which of the targets there are its own: those that were `named`
    at its start, all where none was; with None it has none."""

    load: Callable[[], Config]
    named: Sequence[str] | None = ()

    def targets(self, config: Config) -> tuple[str, ...]:
        if self.named is None:
            return ()
        return tuple(name for name in config.targets if not self.named or name in self.named)


@dataclass(frozen=True, slots=True)
class Difference:
    """What a process has to end and to begin; the rest goes on undisturbed."""

    capture: bool
    ended: tuple[str, ...]
    begun: tuple[str, ...]

    @property
    def added(self) -> tuple[str, ...]:
        return tuple(name for name in self.begun if name not in self.ended)

    @property
    def removed(self) -> tuple[str, ...]:
        return tuple(name for name in self.ended if name not in self.begun)


def difference(before: Config, now: Config, had: Sequence[str], has: Sequence[str]) -> Difference:
    """From the targets that the process `had` to those that it `has`."""
    both = [name for name in had if name in has]
    shared = before.source != now.source or before.window != now.window
    changed = {name for name in both if shared or before.targets[name] != now.targets[name]}
    return Difference(
        before.source != now.source or taken(before) != taken(now),
        tuple(name for name in had if name in changed or name not in has),
        tuple(name for name in has if name in changed or name not in had),
    )


def taken(config: Config) -> object:
    """What capture looks at for its targets."""
    return {name: (target.include, target.exclude) for name, target in config.targets.items()}


def require_reloadable(before: Config, now: Config) -> None:
    """`Refused` where the difference needs a new start, or can't be had at all."""
    for refusal in unsupported(now):
        raise refusal
    for section, key in FIXED:
        was, wanted = (getattr(config, section) for config in (before, now))
        if (getattr(was, key) != getattr(wanted, key)) if key else (was != wanted):
            raise Refused(
                f"[{section}]{' ' * bool(key)}{key} changed, and can't be taken over while calque runs",
                "the journal, and everything that is open, belongs to it",
                "Put it back, or stop `calque run` and start it again",
            )
    for name in now.targets.keys() & before.targets.keys():
        if now.targets[name].data != before.targets[name].data:
            raise Refused(
                f'targets.{name}: data = "{before.targets[name].data}" can\'t become "{now.targets[name].data}"',
                "what its tables point to can't be changed under their readers",
                "Put it back, or give the target another name and other names of tables",
            )
