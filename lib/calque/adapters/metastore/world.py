"""The questions of `calque check` to a metastore about itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from calque.adapters.metastore.catalog import EVENT_PARAMETER, HiveCatalog
from calque.adapters.metastore.client import Client
from calque.adapters.metastore.log import HiveLog
from calque.adapters.metastore.messages import GET_VERSION, Call, CallUnknown
from calque.adapters.metastore.server_settings import setting
from calque.model.hive import Table
from calque.model.names import TableName
from calque.model.policy import TargetCapabilities
from calque.ports import Conflict

LOG_LISTENER = "DbNotificationListener"

GET_CATALOGS = Call("get_catalogs", (), None, ("Meta",), reads=True)
"""A call that Hive 3 and later have. Its result is not looked at."""


@dataclass(frozen=True, slots=True)
class Listening:
    """The listeners of a metastore. With `transactional` an event is written in the transaction of its change; with
    `afterwards` events can be lost. With neither the log stays empty, unless a listener of another name writes it
    (`listeners` has all)."""

    transactional: bool
    afterwards: bool
    listeners: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of a probe by writing. `compare_and_swap` says that the metastore refuses an alter_table whose
    expected parameter is no longer there. `logs` says that the current event id moved, by the probe or by other writers
    at the same time."""

    compare_and_swap: bool
    logs: bool


def server_version(client: Client) -> str:
    """Return the exact version from Hive 4 on, else `3` or `2`, told apart by a call that 2 lacks: older servers call
    themselves 3.0 all alike."""
    version: str = client.call(GET_VERSION)
    if int(version.split(".", 1)[0]) >= 4:
        return version
    try:
        client.call(GET_CATALOGS)
    except CallUnknown:
        return "2"
    return "3"


def listening(client: Client) -> Listening:
    """Return the listeners that the server's settings name."""
    transactional = configured(client, "transactional.event.listeners")
    afterwards = configured(client, "event.listeners")
    return Listening(
        any(listener.endswith(LOG_LISTENER) for listener in transactional),
        any(listener.endswith(LOG_LISTENER) for listener in afterwards),
        (*transactional, *afterwards),
    )


def configured(client: Client, name: str) -> Sequence[str]:
    """Return the comma-separated values of a setting, under whichever of its two spellings the server has it."""
    for prefix in ("metastore.", "hive.metastore."):
        value = setting(client, prefix + name)
        if value:
            return tuple(part.strip() for part in value.split(",") if part.strip())
    return ()


def probed(client: Client, scratch: Table) -> ProbeResult:
    """Find out by writing whether the server has compare-and-swap and writes its log. Settings do not tell it: 3.1
    ignores `expected_parameter_key` without a word, and a listener may have any name.

    Creates `scratch`, an external table in a database that exists, tries an alteration that must fail, and drops the
    table again (its data are left alone). Raises `Conflict` when the table exists.
    """
    catalog, log = HiveCatalog(client, TargetCapabilities()), HiveLog(client)
    before = log.current()
    marked = replace(scratch, parameters={**(scratch.parameters or {}), EVENT_PARAMETER: "1"})
    catalog.create_table(marked)
    try:
        compare_and_swap = stops_latecomers(catalog, marked)
    finally:
        catalog.drop_table(TableName(scratch.database, scratch.name))
    return ProbeResult(compare_and_swap, log.current() > before)


def stops_latecomers(catalog: HiveCatalog, marked: Table) -> bool:
    try:
        catalog.alter_table(TableName(marked.database, marked.name), marked, expected_event="2")
    except Conflict:
        return True
    return False
