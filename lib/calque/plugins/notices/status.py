"""The state of each channel of notices: its position from the state folder, the rest from the process that sends."""

from __future__ import annotations

from typing import Any

from calque.control.status_records import current_record
from calque.errors import StateUnusable, Unavailable
from calque.plugins.notices.engine.positions import Position
from calque.plugins.notices.wiring import ChannelWiring, channels
from calque.wiring.wiring import Wiring


def channel_states(wiring: Wiring) -> dict[str, Any]:
    """Return the state of each channel, by the channel's name."""
    return {name: of_channel(wiring, channel) for name, channel in channels(wiring).items()}


def of_channel(wiring: Wiring, channel: ChannelWiring) -> dict[str, Any]:
    """Return the channel's state as a document. Its `position` is the event up to which all notices are sent; None
    before the channel first ran."""
    role = channel.source.places.role if channel.target is None else channel.target.places.role
    report = current_record(wiring, channel.places.status_record, role)
    record = wiring.control.read(channel.places.position_record)
    position = Position.of(record).event_id if record is not None else None
    return {
        "at": channel.plug.at,
        "state": report["state"],
        "position": position,
        "lag_events": lag_events(channel, position),
        "failing": report.get("failing"),
        "last_error": report["last_error"],
    }


def lag_events(channel: ChannelWiring, position: int | None) -> int | None:
    """Return the number of events that the journal has, or the target shows, and whose notices are not sent. None where
    the position or the place's newest event is not known."""
    if position is None:
        return None
    try:
        if channel.target is None:
            newest = channel.source.side().journal.last()
        else:
            epoch = channel.target.ledger().last_epoch()
            newest = epoch.event_id if epoch is not None else None
    except (Unavailable, StateUnusable):
        return None
    return max((newest or 0) - position, 0)
