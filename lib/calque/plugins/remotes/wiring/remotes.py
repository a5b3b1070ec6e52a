"""Live objects of the local catalog of links, and the configuration with what links add: sources and projections."""

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
from calque.plugins.remotes.wiring.looked_catalog import LookedCatalog
from calque.plugins.remotes.wiring.missing_links import RecordedLinksInHand
from calque.plugins.remotes.wiring.ssh_routes import ssh_route
from calque.ports import Catalog, CatalogReader, EventLog, Storage
from calque.ports.records import Stamp
from calque.wiring.runtime import Runtime
from calque.wiring.state_folder import StateFolder
from calque.wiring.wiring import Wiring

LOG = logging.getLogger(__name__)
RECORD, LOCK = "links", "locks/link-registry.lock"
ROLE = "links"
"""What one process at a time does: it follows the local catalog."""
PATIENCE_SECONDS = 10.0


@dataclass(slots=True)
class RemotesWiring:
    """What `[remotes]` names, made when it is first asked for. Nothing connects before it is used."""

    keys: Remotes
    folder: StateFolder
    runtime: Runtime
    _catalog: Catalog | None = None
    _log: EventLog | None = None
    _storage: Storage | None = None

    def catalog(self) -> Catalog:
        """The local one, written to by statements and by who follows it."""
        if self._catalog is None:
            self._catalog = self.runtime.guard.catalog(HiveCatalog(self._client(), TargetCapabilities()))
        return self._catalog

    def log(self) -> EventLog:
        if self._log is None:
            self._log = HiveLog(self._client(call_timeout=60.0, connections=1))
        return self._log

    def storage(self) -> Storage:
        """Of what lies at the local catalog."""
        if self._storage is None:
            self._storage = self.runtime.storage(
                FileSystemSet(self.keys.storage, kinds=self.runtime.kinds.file_systems)
            )
        return self._storage

    def registry(self) -> LinkRegistry:
        return of_record(self.folder.control.read(RECORD))

    def permitted_catalog(self, endpoint: Endpoint) -> CatalogReader:
        """The same of an endpoint that an object's parameters have. Raises `Refused` where neither a statement nor the
        configuration permits it: parameters may be others than when somebody looked."""
        self.require_permitted(endpoint)
        far_only = is_far_only(endpoint, client_of(endpoint.via, forms()), self.registry().granted)
        return self.remote_catalog(endpoint, far_only=far_only)

    def require_permitted(self, endpoint: Endpoint) -> None:
        """Raises `Refused` where nothing may be connected to."""
        keys, client = self.keys, client_of(endpoint.via, forms())
        granted = self.registry().granted
        refused = refusal(endpoint, client, granted, keys.allow, keys.lent(), keys.metastore)
        if refused is not None:
            raise refused

    def put(self, registry: LinkRegistry) -> None:
        self.folder.control.put(RECORD, as_record(registry))

    def in_hand(self) -> RecordedLinksInHand:
        """Links that are missing for a moment."""
        return RecordedLinksInHand(self.folder.control)

    def stamp(self) -> Stamp:
        """Changes with the registry."""
        return self.folder.control.stamp(RECORD)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Held by who changes the registry."""
        with self.folder.lock(LOCK, RECORD):
            yield

    def remote_catalog(self, endpoint: Endpoint, *, far_only: bool = False) -> CatalogReader:
        """The remote one, for somebody who waits. Raises `Refused` for what can't be its address."""
        source = source_of(self.keys, endpoint, far_only=far_only)
        if source.catalog is not None:
            return source.catalog.reader()
        client = Client(
            ",".join(source.keys.metastore), source.access(), connect_timeout=PATIENCE_SECONDS, connections=1
        )
        return HiveReader(client)

    def functions(self, source: str, database: str) -> Iterator[TableName]:
        """Those that projections of the source have made in the local database: they carry no marks. Raises
        `Unavailable`."""
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
    """Raises `Refused` without `[remotes]`."""
    keys = config.section(REMOTES)
    if keys is None:
        why = "The configuration has no section [remotes], which names the local metastore"
        todo = 'Write it, e.g. [remotes] and metastore = "thrift://127.0.0.1:9083"'
        raise Refused("There are no remote tables here", why, todo)
    runtime = runtime or Runtime()
    return RemotesWiring(keys, StateFolder(config.state, runtime.guard, runtime.kinds.file_systems), runtime)


def remotes_at(wiring: Wiring) -> RemotesWiring:
    """Raises `Refused` for a configuration without `[remotes]`."""
    return remotes_of(wiring.config, wiring.runtime)


def with_links(config: Config) -> Config:
    """The configuration with sources and projections for the links that the state folder knows, in place of those that
    it has. Raises `Unavailable`, `Broken`."""
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
    """The remote catalog as a source. Raises `Refused`."""
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
    catalog = LookedCatalog(client, settings, access, keys.interval)
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
    """The projection that the link, or the linked database of the table, is of."""
    for name in (local, TableName(local.database)):
        for target in config.targets.values():
            if target.links is not None and name in target.links:
                return target
    return None
