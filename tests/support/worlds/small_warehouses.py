"""Small warehouses, each of a few tables of which a secondary cluster has all, some or nothing, with a query over them.

warehouse = drawn(random.Random(7), number=3)
warehouse.tables                        # Kept("w3a", keyed=True, replica="days"), …
warehouse.query                         # "SELECT count(*) FROM w3a WHERE ds = '2024-01-02'"
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

DAYS = tuple(f"2024-01-0{day}" for day in (1, 2, 3))
Replica = Literal["whole", "renamed", "days", "none"]
REPLICAS: tuple[Replica, ...] = get_args(Replica)
HALF = 1 << 39
"""Half of the ids are above it."""
FIRST_KEPT = DAYS[1]
"""Of a table with some of its days at the secondary: from this one on."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A table `(id BIGINT, x STRING)`, with days as partitions where it is `keyed`. At the secondary it is whole, has
    another name, has some days only, or is missing."""

    name: str
    keyed: bool
    replica: Replica


@dataclass(frozen=True, slots=True)
class View:
    """All of its base, a table or a view."""

    name: str
    base: str


@dataclass(frozen=True, slots=True)
class Warehouse:
    tables: tuple[Kept, ...]
    views: tuple[View, ...]
    query: str


def drawn(chance: random.Random, number: int) -> Warehouse:
    tables = []
    for letter in "ab"[: chance.randint(1, 2)]:
        keyed = chance.random() < 0.5
        kinds: list[Replica] = ["whole", "whole", "renamed", "days" if keyed else "whole", "none"]
        tables.append(Kept(f"w{number}{letter}", keyed, chance.choice(kinds)))
    views: list[View] = []
    if chance.random() < 0.3:
        base = chance.choice([table.name for table in tables])
        views.append(View(f"w{number}v", base))
        if chance.random() < 0.5:
            views.append(View(f"w{number}vv", f"w{number}v"))
    sources = [*tables, *views]
    return Warehouse(tuple(tables), tuple(views), query(chance, sources))


def query(chance: random.Random, sources: Sequence[Kept | View]) -> str:
    """One whose rows do not depend on their order."""
    kept, second = chance.choice(sources), chance.choice(sources)
    part, other_part = filtered(chance, kept), filtered(chance, second)
    one, other = kept.name, second.name
    return chance.choice(
        [
            f"SELECT id, x FROM {one}{part}",
            f"SELECT count(*), min(id), max(x) FROM {one}{part}",
            f"SELECT x, count(*) FROM {one}{part} GROUP BY x",
            f"SELECT l.id, r.x FROM (SELECT * FROM {one}{part}) l JOIN {other} r ON l.x = r.x",
            f"SELECT l.id FROM {one} l LEFT JOIN (SELECT x FROM {other}{other_part}) r ON l.x = r.x",
            f"SELECT id FROM {one}{part} UNION ALL SELECT id FROM {other}{other_part}",
            f"SELECT id FROM {one}{part} EXCEPT SELECT id FROM {other}{other_part}",
            f"WITH {other} AS (SELECT id, x FROM {one}{part}) SELECT * FROM {other}",
            f"WITH c AS (SELECT x FROM {other}{other_part}) SELECT id FROM {one} WHERE x IN (SELECT x FROM c)",
            f"SELECT `{one}`.id, word FROM `{one}` LATERAL VIEW explode(split(x, ',')) w AS word -- {other}",
        ]
    )


def filtered(chance: random.Random, source: Kept | View) -> str:
    """A predicate over days, or over what is no key, or none."""
    if not isinstance(source, Kept) or not source.keyed or chance.random() < 0.2:
        return chance.choice(["", f" WHERE id > {HALF}"])
    day, later = sorted(chance.choices(DAYS, k=2))
    return " WHERE " + chance.choice(
        [
            f"ds = '{later}'",
            f"ds IN ('{day}', '{later}')",
            f"ds BETWEEN '{day}' AND '{later}'",
            f"ds >= '{later}' AND id > {HALF}",
            f"NOT ds < '{later}'",
            f"(ds = '{day}' OR ds = '{later}') AND x IS NOT NULL",
            f"ds = '{day}' OR id > {HALF}",
            f"substr(ds, 9) = '{day[8:]}'",
        ]
    )
