"""What statements say of a target's tables, in place of what the file says: `ALTER TABLE … SECONDARY CLUSTER`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from calque.config.plugs import Config, Target


@dataclass(frozen=True, slots=True)
class SecondaryTable:
    """A table of a target: whether it is taken, and which of its partitions. `table` is its name at the source,
    `database.table`; an empty `partitions` leaves the choice to the file."""

    table: str
    is_taken: bool
    partitions: str = ""


def amended(config: Config, tables: Mapping[str, Sequence[SecondaryTable]]) -> Config:
    """The configuration with these tables, by target."""
    targets = {name: amended_target(target, tables.get(name, ())) for name, target in config.targets.items()}
    return replace(config, targets=targets) if targets != config.targets else config


def amended_target(target: Target, tables: Sequence[SecondaryTable]) -> Target:
    """The newest word on a table counts; words of before are forgotten. What the file's `exclude` leaves out stays
    out."""
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
