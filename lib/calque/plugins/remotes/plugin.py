"""The plugin of remote tables: its section, statements, checks, captures, watch and parts of targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calque.extension import Plugin

if TYPE_CHECKING:
    from calque.config.extras import Extra
    from calque.config.sections import SectionKind
    from calque.extension import Amendment, Check
    from calque.statements.forms import Statements
    from calque.streams.kinds import CaptureKind, WatchKind
    from calque.wiring.kinds import TargetPartsKind


def statements() -> Statements:
    from calque.plugins.remotes.statements.forms import STATEMENTS

    return STATEMENTS


def checks() -> tuple[Check, ...]:
    from calque.plugins.remotes.checks import check_links

    return (check_links,)


def sections() -> tuple[SectionKind[Any], ...]:
    from calque.plugins.remotes.config import REMOTES

    return (REMOTES,)


def amendments() -> tuple[Amendment, ...]:
    from calque.plugins.remotes.wiring.remotes import with_links

    return (with_links,)


def captures() -> tuple[CaptureKind, ...]:
    from calque.plugins.remotes.run.capture import CAPTURE

    return (CAPTURE,)


def watches() -> tuple[WatchKind, ...]:
    from calque.plugins.remotes.run.follow_links import WATCH

    return (WATCH,)


def target_parts() -> tuple[TargetPartsKind, ...]:
    from calque.plugins.remotes.wiring.linked_targets import linked

    return (linked,)


def extras() -> tuple[Extra, ...]:
    from calque.plugins.remotes.extras import EXTRAS

    return EXTRAS


PLUGIN = Plugin(
    name="remotes",
    sections=sections,
    amendments=amendments,
    statements=statements,
    checks=checks,
    captures=captures,
    watches=watches,
    target_parts=target_parts,
    extras=extras,
)
