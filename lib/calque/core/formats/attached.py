"""Files that definitions point to beside their data: Avro schemas of tables and partitions, resources of functions.

At a target such a file lies at an address made of its content, so equal files are one and a changed one is another. A
definition keeps the source's URL beside it, parked, and is compared by that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from calque.core.formats.layout import OBJECT_STORES, join, place
from calque.errors import Refused
from calque.model.hive import Function, Partition, SerDe, Storage, Table
from calque.model.names import OURS

KEY = "avro.schema.url"
PARKED = f"calque.source.{KEY}"
SCHEMES = OBJECT_STORES | {"file", "hdfs", "viewfs"}
"""Of files that are copied. Others (http, https, ivy) are left as they are: both sides reach them."""

Thing = TypeVar("Thing", Table, Partition)


def is_file(url: str) -> bool:
    """Whether a URL names a file that is to be copied."""
    try:
        return place(url).scheme in SCHEMES
    except Refused:
        return False


def address(warehouse: str, digest: str, url: str) -> str:
    """Where a file of this content and name lies at a target: `<warehouse>/_calque/files/<SHA-256>/<name>`."""
    return join(warehouse, f"{OURS}/files/{digest}/{url.rstrip('/').rsplit('/', 1)[-1]}")


def urls_of(thing: Table | Partition) -> list[str]:
    """Files that the definition points to; where a target has parked the source's URL it is the target's own."""
    return [url for values in parameters_of(thing) if (url := values.get(KEY)) and is_file(url)]


def parameters_of(thing: Table | Partition) -> list[Mapping[str, str]]:
    """Where a URL may stand."""
    storage = thing.storage
    serde = storage.serde if storage is not None else None
    parameter_maps = [thing.parameters, storage.parameters if storage else None, serde.parameters if serde else None]
    return [values for values in parameter_maps if values]


def pointing(thing: Thing, address_of: Callable[[str], str]) -> Thing:
    """The definition with each file's URL replaced by its address, the URL parked beside it."""

    def change(values: Mapping[str, str] | None) -> Mapping[str, str] | None:
        url = (values or {}).get(KEY, "")
        return {**(values or {}), KEY: address_of(url), PARKED: url} if is_file(url) else values

    return changed(thing, change)


def doubted(thing: Thing) -> Thing:
    """A definition at a target without what it says of the source's files: it equals none."""
    return changed(thing, without)


def without(values: Mapping[str, str] | None) -> Mapping[str, str] | None:
    if not values or PARKED not in values:
        return values
    return {key: value for key, value in values.items() if key != PARKED}


def comparable(values: Mapping[str, str]) -> Mapping[str, str]:
    """Parameters with the source's URL where it is parked."""
    if PARKED not in values:
        return values
    return {**{key: value for key, value in values.items() if key != PARKED}, KEY: values[PARKED]}


def changed(thing: Thing, change: Callable[[Mapping[str, str] | None], Mapping[str, str] | None]) -> Thing:
    parameters, storage = change(thing.parameters), changed_storage(thing.storage, change)
    if parameters is thing.parameters and storage is thing.storage:
        return thing
    return replace(thing, parameters=parameters, storage=storage)


def changed_storage(
    storage: Storage | None, change: Callable[[Mapping[str, str] | None], Mapping[str, str] | None]
) -> Storage | None:
    if storage is None:
        return None
    serde: SerDe | None = storage.serde
    if serde is not None and (values := change(serde.parameters)) is not serde.parameters:
        serde = replace(serde, parameters=values)
    own = change(storage.parameters)
    if serde is storage.serde and own is storage.parameters:
        return storage
    return replace(storage, serde=serde, parameters=own)


def function_pointing(function: Function, address_of: Callable[[str], str]) -> Function:
    """The function with each file among its resources replaced by its address."""
    resources = tuple(
        replace(one, uri=address_of(one.uri)) if one.uri and is_file(one.uri) else one
        for one in function.resources or ()
    )
    return replace(function, resources=resources or function.resources)
