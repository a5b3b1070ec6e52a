"""Copies of the files that definitions point to (schemas, resources of functions). Each gets an address at the target
that is made of its content, before the definition is written."""

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
    """The files that definitions at one target point to, and the addresses of those that were copied. An instance lives
    for one window at most, because a file that it has copied is not looked at again."""

    side: TargetSide
    known_addresses: dict[tuple[str, str], str] = field(default_factory=dict)
    """Addresses of copied files, by the root that they lie below and the source's URL."""

    def of(self, table: TableName, thing: Thing) -> Thing:
        """Return `thing`, the definition of `table` or of one of its partitions, with its schema file copied to the
        target. Raises `Refused` for a file that does not exist, or is larger than `max_schema`, and `ContentLost` for
        one that changes while it is copied."""
        copied = partial(self.copied, self.side.policy.warehouse, self.side.bounds.schema, "max_schema")
        return pointing(thing, copied) if self.side.admission.copies(table) else thing

    def of_function(self, name: TableName, function: Function) -> Function:
        """Return `function` with its resources copied to the target. Raises `Refused` for a resource that does not
        exist, or is larger than `max_resource`, and `ContentLost` for one that changes while it is copied."""
        copied = partial(self.copied, functions_root(self.side), self.side.bounds.resource, "max_resource")
        return function_pointing(function, copied) if self.side.admission.copies(name) else function

    def copied(self, root: str, most: int, key: str, url: str) -> str:
        """Copy the file at `url` to its address below `root`, unless this was done before, and return the address.
        Raises `Refused` where the file does not exist or has more than `most` bytes, the limit that the configuration
        sets by `key`."""
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
    """Raise `Refused` if the file at `url` has more than `most` bytes; the error names `key` of the configuration."""
    file = storage.files([url]).get(url)
    if file is not None and file.size > most:
        raise Refused(
            f"A definition points to {url}, which has {file.size} bytes",
            f"[source] {key} takes {most} at most",
            "Raise that, or alter the definition",
        )


def functions_root(side: TargetSide) -> str:
    """Return the directory that resources of functions lie below at the target."""
    return side.policy.functions_root or side.policy.warehouse


def address_of(storage: Storage, warehouse: str, url: str) -> str | None:
    """Return the address below `warehouse` for the content that the file at `url` has now; None if there is no such
    file. Raises `Refused` for a file that may not be read."""
    digest = storage.digests([url]).get(url) if url in storage.files([url]) else None
    return None if digest is None else address(warehouse, digest, url)


def readable_address(storage: Storage, warehouse: str, url: str) -> str | None:
    """Return the address as `address_of` does, and None also for a file that may not be read: no target has a copy of
    it."""
    try:
        return address_of(storage, warehouse, url)
    except Refused:
        return None


@dataclass(slots=True)
class SharedFileCheck:
    """A comparison of the files that several definitions at a target share, between the storage of the `source` and
    that of the target. Each file is compared once."""

    source: Storage
    side: TargetSide
    results: dict[tuple[str, str], bool] = field(default_factory=dict)

    def as_found(self, table: TableName, thing: Thing) -> Thing:
        """Return the definition `thing` of `table` at the target as an exact read takes it. Where the source's file
        that it points to has other content by now, or is gone, the result equals no other definition, so that the
        definition is written anew."""
        return doubted(thing) if self.side.admission.copies(table) and self.stale(thing) else thing

    def stale(self, thing: Table | Partition) -> list[tuple[str, str]]:
        """Return pairs of a source's URL and the target's address that `thing` has for it, where the content at the two
        differs or one of them is missing."""
        pairs = [(values[PARKED], values.get(KEY, "")) for values in parameters_of(thing) if PARKED in values]
        for pair in pairs:
            if pair not in self.results:
                self.results[pair] = is_same(self.source, self.side, *pair)
        return [pair for pair in pairs if not self.results[pair]]


def is_same(source: Storage, side: TargetSide, url: str, target_address: str) -> bool:
    """Tell whether `target_address` is made of the content that `url` has now, and the file at `target_address` has
    that content."""
    expected_address = readable_address(source, side.policy.warehouse, url)
    return (
        expected_address is not None
        and is_file(target_address)
        and place(expected_address) == place(target_address)
        and has_content_of_name(side, target_address)
    )


def has_content_of_name(side: TargetSide, target_address: str) -> bool:
    """Tell whether a file lies at `target_address` and has the content that this address is made of."""
    digest = side.storage.digests([target_address]).get(target_address, "")
    return target_address.endswith(address("", digest, target_address))


def compare_files_of(
    source: Storage, side: TargetSide, name: TableName, things: Iterable[tuple[str, Table | Partition]]
) -> list[Difference]:
    """Return a difference for each schema file at the target that is not the source's. `things` are the definitions of
    table `name` and its partitions at the target, each with the partition's name (`""`: the table)."""
    check = SharedFileCheck(source, side)
    return [
        Difference(name, partition, DifferenceKind.CONTENT, f"parameters.{KEY}: other content", url, target_address)
        for partition, thing in things
        for url, target_address in check.stale(thing)
    ]


def expected_function(source: Storage, side: TargetSide, name: TableName, function: Function) -> Function:
    """Return the source's `function` as it should be at the target: with the addresses of its resources there. A
    resource that does not exist, or may not be read, keeps its URL."""
    if not side.admission.copies(name):
        return function

    def at(url: str) -> str:
        return readable_address(source, functions_root(side), url) or url

    return function_pointing(function, at)


def missing_resources(side: TargetSide, name: TableName, function: Function) -> list[str]:
    """Return the files that `function`, as the target has it, points to and that do not exist."""
    if not side.admission.copies(name):
        return []
    resource_urls = [resource.uri for resource in function.resources or () if resource.uri and is_file(resource.uri)]
    target_files = side.storage.files(resource_urls) if resource_urls else {}
    return [url for url in resource_urls if url not in target_files]
