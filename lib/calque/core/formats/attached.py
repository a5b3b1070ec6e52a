"""Files that definitions point to beside their data: Avro schemas of tables and partitions, resources of functions.

At a target such a file lies at an address made of its content, so equal files lie at one address and a changed file
gets another. A definition at a target keeps the source's URL beside the address, parked, and definitions are compared
by that URL.
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
"""Schemes of files that are copied. URLs with others (http, https, ivy) stay as they are: both sides reach them."""

Thing = TypeVar("Thing", Table, Partition)


def is_file(url: str) -> bool:
    """Tell whether a URL names a file that is to be copied, by its scheme."""
    try:
        return place(url).scheme in SCHEMES
    except Refused:
        return False


def address(warehouse: str, digest: str, url: str) -> str:
    """Return the address of a file at a target, `<warehouse>/_calque/files/<SHA-256>/<name>`. `digest` is the SHA-256
    of its content, and the name is that in `url`."""
    return join(warehouse, f"{OURS}/files/{digest}/{url.rstrip('/').rsplit('/', 1)[-1]}")


def urls_of(thing: Table | Partition) -> list[str]:
    """Return the URLs of files that the definition points to. For a definition at a target they are addresses there,
    because the source's URLs are parked."""
    return [url for values in parameters_of(thing) if (url := values.get(KEY)) and is_file(url)]


def parameters_of(thing: Table | Partition) -> list[Mapping[str, str]]:
    """Return the non-empty maps of parameters in which a URL may stand."""
    storage = thing.storage
    serde = storage.serde if storage is not None else None
    parameter_maps = [thing.parameters, storage.parameters if storage else None, serde.parameters if serde else None]
    return [values for values in parameter_maps if values]


def pointing(thing: Thing, address_of: Callable[[str], str]) -> Thing:
    """Return the definition with each file's URL replaced by `address_of` of it, and the URL parked beside it."""

    def change(values: Mapping[str, str] | None) -> Mapping[str, str] | None:
        url = (values or {}).get(KEY, "")
        return {**(values or {}), KEY: address_of(url), PARKED: url} if is_file(url) else values

    return changed(thing, change)


def doubted(thing: Thing) -> Thing:
    """Return a definition at a target without the parked URLs of the source's files, so that it equals no source's
    definition and is written again."""
    return changed(thing, without)


def without(values: Mapping[str, str] | None) -> Mapping[str, str] | None:
    if not values or PARKED not in values:
        return values
    return {key: value for key, value in values.items() if key != PARKED}


def comparable(values: Mapping[str, str]) -> Mapping[str, str]:
    """Return the parameters with the source's URL in place of the address where the URL is parked."""
    if PARKED not in values:
        return values
    return {**{key: value for key, value in values.items() if key != PARKED}, KEY: values[PARKED]}


def changed(thing: Thing, change: Callable[[Mapping[str, str] | None], Mapping[str, str] | None]) -> Thing:
    """Return the definition with `change` applied to each of its maps of parameters; the same object where none
    changes."""
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
    """Return the function with each file among its resources replaced by `address_of` of its URL."""
    resources = tuple(
        replace(one, uri=address_of(one.uri)) if one.uri and is_file(one.uri) else one
        for one in function.resources or ()
    )
    return replace(function, resources=resources or function.resources)
