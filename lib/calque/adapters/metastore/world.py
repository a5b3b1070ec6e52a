"""What `calque check` asks a metastore about itself."""

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
"""Hive 3 and later have it; the result is not looked at."""


@dataclass(frozen=True, slots=True)
class Listening:
    """`transactional`: an event is written in the transaction of its change; `afterwards`: events can be lost.
    Neither, and the log stays empty unless a listener of another name writes it (`listeners` has all)."""

    transactional: bool
    afterwards: bool
    listeners: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """`logs`: the current event id moved, by the probe or by others at the same time."""

    compare_and_swap: bool
    logs: bool


def server_version(client: Client) -> str:
    """The exact version from Hive 4 on, else `3` or `2`: before, servers call themselves 3.0 whatever they are."""
    version: str = client.call(GET_VERSION)
    if int(version.split(".", 1)[0]) >= 4:
        return version
    try:
        client.call(GET_CATALOGS)
    except CallUnknown:
        return "2"
    return "3"


def listening(client: Client) -> Listening:
    """Which listeners the server says it has."""
    transactional = configured(client, "transactional.event.listeners")
    afterwards = configured(client, "event.listeners")
    return Listening(
        any(listener.endswith(LOG_LISTENER) for listener in transactional),
        any(listener.endswith(LOG_LISTENER) for listener in afterwards),
        (*transactional, *afterwards),
    )


def configured(client: Client, name: str) -> Sequence[str]:
    """The comma-separated values of a setting under either of its spellings."""
    for prefix in ("metastore.", "hive.metastore."):
        value = setting(client, prefix + name)
        if value:
            return tuple(part.strip() for part in value.split(",") if part.strip())
    return ()


def probed(client: Client, scratch: Table) -> ProbeResult:
    """Find out by writing: 3.1 ignores `expected_parameter_key` without a word, and a listener may be called anything.

    Creates `scratch`, an external table in a database that exists, tries an alteration that must fail, and drops the
    table again (its data are left alone). `Conflict` when it exists.
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
