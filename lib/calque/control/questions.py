"""Questions of commands about the state of a deployment, each answered by a JSON value. A running process answers them
in place of the command where it can, see `asking`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calque.config import Config
from calque.control.asking import several_targets
from calque.control.epoch_documents import diff_document, list_document, show_document
from calque.control.epoch_rows import EpochReference
from calque.control.status import StatusParts, quarantined, snapshot
from calque.control.table_history import table_history
from calque.core.policy.patterns import chosen
from calque.errors import Refused
from calque.model.names import table_name
from calque.wiring.wiring import Wiring


def one_target(config: Config, names: Sequence[str]) -> str:
    """Return the named target, or the only one of the configuration. Raises `WrongUsage` where neither tells which one
    is meant, and `Refused` for an unknown name."""
    targets = config.select(names)
    if len(targets) == 1:
        return targets[0]
    raise several_targets(config.targets)


def status(wiring: Wiring, parts: StatusParts) -> Any:
    wiring.config.require_source()
    return snapshot(wiring, parts)


def epochs_list(wiring: Wiring, arguments: Mapping[str, Any]) -> Any:
    wiring.config.require_source()
    return list_document(wiring, one_target(wiring.config, arguments["targets"]))


def epochs_show(wiring: Wiring, arguments: Mapping[str, Any]) -> Any:
    wiring.config.require_source()
    target = one_target(wiring.config, arguments["targets"])
    return show_document(wiring, target, EpochReference(*arguments["epoch"]))


def epochs_diff(wiring: Wiring, arguments: Mapping[str, Any]) -> Any:
    wiring.config.require_source()
    target = one_target(wiring.config, arguments["targets"])
    before, after = (EpochReference(*arguments[name]) for name in ("before", "after"))
    return diff_document(wiring, target, before, after)


def quarantine_list(wiring: Wiring, arguments: Mapping[str, Any]) -> Any:
    """Return the objects that are set aside, with their targets; `tables` are patterns, none for all."""
    wiring.config.require_source()
    takes = chosen(arguments["tables"])
    return [
        {**quarantined(row), "target": name}
        for name in wiring.config.select(arguments["targets"])
        for row in wiring.ledger(name).tables().values()
        if row.state.value == "quarantined" and takes(row.name)
    ]


def history(wiring: Wiring, arguments: Mapping[str, Any]) -> Any:
    """Return what the target showed of the table. Raises `Refused` where neither the journal nor the ledger knows
    it."""
    wiring.config.require_source()
    target, table = one_target(wiring.config, arguments["targets"]), arguments["table"]
    database, _, name = table.partition(".")
    journal = wiring.target(target).source.side().journal
    found = table_history(journal, wiring.ledger(target), table_name(database, name))
    if not found["links"]:
        why = "Neither the journal nor the ledger has an event of it"
        raise Refused(f"Nothing is remembered of {table} at {target}", why, "Name a table as at the source")
    return {"target": target, **found}


KERNEL_QUESTIONS = {
    "epochs list": epochs_list,
    "epochs show": epochs_show,
    "epochs diff": epochs_diff,
    "quarantine list": quarantine_list,
    "history": history,
}
