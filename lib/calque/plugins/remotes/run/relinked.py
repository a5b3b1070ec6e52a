"""The choice of the projections that go on when links begin and end."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from calque.config import Config
from calque.config.plugs import Target
from calque.model.names import TableName
from calque.plugins.remotes.core.definitions import DATA


def relinked(before: Config, now: Config, targets: Collection[str]) -> Collection[str]:
    """Return those of `targets` that differ only in their links: these go on with their other links. Return none where
    a link moves between projections, or stands for another object than before."""
    found = {name for name in targets if has_other_links(before.targets[name], now.targets[name])}
    return set() if found and moves_links(before, now) else found


def names_of(config: Config, target: str) -> Collection[TableName]:
    """Return the local names of the links of a projection."""
    plug = config.targets.get(target)
    return () if plug is None else tuple(plug.links or ())


def has_other_links(before: Target, now: Target) -> bool:
    """Tell whether two configurations of one projection differ in nothing but their links."""
    names: dict[str, object] = {"include": (), "exclude": (), "rename": {}, "data": "none"}
    bare_before, bare_now = (replace(one, keys=one.keys.model_copy(update=names), links=None) for one in (before, now))
    return None not in (before.links, now.links) and bare_before == bare_now


def moves_links(before: Config, now: Config) -> bool:
    """Tell whether a link belongs to another projection than before, or stands for another object."""
    old_links, new_links = links_of(before), links_of(now)
    return any(old_links[name] != new_links[name] for name in old_links.keys() & new_links.keys())


def links_of(config: Config) -> Mapping[TableName, object]:
    return {
        name: (target.name, {key: value for key, value in link.items() if key != DATA})
        for target in config.targets.values()
        for name, link in (target.links or {}).items()
    }
