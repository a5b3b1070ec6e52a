"""Copy the files that definitions point to, to addresses made of their content, before the definitions are written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from calque.core.attached import (
    KEY,
    PARKED,
    Thing,
    address,
    doubted,
    function_pointing,
    is_file,
    parameters_of,
    pointing,
)
from calque.core.compare import Difference, DifferenceKind
from calque.core.layout import place
from calque.engine.files.stage import ContentLost
from calque.engine.sides.sides import TargetSide
from calque.errors import Refused
from calque.model.hive import Function, Partition, Table
from calque.model.names import TableName
from calque.ports import CopyTask, Storage


@dataclass(slots=True)
class Attachments:
    """Of one target. What was looked at is remembered, for as long as this is kept: not longer than a window."""

    side: TargetSide
    known: dict[str, str] = field(default_factory=dict)

    def of(self, thing: Thing) -> Thing:
        """The definition with its files at the target. Raises `Refused` for one that is not there, `ContentLost` for
        one that changes meanwhile."""
        return thing if self.side.policy.data == "none" else pointing(thing, self.copied)

    def of_function(self, function: Function) -> Function:
        """The same of a function's resources."""
        return function if self.side.policy.data == "none" else function_pointing(function, self.copied)

    def copied(self, url: str) -> str:
        """The address of the file, which is there by now."""
        if url not in self.known:
            at = address_of(self.side.storage, self.side.policy.warehouse, url)
            if at is None:
                raise Refused(
                    f"A definition points to {url}", "there is no such file", "Put it there, or alter the definition"
                )
            self.copy(url, at)
            self.known[url] = at
        return self.known[url]

    def copy(self, url: str, at: str) -> None:
        storage = self.side.storage
        found = storage.files([url, at])
        if at in found or url not in found:
            return
        (result,) = storage.copy([CopyTask(url, at, found[url].size, found[url].modified_ns)])
        if result.problem or not at.endswith(address("", result.checksum, url)):
            raise ContentLost(url, result.problem or "it changed while it was copied")


def address_of(storage: Storage, warehouse: str, url: str) -> str | None:
    """Where a file belongs, by its content now; None where there is none."""
    checksum = storage.checksums([url]).get(url) if url in storage.files([url]) else None
    return None if checksum is None else address(warehouse, checksum, url)


@dataclass(slots=True)
class SharedFileCheck:
    """Looks at each file that definitions at a target share once, at the `source`'s storage and at the target's."""

    source: Storage
    side: TargetSide
    known: dict[tuple[str, str], bool] = field(default_factory=dict)

    def as_found(self, thing: Thing) -> Thing:
        """A definition at the target as an exact read takes it: where a file that it points to is another by now, or
        is gone, it equals none."""
        return doubted(thing) if self.side.policy.data != "none" and self.stale(thing) else thing

    def stale(self, thing: Table | Partition) -> list[tuple[str, str]]:
        """The source's URLs whose content is not what lies at the target's addresses, with these."""
        pairs = [(values[PARKED], values.get(KEY, "")) for values in parameters_of(thing) if PARKED in values]
        for pair in pairs:
            if pair not in self.known:
                self.known[pair] = is_same(self.source, self.side, *pair)
        return [pair for pair in pairs if not self.known[pair]]


def is_same(source: Storage, side: TargetSide, url: str, at: str) -> bool:
    """Whether `at` is the address of what lies at `url`, and the file is there."""
    wanted = address_of(source, side.policy.warehouse, url)
    return wanted is not None and is_file(at) and place(wanted) == place(at) and at in side.storage.files([at])


def compare_files_of(
    source: Storage, side: TargetSide, name: TableName, things: Iterable[tuple[str, Table | Partition]]
) -> list[Difference]:
    """Schema files of a table and its partitions (by name, `""`: the table) at the target that are not the source's."""
    doubts = SharedFileCheck(source, side)
    return [
        Difference(name, partition, DifferenceKind.CONTENT, f"parameters.{KEY}: other content", url, at)
        for partition, thing in things
        for url, at in doubts.stale(thing)
    ]


def expected_function(source: Storage, side: TargetSide, function: Function) -> Function:
    """The source's function as it should be at the target; a resource that is not there keeps its URL."""
    if side.policy.data == "none":
        return function

    def at(url: str) -> str:
        return address_of(source, side.policy.warehouse, url) or url

    return function_pointing(function, at)


def missing_resources(side: TargetSide, function: Function) -> list[str]:
    """Files that a function at the target points to, and that are not there."""
    wanted = [one.uri for one in function.resources or () if one.uri and is_file(one.uri)]
    there = side.storage.files(wanted) if wanted and side.policy.data != "none" else {}
    return [] if side.policy.data == "none" else [url for url in wanted if url not in there]
