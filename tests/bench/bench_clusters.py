"""How long it takes to say on which cluster a join of five tables runs, with 10,000 partitions each, beside sqlglot's
own parsing of the same text.

Each round parses the statement, reads its tables and resolves them; the second cluster lacks some partitions of each
table, which the query's conditions prune. Medians of processor time in one process, and the spread.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence

import sqlglot

from calque.model.names import TableName
from calque.plugins.clusters.core.resolve import resolve
from calque.plugins.clusters.core.statement_tables import tables_of
from calque.plugins.clusters.model import ClusteredTable, Clusters, Replica

QUERY = "SELECT count(*) FROM f {joins} WHERE f.ds >= '2024-02-01' AND {conditions}"


def main(given: Sequence[str] | None = None) -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--partitions", type=int, default=10_000)
    options.add_argument("--missing", type=int, default=1_000)
    options.add_argument("--rounds", type=int, default=21)
    chosen = options.parse_args(given)

    names = ["f", *(f"t{number}" for number in range(4))]
    all_names = [f"ds=2024-{1 + n % 12:02}-{1 + n // 12 % 28:02}/hr={n // 336}" for n in range(chosen.partitions)]
    early = [name for name in all_names if name < "ds=2024-02"][: chosen.missing]
    whole, part = frozenset(all_names), frozenset(all_names) - frozenset(early)
    keys = {"ds": "string", "hr": "int"}
    tables = {TableName("d", name): ClusteredTable(("C1",), keys, whole, {"C2": Replica(part)}) for name in names}
    joins = " ".join(f"JOIN {name} ON f.x = {name}.x" for name in names[1:])
    text = QUERY.format(joins=joins, conditions=" AND ".join(f"{name}.ds >= '2024-02-01'" for name in names[1:]))
    clusters = Clusters(("C1", "C2"), "C1")

    def resolved() -> None:
        assert resolve(tables_of(text, "d", tables.get), tables, clusters, "C2").cluster == "C2"

    print(f"5 tables of {len(whole):,} partitions, {len(early):,} of each not at the cluster")
    measure("resolved", chosen.rounds, resolved)
    measure("sqlglot alone", chosen.rounds, lambda: sqlglot.parse(text, read="hive"))


def measure(label: str, rounds: int, work: Callable[[], object]) -> None:
    work()
    took = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        took.append((time.process_time() - began) * 1e3)
    print(f"{label}: {statistics.median(took):.1f} ms ({min(took):.1f} to {max(took):.1f})")


if __name__ == "__main__":
    main()
