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
from calque.engine.files.copies import ContentLost
from calque.engine.sides.sides import TargetSide
from calque.errors import Refused
from calque.model.hive import Function, Partition, Table
from calque.model.names import TableName
from calque.ports import CopyTask, Storage


@dataclass(slots=True)
class Attachments:
    """Of one target. What was looked at is remembered, for as long as this is kept: not longer than a window."""

    side: TargetSide
    known_addresses: dict[str, str] = field(default_factory=dict)

    def of(self, table: TableName, thing: Thing) -> Thing:
        """The definition of the table, or of one of its partitions, with its files at the target. Raises `Refused` for
        one that is not there, `ContentLost` for one that changes meanwhile."""
        return pointing(thing, self.copied) if self.side.admission.copies(table) else thing

    def of_function(self, name: TableName, function: Function) -> Function:
        """The same of a function's resources."""
        return function_pointing(function, self.copied) if self.side.admission.copies(name) else function

    def copied(self, url: str) -> str:
        """The address of the file, which is there by now."""
        if url not in self.known_addresses:
            target_address = address_of(self.side.storage, self.side.policy.warehouse, url)
            if target_address is None:
                raise Refused(
                    f"A definition points to {url}", "There is no such file", "Put it there, or alter the definition"
                )
            self.copy(url, target_address)
            self.known_addresses[url] = target_address
        return self.known_addresses[url]

    def copy(self, url: str, target_address: str) -> None:
        storage = self.side.storage
        files = storage.files([url, target_address])
        if target_address in files or url not in files:
            return
        (result,) = storage.copy([CopyTask(url, target_address, files[url].size, files[url].modified_ns)])
        if result.problem or not target_address.endswith(address("", result.checksum, url)):
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
    results: dict[tuple[str, str], bool] = field(default_factory=dict)

    def as_found(self, table: TableName, thing: Thing) -> Thing:
        """A definition of the table at the target as an exact read takes it: where a file that it points to is another
        by now, or is gone, it equals none."""
        return doubted(thing) if self.side.admission.copies(table) and self.stale(thing) else thing

    def stale(self, thing: Table | Partition) -> list[tuple[str, str]]:
        """The source's URLs whose content is not what lies at the target's addresses, with these."""
        pairs = [(values[PARKED], values.get(KEY, "")) for values in parameters_of(thing) if PARKED in values]
        for pair in pairs:
            if pair not in self.results:
                self.results[pair] = is_same(self.source, self.side, *pair)
        return [pair for pair in pairs if not self.results[pair]]


def is_same(source: Storage, side: TargetSide, url: str, target_address: str) -> bool:
    """Whether `target_address` is the address of what lies at `url`, and the file is there."""
    expected_address = address_of(source, side.policy.warehouse, url)
    return (
        expected_address is not None
        and is_file(target_address)
        and place(expected_address) == place(target_address)
        and target_address in side.storage.files([target_address])
    )


def compare_files_of(
    source: Storage, side: TargetSide, name: TableName, things: Iterable[tuple[str, Table | Partition]]
) -> list[Difference]:
    """Schema files of a table and its partitions (by name, `""`: the table) at the target that are not the source's."""
    check = SharedFileCheck(source, side)
    return [
        Difference(name, partition, DifferenceKind.CONTENT, f"parameters.{KEY}: other content", url, target_address)
        for partition, thing in things
        for url, target_address in check.stale(thing)
    ]


def expected_function(source: Storage, side: TargetSide, name: TableName, function: Function) -> Function:
    """The source's function as it should be at the target; a resource that is not there keeps its URL."""
    if not side.admission.copies(name):
        return function

    def at(url: str) -> str:
        return address_of(source, side.policy.warehouse, url) or url

    return function_pointing(function, at)


def missing_resources(side: TargetSide, name: TableName, function: Function) -> list[str]:
    """Files that a function at the target points to, and that are not there."""
    if not side.admission.copies(name):
        return []
    resource_urls = [resource.uri for resource in function.resources or () if resource.uri and is_file(resource.uri)]
    target_files = side.storage.files(resource_urls) if resource_urls else {}
    return [url for url in resource_urls if url not in target_files]
