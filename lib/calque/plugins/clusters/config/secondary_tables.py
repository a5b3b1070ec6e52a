"""The tables that statements add to a target's policy, or take from it, over what the file says: `ALTER TABLE …
SECONDARY CLUSTER`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from calque.config.plugs import Config, Target


@dataclass(frozen=True, slots=True)
class SecondaryTable:
    """The newest word of statements on a table of a target: whether the target takes it, and which of its partitions.
    `table` is the name at the source, `database.table`. `partitions` is a predicate; an empty one leaves the choice to
    the file."""

    table: str
    is_taken: bool
    partitions: str = ""


def amended(config: Config, tables: Mapping[str, Sequence[SecondaryTable]]) -> Config:
    """Return the configuration with these words of statements, given by target, added to the policies of its
    targets."""
    targets = {name: amended_target(target, tables.get(name, ())) for name, target in config.targets.items()}
    return replace(config, targets=targets) if targets != config.targets else config


def amended_target(target: Target, tables: Sequence[SecondaryTable]) -> Target:
    """Return the target with its file's policy changed by these words. The last word on a table counts, and words of an
    earlier call are forgotten. A table that the file's `exclude` leaves out stays out."""
    keys = target.written or target.keys
    if not tables:
        return target if target.written is None else replace(target, keys=keys, written=None)
    newest = {one.table: one for one in tables}
    partitions = {pattern: text for pattern, text in keys.partitions.items() if pattern not in newest}
    update: dict[str, Any] = {
        "include": (
            *keys.include,
            *(name for name, one in newest.items() if one.is_taken and name not in keys.include),
        ),
        "exclude": (*keys.exclude, *(name for name, one in newest.items() if not one.is_taken)),
        "partitions": partitions | {name: one.partitions for name, one in newest.items() if one.partitions},
    }
    return replace(target, keys=keys.model_copy(update=update), written=keys)
