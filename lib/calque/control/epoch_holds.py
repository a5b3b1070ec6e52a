"""Records of epochs that readers hold, so that `sweep` leaves their files. Each is a small record with a time limit in
the state folder."""

from __future__ import annotations

from uuid import uuid4

from calque.model.state_places import TargetPlaces
from calque.ports.records import Records


def hold(control: Records, target: str, since_ns: int, until_ns: int) -> str:
    """Record that a reader needs what the target showed at `since_ns` and later, until `until_ns`. Return the record's
    name. Times are nanoseconds since 1970."""
    name = f"{TargetPlaces(target).holds}{uuid4().hex}"
    control.put(name, {"since": since_ns, "until": until_ns})
    return name


def held_since(control: Records, target: str, now_ns: int) -> int | None:
    """Return the earliest time since which a reader holds what the target showed, in nanoseconds since 1970; None where
    no reader does. Holds that are over at `now_ns` are removed."""
    since_times: list[int] = []
    for name in control.names(TargetPlaces(target).holds):
        match control.read(name):
            case {"since": int(since), "until": int(until)} if until > now_ns:
                since_times.append(since)
            case {"until": int()}:
                control.remove(name)
    return min(since_times, default=None)
