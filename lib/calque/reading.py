"""The reading of targets as they were: all tables of an epoch, and the version of a Delta replica that shows an
event."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from calque.app import APP
from calque.model.names import EventId, table_name
from calque.plugins.delta_replicas.api import version_of_target
from calque.plugins.epoch_reader.api.open_epoch import HOLD, OpenEpoch, opened_epoch

__all__ = ["OpenEpoch", "open_epoch", "version_at"]


def open_epoch(
    config: str | Path = "calque.toml",
    target: str | None = None,
    *,
    tables: Collection[str] = (),
    at: EventId | None = None,
    hold: float = HOLD,
) -> OpenEpoch:
    """Open the newest epoch of a target that covers all of `tables`; with `at` the newest such one at or below that
    event id.

    `target` may be left out where the configuration has one. The epoch's files stay for `hold` seconds, or until it is
    closed; 0 holds nothing, and writes nothing to the state folder.

    Raises `Refused` for an epoch that is not kept any more and for what does not exist, `Unavailable` where there is no
    such epoch yet, and for an event that the target has not reached.
    """
    return opened_epoch(APP.wiring(APP.load(config)), target, tables, at, hold)


def version_at(table: str, event_id: EventId, config: str | Path = "calque.toml", target: str | None = None) -> int:
    """Return the version of a target's Delta table that shows the source's table as it was at event `event_id`: for
    `VERSION AS OF`, or delta-rs's `DeltaTable(…, version=…)`.

    `table` is `database.table` by its name at the source. `target` may be left out where the configuration has one.
    Raises `Refused` where no version does, naming its neighbours, and for a table that is no Delta table at the target.
    """
    return version_of_target(APP.wiring(APP.load(config)), table_name(*table.partition(".")[::2]), event_id, target)
