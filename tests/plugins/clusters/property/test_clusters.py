"""Resolution beside an interpreter of the multi-cluster document that knows no predicates and no parser: it builds
every partition's row, and asks SQLite which rows a condition takes. It shares no code with what it judges."""

from __future__ import annotations

import random
import sqlite3
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import settings

from calque.model.names import TableName
from calque.plugins.clusters.core.resolve import resolve
from calque.plugins.clusters.core.rewrite import names_at, rewritable, rewritten
from calque.plugins.clusters.core.statement_tables import tables_of
from calque.plugins.clusters.model import ClusteredTable, Clusters, Replica
from support.runs.seeds import seed

WORLDS = {"check": 500, "prove": 10_000}.get(settings.get_current_profile_name(), 2_000)
NAMES = ("C1", "C2", "C3")
DAYS = ("2024-01-01", "2024-01-02", "2024-01-03", None)
HOURS = (1, 2, 10)
MAX_LAG = 60.0


@dataclass
class Table:
    """`rows` are its partitions, (day, hour), `whole` says which of them each secondary has, and how far it lags."""

    primary: str
    rows: list[tuple[str | None, int]] = field(default_factory=list)
    whole: dict[str, set[tuple[str | None, int]]] = field(default_factory=dict)
    lag: dict[str, float] = field(default_factory=dict)
    view_of: str = ""


@dataclass
class Query:
    """Its text; each table that it names with a condition on it, in the order of appearance; what it writes."""

    text: str
    reads: list[tuple[str, str]]
    writes: list[str]


def random_world(rng: random.Random) -> dict[str, Table]:
    tables = {}
    for name in ("a", "b", "c", "d"):
        rows = rng.sample([(day, hour) for day in DAYS for hour in HOURS], rng.randrange(7))
        table = Table(rng.choice(NAMES), rows)
        for cluster in NAMES:
            if cluster != table.primary and rng.random() < 0.6:
                table.whole[cluster] = {row for row in rows if rng.random() < rng.choice([0.7, 1.0, 1.0])}
                table.lag[cluster] = rng.choice([0.0, 59.0, 61.0] if rng.random() < 0.3 else [0.0])
        tables[name] = table
    for name, bases in (("v", "abcd"), ("w", "abv")):
        view = Table(rng.choice(NAMES), view_of=rng.choice(bases))
        view.whole = {cluster: set() for cluster in NAMES if cluster != view.primary and rng.random() < 0.8}
        view.lag = dict.fromkeys(view.whole, 0.0)
        tables[name] = view
    return tables


def random_condition(rng: random.Random, alias: str, depth: int = 2) -> str:
    day, hour = rng.choice(DAYS[:3]), rng.choice(HOURS)
    operator = rng.choice(["=", "<>", "<", "<=", ">", ">="])
    choices = [
        f"{alias}.ds {operator} '{day}'",
        f"{alias}.hr {operator} {hour}",
        f"{alias}.ds IN ('{day}', '2024-01-02')",
        f"{alias}.hr NOT IN ({hour}, 2)",
        f"{alias}.ds BETWEEN '2024-01-01' AND '{day}'",
        f"{alias}.ds IS {rng.choice(['', 'NOT '])}NULL",
    ]
    if depth and rng.random() < 0.5:
        one, other = (random_condition(rng, alias, depth - 1) for _ in range(2))
        return rng.choice([f"({one} OR {other})", f"({one} AND {other})", f"NOT ({one})"])
    return rng.choice(choices)


def random_query(rng: random.Random) -> Query:
    named = [rng.choice("abcdvw") for _ in range(rng.randrange(1, 4))]
    sources, conditions, reads = [], [], []
    for number, name in enumerate(named):
        alias = f"t{number}"
        has_condition = name in "abcd" and rng.random() < 0.6
        condition = random_condition(rng, alias) if has_condition else ""
        sources.append(f"{rng.choice(['db.', ''])}{rng.choice([name, name.upper(), f'`{name}`'])} {alias}")
        conditions += [condition] if condition else []
        reads.append((name, condition.replace(f"{alias}.", "")))
    where = f" WHERE {' AND '.join([*conditions, 't0.x > 1'])}" if conditions else ""
    text = f"SELECT * FROM {' JOIN '.join(sources)}{where}"
    writes = [rng.choice([*"abcd", "fresh"])] if rng.random() < 0.4 else []
    if rng.random() < 0.2:
        text = text.replace("SELECT *", "SELECT q.* FROM (SELECT *", 1) + ") q"
    return Query(f"INSERT INTO {writes[0]} {text}" if writes else text, reads, writes)


def rows_taken(rows: list[tuple[str | None, int]], condition: str) -> set[tuple[str | None, int]]:
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE rows (ds TEXT, hr INTEGER)")
        database.executemany("INSERT INTO rows VALUES (?, ?)", rows)
        taken = set(database.execute(f"SELECT ds, hr FROM rows WHERE {condition or '1'}").fetchall())
    database.close()
    return taken


def unfolded(world: dict[str, Table], reads: list[tuple[str, str]]) -> list[tuple[str, str]]:
    found = []
    for name, condition in reads:
        found.append((name, condition))
        while world[name].view_of:
            name = world[name].view_of
            found.append((name, ""))
    return found


def naive(world: dict[str, Table], query: Query, default: str, used: str | None, use_default: bool) -> str | None:
    reads = unfolded(world, query.reads)

    def works(cluster: str) -> bool:
        for name in query.writes:
            if name in world and world[name].primary != cluster:
                return False
        for name, condition in reads:
            table = world[name]
            if table.primary == cluster:
                continue
            if cluster not in table.whole or table.lag[cluster] > MAX_LAG:
                return False
            if not rows_taken(table.rows, condition) <= table.whole[cluster]:
                return False
        return True

    if used or use_default:
        candidates = [used or default]
    elif [name for name in query.writes if name in world]:
        candidates = [world[name].primary for name in query.writes if name in world]
    else:
        candidates = [world[name].primary for name, _ in reads]
    return next((cluster for cluster in candidates if works(cluster)), None)


def clustered(table: Table) -> ClusteredTable:
    if table.view_of:
        replicas = {cluster: Replica() for cluster in table.whole}
        return ClusteredTable((table.primary,), replicas=replicas, view=f"SELECT * FROM db.{table.view_of}")

    def partition(row: tuple[str | None, int]) -> str:
        return f"ds={row[0] or '__HIVE_DEFAULT_PARTITION__'}/hr={row[1]}"

    replicas = {
        cluster: Replica(frozenset(map(partition, rows)), table.lag[cluster]) for cluster, rows in table.whole.items()
    }
    return ClusteredTable(
        (table.primary,), {"ds": "string", "hr": "int"}, frozenset(map(partition, table.rows)), replicas
    )


@pytest.mark.parametrize("share", range(4))
def test_resolution_is_what_the_document_says(share: int) -> None:
    for number in range(share, WORLDS, 4):
        rng = random.Random(seed() * WORLDS + number)
        world, query = random_world(rng), random_query(rng)
        default, used = rng.choice(NAMES), rng.choice([None, None, None, *NAMES])
        use_default = rng.random() < 0.1
        tables = {TableName("db", name): renamed(name, clustered(table), rng) for name, table in world.items()}
        clusters = Clusters(NAMES, default, use_default, max_lag=MAX_LAG)
        statement = tables_of(query.text, "db", tables.get)
        assert rewritable(query.text, "db", statement, tables, NAMES) == tables
        resolution = resolve(statement, tables, clusters, used)
        assert resolution.cluster == naive(world, query, default, used, use_default), (number, query, world, resolution)
        assert [one.cluster for one in resolution.considered if one.chosen] == [resolution.cluster] * bool(
            resolution.cluster
        )
        if resolution.cluster is not None:
            check_names(
                query, rewritten(query.text, "db", names_at(resolution.cluster, statement, tables)), resolution.cluster
            )


def renamed(name: str, table: ClusteredTable, rng: random.Random) -> ClusteredTable:
    """Some replicas have other names, which say where they are."""
    replicas = {
        cluster: replace(replica, local_name=TableName(f"db_{cluster}".lower(), rng.choice([name, f"{name}_2"])))
        if rng.random() < 0.4
        else replica
        for cluster, replica in table.replicas.items()
    }
    return replace(table, replicas=replicas)


def check_names(query: Query, text: str, cluster: str) -> None:
    """What the rewritten statement names are the same tables, in their order, each as it is called at the cluster, and
    nothing else of it has changed."""
    read = [one.name for one in tables_of(text, "db", lambda _: None).inputs]
    names = list(dict.fromkeys(name for name, _ in query.reads))
    assert list(dict.fromkeys(name.table.removesuffix("_2") for name in read)) == names
    assert {name.database for name in read} <= {"db", f"db_{cluster}".lower()}
    if {name.database for name in read} == {"db"}:
        assert text == query.text
