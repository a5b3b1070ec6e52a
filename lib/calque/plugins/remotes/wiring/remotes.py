"""The live objects of the local catalog of links, and the configuration with the sources and projections that links
add."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from calque.adapters.delta.ledger import DeltaLedger
from calque.adapters.files.systems import FileSystemSet
from calque.adapters.metastore.catalog import HiveCatalog
from calque.adapters.metastore.client import Client
from calque.adapters.metastore.log import HiveLog
from calque.adapters.metastore.reader import HiveReader
from calque.config import Config
from calque.config.plugs import HiveSource, HiveTarget, Source, Target, guarded
from calque.errors import Refused
from calque.model.ledger import FunctionRow
from calque.model.names import TableName
from calque.model.policy import Policy, TargetCapabilities
from calque.model.state_places import SourcePlaces, TargetPlaces
from calque.plugins.remotes.config import (
    NOBODY,
    REMOTES,
    Remotes,
    journal,
    projection,
    remote_access,
    remote_source,
)
from calque.plugins.remotes.core.definitions import COPY, CREDENTIALS, URIS, client_of, endpoint_name, parameters_of
from calque.plugins.remotes.core.layers import exactly, layer_name, layer_policies
from calque.plugins.remotes.core.permission import is_far_only, refusal
from calque.plugins.remotes.core.registry import as_record, by_endpoint, of_record
from calque.plugins.remotes.model import Endpoint, LinkRegistry
from calque.plugins.remotes.wiring.clients import forms, remote_clients
from calque.plugins.remotes.wiring.missing_links import RecordedMissingLinks
from calque.plugins.remotes.wiring.polled_catalog import PolledCatalog
from calque.plugins.remotes.wiring.ssh_routes import ssh_route
from calque.ports import Catalog, CatalogReader, EventLog, Storage
from calque.ports.records import Stamp
from calque.wiring.runtime import Runtime
from calque.wiring.state_folder import StateFolder
from calque.wiring.wiring import Wiring

LOG = logging.getLogger(__name__)
RECORD, LOCK = "links", "locks/link-registry.lock"
ROLE = "links"
"""The role of the one process that follows the local catalog."""
PATIENCE_SECONDS = 10.0


@dataclass(slots=True)
class RemotesWiring:
    """The live objects that `[remotes]` names. Each is made when a caller first asks for it, and connects when it is
    first used."""

    keys: Remotes
    folder: StateFolder
    runtime: Runtime
    _catalog: Catalog | None = None
    _log: EventLog | None = None
    _storage: Storage | None = None

    def catalog(self) -> Catalog:
        """Return the local catalog, for statements and for the process that follows it. It can be written to."""
        if self._catalog is None:
            self._catalog = self.runtime.guard.catalog(HiveCatalog(self._client(), TargetCapabilities()))
        return self._catalog

    def log(self) -> EventLog:
        if self._log is None:
            self._log = HiveLog(self._client(call_timeout=60.0, connections=1))
        return self._log

    def storage(self) -> Storage:
        """Return the storage of the files of the local catalog."""
        if self._storage is None:
            self._storage = self.runtime.storage(
                FileSystemSet(self.keys.storage, kinds=self.runtime.kinds.file_systems)
            )
        return self._storage

    def registry(self) -> LinkRegistry:
        return of_record(self.folder.control.read(RECORD))

    def permitted_catalog(self, endpoint: Endpoint) -> CatalogReader:
        """Return the remote catalog of an endpoint that an object's parameters have now. Raises `Refused` where neither
        a statement nor the configuration permits it. This is checked again here, because the parameters may have
        changed since the registry was written."""
        self.require_permitted(endpoint)
        far_only = is_far_only(endpoint, client_of(endpoint.via, forms()), self.registry().granted)
        return self.remote_catalog(endpoint, far_only=far_only)

    def require_permitted(self, endpoint: Endpoint) -> None:
        """Raise `Refused` where calque may not connect to the endpoint."""
        keys, client = self.keys, client_of(endpoint.via, forms())
        granted = self.registry().granted
        refused = refusal(endpoint, client, granted, keys.allow, keys.lent(), keys.metastore)
        if refused is not None:
            raise refused

    def put(self, registry: LinkRegistry) -> None:
        self.folder.control.put(RECORD, as_record(registry))

    def missing_links(self) -> RecordedMissingLinks:
        """Return the record of the links that are missing for a moment."""
        return RecordedMissingLinks(self.folder.control)

    def stamp(self) -> Stamp:
        """Return a value that is another one whenever the registry has changed."""
        return self.folder.control.stamp(RECORD)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the lock that every writer of the registry holds, for the time of the block."""
        with self.folder.lock(LOCK, RECORD):
            yield

    def remote_catalog(self, endpoint: Endpoint, *, far_only: bool = False) -> CatalogReader:
        """Return the remote catalog of the endpoint, with a short time for connecting, as a user waits for it. Raises
        `Refused` for an invalid address."""
        source = source_of(self.keys, endpoint, far_only=far_only)
        if source.catalog is not None:
            return source.catalog.reader()
        client = Client(
            ",".join(source.keys.metastore), source.access(), connect_timeout=PATIENCE_SECONDS, connections=1
        )
        return HiveReader(client)

    def functions(self, source: str, database: str) -> Iterator[TableName]:
        """Return the functions that projections of the source have made in the local database. Their ledgers know them,
        because functions carry no marks. Raises `Unavailable`."""
        for number in count():
            ledger = DeltaLedger(
                self.folder.table(TargetPlaces(layer_name(source, number)).ledger), self.folder.table_options
            )
            if ledger.last_epoch() is None:
                return
            for row in ledger.tables().values():
                if isinstance(row, FunctionRow) and row.at_target is not None and row.at_target.database == database:
                    yield row.at_target

    def _client(self, **options: Any) -> Client:
        return Client(",".join(self.keys.metastore), self.keys.access(), **options)


def remotes_of(config: Config, runtime: Runtime | None = None) -> RemotesWiring:
    """Return the live objects of `[remotes]`. Raises `Refused` for a configuration without this section."""
    keys = config.section(REMOTES)
    if keys is None:
        why = "The configuration has no section [remotes], which names the local metastore"
        todo = 'Write it, e.g. [remotes] and metastore = "thrift://127.0.0.1:9083"'
        raise Refused("There are no remote tables here", why, todo)
    runtime = runtime or Runtime()
    return RemotesWiring(keys, StateFolder(config.state, runtime.guard, runtime.kinds.file_systems), runtime)


def remotes_at(wiring: Wiring) -> RemotesWiring:
    """Return the live objects of `[remotes]` of the wiring. Raises `Refused` for a configuration without this
    section."""
    return remotes_of(wiring.config, wiring.runtime)


def with_links(config: Config) -> Config:
    """Return the configuration with sources and projections for the links that the state folder knows now, in place of
    those that it has for earlier ones. Raises `Unavailable`, `Broken`."""
    keys = config.section(REMOTES)
    if keys is None:
        return config
    registry = remotes_of(config).registry()
    sources: dict[str, Source] = {name: config.sources[name] for name in config.own_sources()}
    targets: dict[str, Target] = {name: config.targets[name] for name in config.own_targets()}
    taken = registry.taken()
    for endpoint, found in by_endpoint(registry).items():
        client = client_of(endpoint.via, forms())
        far_only = is_far_only(endpoint, client, registry.granted)
        try:
            source = source_of(keys, endpoint, far_only=far_only)
        except Refused as refused:
            LOG.warning("links over %s: %s", endpoint_name(endpoint, client), refused)
            continue
        sources[source.name] = guarded(source, config)
        template = Policy(target=source.name, source=source.name)
        policies = layer_policies(template, found.links, found.layers, set(registry.links))
        for number, policy in policies.items():
            names = [local for local, layer in found.layers.items() if layer == number]
            projected = projection(
                keys,
                keys.warehouse or registry.warehouse,
                policy.include,
                policy.exclude,
                policy.rename,
                {exactly(taken[local].remote): COPY for local in names if taken[local].data == COPY},
            )
            links = {local: parameters_of(taken[local]) for local in names}
            targets[policy.target] = HiveTarget(policy.target, source.name, projected, links=links)
    return replace(config, sources=sources, targets=targets)


def source_of(keys: Remotes, endpoint: Endpoint, *, far_only: bool) -> HiveSource:
    """Return the remote catalog of the endpoint as a source. With `far_only` it is never reached at an address on this
    host or near it. Raises `Refused` for settings that are wrong or need an extra that is not installed."""
    settings = dict(endpoint.settings)
    name = endpoint_name(endpoint, client_of(endpoint.via, forms()))
    credentials = keys.credentials.get(settings.get(CREDENTIALS, ""), NOBODY)
    places = SourcePlaces(name)
    client = remote_clients().get(endpoint.via)
    if client is None:
        section = remote_source(name, settings[URIS], credentials)
        route = ssh_route(settings, credentials)
        return HiveSource(name, section, journal(), places, is_linked=True, far_only=far_only, route=route)
    client.require(settings)
    access = remote_access(credentials, far_only=far_only)
    catalog = PolledCatalog(client, settings, access, keys.interval)
    return HiveSource(
        name,
        remote_source(name, "", credentials),
        journal(),
        places,
        is_linked=True,
        far_only=far_only,
        catalog=catalog,
    )


def target_of(config: Config, local: TableName) -> HiveTarget | None:
    """Return the projection of the link `local`, or of the linked database that the table is in; None where there is
    none."""
    for name in (local, TableName(local.database)):
        for target in config.targets.values():
            if target.links is not None and name in target.links:
                return target
    return None
