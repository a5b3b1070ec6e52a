"""Subsets of a source that a target takes: partitions by predicates over their keys, tables by their definition.

A subset is a smaller source: `narrowed` makes of an event of the whole log the event that the smaller source would
have. An ALTER that takes a table out of `where` is a drop of its name there. One that brings a table in is the arrival
of a table of which nothing is known. A rename of a partition is a drop or an addition where the subset has only one of
its names. The rest of the engine knows of no subsets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from calque.core.policy.patterns import Pattern, matches, parse_pattern
from calque.core.policy.predicates import (
    PARAMETER,
    holds,
    keys_of_partition,
    misfit,
    names_in,
    unknown_name,
)
from calque.errors import Refused
from calque.model.hive import BASIC_STATISTICS, VOLATILE, Table, location_of, projects_partitions
from calque.model.journal import Entry, EventKind, Keys
from calque.model.names import TableName, table_name
from calque.model.policy import Policy
from calque.model.predicate import Predicate

DEFINITION_NAMES = frozenset({"type", "owner", "location"})


def parse_where(text: str) -> Predicate | None:
    """Parse a policy's predicate over a table's definition; None for an empty text. Raises `Refused` for a text that is
    no predicate, for an unknown name, and for a parameter that metastores change by themselves."""
    if not text.strip():
        return None
    from calque.core.policy.predicate_parser import parse_predicate

    predicate = parse_predicate(text)
    if (refused := unknown_name(predicate, {*DEFINITION_NAMES, f"{PARAMETER}('k')"})) is not None:
        raise refused
    for name in sorted(names_in(predicate)):
        key = name.removeprefix(f"{PARAMETER}:")
        if key != name and key in BASIC_STATISTICS | VOLATILE:
            why = "It changes without anybody's doing"
            raise Refused(f'The parameter "{key}" can\'t be asked for', why, "Ask for one that people set")
    return predicate


def parsed(partitions: Iterable[tuple[str, str]]) -> Iterator[tuple[Pattern, Predicate]]:
    """Yield each pattern of tables with the predicate over their partitions, parsed."""
    for pattern, predicate in partitions:
        from calque.core.policy.predicate_parser import parse_predicate

        yield parse_pattern(pattern), parse_predicate(predicate)


class Subset:
    """A policy's `partitions` and `where`, parsed. The constructor raises `Refused` where a text is no pattern or no
    predicate."""

    def __init__(self, policy: Policy) -> None:
        ordered = sorted(policy.partitions.items(), key=lambda item: (-len(item[0]), item))
        self._partitions = tuple(parsed(ordered))
        self.where = parse_where(policy.where)
        self.is_all = not self._partitions and self.where is None
        """Whether the subset is the whole source."""
        self._of = lru_cache(maxsize=4096)(self._predicate)

    def predicate(self, name: TableName) -> Predicate | None:
        """Return the predicate over the table's partition keys: of the patterns that match, the longest decides. None
        where the policy has no predicate for the table."""
        return self._of(table_name(*name)) if self._partitions else None

    def _predicate(self, name: TableName) -> Predicate | None:
        return next((predicate for pattern, predicate in self._partitions if matches(pattern, name)), None)

    def has_table(self, table: Table) -> bool:
        """Tell whether `where` is true of the table's definition."""
        if self.where is None:
            return True
        values: dict[str, str | None] = {
            "type": table.type,
            "owner": table.owner,
            "location": location_of(table),
        }
        for name in names_in(self.where):
            if name not in values:
                values[name] = (table.parameters or {}).get(name.removeprefix(f"{PARAMETER}:"))
        return holds(self.where, values) is True

    def obstacle(self, name: TableName, table: Table) -> str:
        """Say why the predicate over the table's partitions can't be evaluated; empty where it can."""
        predicate = self.predicate(name)
        if predicate is None or not table.partition_keys:
            return ""
        if projects_partitions(table):
            return "Its partitions are made up by query engines (projection.enabled)"
        types = {column.name.lower(): column.type for column in table.partition_keys if column.name and column.type}
        return misfit(predicate, types)

    def require(self, name: TableName, table: Table) -> None:
        """Raise `Refused` where the predicate over the table's partitions can't be evaluated."""
        if why := self.obstacle(name, table):
            what = f"The policy's predicate over partitions of {name} does not fit the table"
            raise Refused(what, why, "Correct it below partitions, and reload")

    def has_partition(self, name: TableName, partition: str) -> bool:
        """Tell whether the subset has the partition. Raises `KeyMissing` where the predicate names a key that the
        partition's name does not have."""
        predicate = self.predicate(name)
        return predicate is None or has(predicate, partition)

    def left(self, name: TableName, partitions: Collection[str]) -> list[str]:
        """Return the partitions among `partitions` that the subset has, in their order. Raises `KeyMissing` as
        `has_partition` does."""
        predicate = self.predicate(name)
        return list(partitions) if predicate is None else [one for one in partitions if has(predicate, one)]


class KeyMissing(Exception):
    """The error for a predicate that names a key which a partition does not have."""


def has(predicate: Predicate, partition: str) -> bool:
    try:
        return holds(predicate, keys_of_partition(partition)) is True
    except KeyError as error:
        raise KeyMissing(f"{error.args[0]} is no partition key") from None


# Events


def narrowed(subset: Subset, entry: Entry) -> Entry | None:
    """Return the event as far as it concerns partitions of the subset. Partitions of the subset keep their places in
    the message (`Keys.numbers`). None for a scan, a facet event or a rename of a partition that concerns none of them;
    other events stay without a partition. Where a partition lacks a key of the predicate, the event is
    `EventKind.UNKNOWN`."""
    keys = entry.keys
    if keys.table is None or not keys.partitions:
        return entry
    predicate = subset.predicate(keys.table)
    if predicate is None:
        return entry
    try:
        after = [has(predicate, partition) for partition in keys.partitions]
        before = [has(predicate, partition) for partition in keys.others]
    except KeyMissing as error:
        return replace(entry, keys=Keys(EventKind.UNKNOWN, keys.table, defect=str(error)), scans=())
    if keys.kind is EventKind.RENAME_PARTITION:
        return renamed(entry, after[0], before[0])
    if all(after):
        return entry
    if not any(after) and keys.kind in (EventKind.SCAN, EventKind.FACET):
        return None
    chosen = [number for number, is_left in enumerate(after) if is_left]
    # An event without a partition of the subset stays in the log: events around it may be of one call.
    narrowed_keys = replace(
        keys,
        partitions=tuple(keys.partitions[number] for number in chosen),
        locations=tuple(keys.locations[number] for number in chosen) if keys.locations else (),
        numbers=tuple(chosen),
    )
    scans = tuple(entry.scans[number] for number in chosen) if entry.scans else ()
    return replace(entry, keys=narrowed_keys, scans=scans)


def renamed(entry: Entry, is_left: bool, was_left: bool) -> Entry | None:
    keys = entry.keys
    if is_left and was_left:
        return entry
    if is_left:
        return replace(entry, keys=replace(keys, kind=EventKind.ADD_PARTITIONS, others=()))
    if was_left:
        gone = replace(keys, kind=EventKind.DROP_PARTITIONS, partitions=keys.others, others=(), locations=())
        return replace(entry, keys=gone)
    return None


def crossed(entry: Entry, was_left: bool, is_left: bool) -> Entry | None:
    """Return the event on a table as the subset sees it. `was_left` and `is_left` say whether `where` was true of the
    table before and after the event; they differ only for events that alter or rename a table. An event that brings the
    table in is a rename from no name, one that takes it out a DROP; None where the table was and is outside."""
    keys = entry.keys
    if was_left and is_left:
        return entry
    if is_left:
        return replace(entry, keys=replace(keys, kind=EventKind.RENAME_TABLE, other=None))
    if was_left:
        name = keys.other or keys.table
        return replace(entry, keys=Keys(EventKind.DROP_TABLE, name, shape=keys.shape, transactional=keys.transactional))
    return None
