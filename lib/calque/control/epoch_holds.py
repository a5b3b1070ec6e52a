"""Epochs that readers hold, so that `sweep` leaves their files: small records with a time limit in the state folder."""

from __future__ import annotations

from uuid import uuid4

from calque.model.state_places import TargetPlaces
from calque.ports.records import Records


def hold(control: Records, target: str, since_ns: int, until_ns: int) -> str:
    """Keep what the target had at `since_ns`, and what has come since, until then; the record's name. Times are
    nanoseconds since the epoch."""
    name = f"{TargetPlaces(target).holds}{uuid4().hex}"
    control.put(name, {"since": since_ns, "until": until_ns})
    return name


def held_since(control: Records, target: str, now_ns: int) -> int | None:
    """What the oldest hold on a target keeps; None without one. Those whose time is over are removed."""
    since_times: list[int] = []
    for name in control.names(TargetPlaces(target).holds):
        match control.read(name):
            case {"since": int(since), "until": int(until)} if until > now_ns:
                since_times.append(since)
            case {"until": int()}:
                control.remove(name)
    return min(since_times, default=None)
