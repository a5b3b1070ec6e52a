"""The registry of links as a record of the state folder, and the endpoints and layers that follow from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from calque.errors import Broken
from calque.model.names import TableName
from calque.plugins.remotes.core.layers import Layers, layers_of
from calque.plugins.remotes.model import Endpoint, LinkDefinition, LinkRecord, LinkRegistry, Links

Json = Any


@dataclass(frozen=True, slots=True)
class EndpointLinks:
    """The links over one endpoint, with the layer of each."""

    links: Links
    layers: Layers


def by_endpoint(registry: LinkRegistry) -> Mapping[Endpoint, EndpointLinks]:
    """Return the links that are not set aside, by endpoint."""
    tables: defaultdict[Endpoint, dict[TableName, TableName]] = defaultdict(dict)
    databases: defaultdict[Endpoint, dict[str, str]] = defaultdict(dict)
    for local, definition in registry.taken().items():
        if local.table:
            tables[definition.endpoint][local] = definition.remote
        else:
            databases[definition.endpoint][local.database] = definition.remote.database
    endpoints = sorted({*tables, *databases}, key=lambda endpoint: (endpoint.via, endpoint.settings))
    return {
        endpoint: EndpointLinks(
            Links(tables.get(endpoint, {}), databases.get(endpoint, {})),
            {local: registry.links[local].layer for local in (*tables.get(endpoint, {}), *whole(databases[endpoint]))},
        )
        for endpoint in endpoints
    }


def whole(databases: Mapping[str, str]) -> list[TableName]:
    return [TableName(local) for local in databases]


def placed(registry: LinkRegistry, before: LinkRegistry) -> LinkRegistry:
    """Return the registry with a layer for each link that is not set aside. A link keeps its layer in `before` where it
    still stands for the same remote object, as long as its remote name is free in that layer."""
    links = dict(registry.links)
    old = before.taken()
    for endpoint, found in by_endpoint(registry).items():
        kept = {
            local: before.links[local].layer
            for local, remote in found.links
            if local in old and (old[local].endpoint, old[local].remote) == (endpoint, remote)
        }
        for local, layer in layers_of(found.links, kept).items():
            links[local] = replace(links[local], layer=layer)
    return replace(registry, links=links)


def as_record(registry: LinkRegistry) -> dict[str, Json]:
    return {
        "position": registry.position,
        "warehouse": registry.warehouse,
        "granted": [_endpoint(one) for one in sorted(registry.granted, key=lambda one: (one.via, one.settings))],
        "made": [list(name) for name in sorted(registry.made)],
        "copied": [list(name) for name in sorted(registry.copied)],
        "links": [
            {
                "local": list(name),
                "connected_to": record.connected_to,
                "via": record.via,
                "reason": record.reason,
                "layer": record.layer,
                "remote": list(record.definition.remote) if record.definition else None,
                "data": record.definition.data if record.definition else None,
                "endpoint": _endpoint(record.definition.endpoint) if record.definition else None,
            }
            for name, record in sorted(registry.links.items())
        ],
        "leaving": [[*name, what] for name, what in sorted(registry.leaving.items())],
    }


def of_record(record: Mapping[str, Json] | None) -> LinkRegistry:
    """Return the registry of the record; an empty registry for None. Raises `Broken` where the record can't be read."""
    if record is None:
        return LinkRegistry()
    try:
        return LinkRegistry(
            record["position"],
            record["warehouse"],
            frozenset(map(_endpoint_of, record["granted"])),
            frozenset(TableName(*name) for name in record["made"]),
            frozenset(TableName(*name) for name in record["copied"]),
            {TableName(*row["local"]): _record_of(row) for row in record["links"]},
            {TableName(database, table): what for database, table, what in record["leaving"]},
        )
    except (KeyError, TypeError, ValueError) as error:
        todo = "Restore it from a backup, or remove it: statements that allowed endpoints have to be said again then"
        raise Broken("The record of links can't be read", repr(error), todo) from error


def _record_of(row: Mapping[str, Json]) -> LinkRecord:
    definition = None
    if row["endpoint"] is not None:
        definition = LinkDefinition(
            TableName(*row["local"]), TableName(*row["remote"]), _endpoint_of(row["endpoint"]), row["data"]
        )
    return LinkRecord(row["connected_to"], row["via"], definition, row["reason"], row["layer"])


def _endpoint(endpoint: Endpoint) -> list[Json]:
    return [endpoint.via, [list(setting) for setting in endpoint.settings]]


def _endpoint_of(value: Json) -> Endpoint:
    via, settings = value
    return Endpoint(via, tuple((key, setting) for key, setting in settings))
