"""The facts that a metastore tells of itself, over Thrift."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from calque.adapters.metastore.catalog import EVENT_PARAMETER, HiveCatalog
from calque.adapters.metastore.client import Client
from calque.adapters.metastore.messages import GET_VERSION, CallUnknown
from calque.adapters.metastore.server_settings import setting
from calque.adapters.metastore.world import LOG_LISTENER, listening, server_version, stops_latecomers
from calque.model.hive import Table
from calque.model.names import TableName
from calque.model.policy import TargetCapabilities
from calque.ports.services import Listeners, managed_warehouse


class MetastoreServer:
    """The port `MetastoreInfo` over Thrift."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def ping(self) -> None:
        """Return when the server answers, also with an error that it does not know the call. Raises `Unavailable`
        otherwise."""
        with suppress(CallUnknown):
            self.client.call(GET_VERSION)

    def version(self) -> str:
        return server_version(self.client)

    def listeners(self) -> Listeners:
        listening_facts = listening(self.client)
        other_listeners = tuple(name for name in listening_facts.listeners if not name.endswith(LOG_LISTENER))
        # Every server has a warehouse: a server that does not tell its place tells no other setting either.
        is_known = bool(listening_facts.listeners) or bool(managed_warehouse(self))
        return Listeners(is_known, listening_facts.transactional, listening_facts.afterwards, other_listeners)

    def setting(self, name: str) -> str:
        return setting(self.client, name)

    def has_compare_and_swap(self, scratch: Table) -> bool:
        # `world.probed` is not used, because it reads the log too, which a target need not allow.
        catalog = HiveCatalog(self.client, TargetCapabilities())
        marked = replace(scratch, parameters={**(scratch.parameters or {}), EVENT_PARAMETER: "1"})
        catalog.create_table(marked)
        try:
            return stops_latecomers(catalog, marked)
        finally:
            catalog.drop_table(TableName(scratch.database, scratch.name))
