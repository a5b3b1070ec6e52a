"""Copy the files that definitions point to, to addresses made of their content, before the definitions are written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from calque.core.formats.attached import (
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
from calque.core.formats.layout import place
from calque.core.images.compare import Difference, DifferenceKind
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
    known_addresses: dict[tuple[str, str], str] = field(default_factory=dict)
    """By the root of what is copied, and where the source has it."""

    def of(self, table: TableName, thing: Thing) -> Thing:
        """The definition of the table, or of one of its partitions, with its files at the target. Raises `Refused` for
        one that is not there, `ContentLost` for one that changes meanwhile."""
        copied = partial(self.copied, self.side.policy.warehouse, self.side.bounds.schema, "max_schema")
        return pointing(thing, copied) if self.side.admission.copies(table) else thing

    def of_function(self, name: TableName, function: Function) -> Function:
        """The same of a function's resources."""
        copied = partial(self.copied, functions_root(self.side), self.side.bounds.resource, "max_resource")
        return function_pointing(function, copied) if self.side.admission.copies(name) else function

    def copied(self, root: str, most: int, key: str, url: str) -> str:
        """The address of the file below the root, which is there by now, and has at most so many bytes, by that key of
        the configuration."""
        if (root, url) not in self.known_addresses:
            require_size(self.side.storage, url, most, key)
            target_address = address_of(self.side.storage, root, url)
            if target_address is None:
                raise Refused(
                    f"A definition points to {url}", "There is no such file", "Put it there, or alter the definition"
                )
            self.copy(url, target_address)
            self.known_addresses[root, url] = target_address
        return self.known_addresses[root, url]

    def copy(self, url: str, target_address: str) -> None:
        storage = self.side.storage
        if has_content_of_name(self.side, target_address):
            return
        files = storage.files([url, target_address])
        if url not in files:
            return
        if target_address in files:
            storage.remove([target_address])
        (result,) = storage.copy([CopyTask(url, target_address, files[url].size, files[url].modified_ns, lent=True)])
        if result.problem:
            raise ContentLost(url, result.problem)
        if not has_content_of_name(self.side, target_address):
            storage.remove([target_address])
            raise ContentLost(url, "it changed while it was copied")


def require_size(storage: Storage, url: str, most: int, key: str) -> None:
    """`Refused` for a file of more than `most` bytes."""
    file = storage.files([url]).get(url)
    if file is not None and file.size > most:
        raise Refused(
            f"A definition points to {url}, which has {file.size} bytes",
            f"[source] {key} takes {most} at most",
            "Raise that, or alter the definition",
        )


def functions_root(side: TargetSide) -> str:
    """The directory that resources of functions lie below."""
    return side.policy.functions_root or side.policy.warehouse


def address_of(storage: Storage, warehouse: str, url: str) -> str | None:
    """Where a file belongs, by its content now; None where there is none. Raises `Refused` for one that may not be
    read."""
    digest = storage.digests([url]).get(url) if url in storage.files([url]) else None
    return None if digest is None else address(warehouse, digest, url)


def readable_address(storage: Storage, warehouse: str, url: str) -> str | None:
    """The same; None also for a file that may not be read, which is no target's."""
    try:
        return address_of(storage, warehouse, url)
    except Refused:
        return None


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
    """Whether `target_address` is the address of what lies at `url`, and the file there has that content."""
    expected_address = readable_address(source, side.policy.warehouse, url)
    return (
        expected_address is not None
        and is_file(target_address)
        and place(expected_address) == place(target_address)
        and has_content_of_name(side, target_address)
    )


def has_content_of_name(side: TargetSide, target_address: str) -> bool:
    """Whether a file of ours is there and has the content that its address is made of."""
    digest = side.storage.digests([target_address]).get(target_address, "")
    return target_address.endswith(address("", digest, target_address))


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
        return readable_address(source, functions_root(side), url) or url

    return function_pointing(function, at)


def missing_resources(side: TargetSide, name: TableName, function: Function) -> list[str]:
    """Files that a function at the target points to, and that are not there."""
    if not side.admission.copies(name):
        return []
    resource_urls = [resource.uri for resource in function.resources or () if resource.uri and is_file(resource.uri)]
    target_files = side.storage.files(resource_urls) if resource_urls else {}
    return [url for url in resource_urls if url not in target_files]
