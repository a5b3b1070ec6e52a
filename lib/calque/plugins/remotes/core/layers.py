"""Several local names of one remote table: links are spread over layers, each a policy that gives every name one image.

A replica knows its tables by their names at the source, and gives each of them one state, one cursor and one place in
quarantine. Where a table has two images, each image needs these for itself. So the images lie in two layers, which
follow one journal. Links that share no remote name, which is the common case, are all in one layer.

    Links(tables={a.t: shop.t, b.t: shop.t, b.u: shop.u})
    layer 0: shop.t as a.t, shop.u as b.u       layer 1: shop.t as b.t
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from calque.core.policy.patterns import GLOB_PART, WILD
from calque.model.names import TableName
from calque.model.policy import Policy
from calque.plugins.remotes.model import Links

Layers = Mapping[TableName, int]
"""The layer of each link, by its local name."""


def layers_of(links: Links, before: Layers) -> dict[TableName, int]:
    """Return the layer of each link, by local name. A link stays in its layer in `before` as long as its remote name is
    free there. So a link that is added or removed moves no other link. A new link takes the lowest layer that has
    room."""
    layers: defaultdict[int, _Layer] = defaultdict(_Layer)
    placed: dict[TableName, int] = {}
    known = sorted((before[local], local, remote) for local, remote in links if local in before)
    for number, local, remote in known:
        if layers[number].takes(remote):
            placed[local] = number
    for local, remote in sorted(links):
        if local not in placed:
            placed[local] = next(number for number in count() if layers[number].takes(remote))
    return placed


def layer_policies(
    template: Policy, links: Links, layers: Layers, occupied: Collection[TableName]
) -> dict[int, Policy]:
    """Return the policy of each layer, by its number. A policy has the names of its layer, and all else of `template`.
    Layers beyond the first have a target's name of their own. `occupied` are local tables that stand for another
    object, in linked databases too: a linked database leaves out its table of that name."""
    own_names = {*occupied, *links.tables}
    policies = {}
    for number in sorted({*layers.values()}):
        tables = {local: remote for local, remote in links.tables.items() if layers[local] == number}
        databases = {local: remote for local, remote in links.databases.items() if layers[TableName(local)] == number}
        policies[number] = replace(
            template,
            target=layer_name(template.target, number),
            include=(
                *(_everything_in(remote) for remote in sorted(databases.values())),
                *(exactly(remote) for remote in sorted(tables.values())),
            ),
            exclude=tuple(
                exactly(TableName(databases[local.database], local.table))
                for local in sorted(own_names)
                if local.database in databases
            ),
            rename={
                **{remote: local for local, remote in databases.items() if remote != local},
                **{str(remote): str(local) for local, remote in tables.items() if remote != local},
            },
        )
    return policies


def layer_name(target: str, number: int) -> str:
    """Return the name of a layer's target: the projection's own name for layer 0, `target.2` for layer 1."""
    return f"{target}.{number + 1}" if number else target


@dataclass(slots=True)
class _Layer:
    """The remote names that have an image in a layer. The image of a database is an image of all its tables."""

    names: set[TableName] = field(default_factory=set)
    databases: set[str] = field(default_factory=set)

    def takes(self, remote: TableName) -> bool:
        """Give the remote name its image in this layer, and return True; return False where it has one already."""
        whole = TableName(remote.database)
        if remote in self.names or whole in self.names or (remote == whole and remote.database in self.databases):
            return False
        self.names.add(remote)
        self.databases.add(remote.database)
        return True


def exactly(name: TableName) -> str:
    """Return the pattern that matches this name alone."""
    return str(name) if _plain(name) else f"/{re.escape(str(name))}/"


def _everything_in(database: str) -> str:
    return f"{database}.*" if _plain((database,)) else f"/{re.escape(database)}[.].*/"


def _plain(parts: Iterable[str]) -> bool:
    return all(GLOB_PART.fullmatch(part) and not WILD.search(part) and not part.startswith("/") for part in parts)
