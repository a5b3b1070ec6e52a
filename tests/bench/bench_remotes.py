"""What a link costs a reader and how far it lags, on real metastores.

Times of get_table and of all partitions of one table: on a link, on a local table of the same size, and at the remote
metastore through a forwarder of bytes, which is less than a proxy of metastore calls does. Calls of the three are made
in turn. Then the seconds from a change at the remote catalog to when the link shows it; memory and processor of the
idle process; the seconds until a linked database with many tables is live, and those of the bare calls that read and
make as much, one after the other.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from rig import arguments, memory_mib, metastores, percentile, processor_seconds, tell, tell_machine, timed, wait_until

from calque.model.names import TableName
from calque.sandbox.writer import HiveClient
from support.services.linked import Catalog, Linked
from support.services.thriftproxy import asked

IDLE_SECONDS = 20.0


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, partitions=1000, reads=50, changes=30, engines=10, tables=1000, links=100).parse_args(
        given
    )
    tell_machine()
    with metastores(2) as (root, (local, remote)):
        linked = Linked(root, local.uri, remote.uri)
        sections = "".join(f"[remotes.credentials.c{number}]\n" for number in range(3))
        linked.config.write_text(f"{linked.config.read_text()}{sections}")
        values = [f"{number:06}" for number in range(options.partitions)]
        linked.there.database("shop")
        linked.there.table("shop.orders", *values)
        linked.here.database("here")
        linked.here.table("here.own", *values)
        linked.link("here.orders", "shop.orders")
        try:
            linked.start()
            linked.wait_live("here.orders", seconds=300)
            with asked(remote.uri) as forwarder:
                reads(linked, forwarder.uri, values, options.reads)
            lag(linked, options.changes)
            engines(linked, options.engines)
            for links, endpoints in ((1, 1), (options.links // 10, 3), (options.links, 1), (options.links, 3)):
                idle(linked, links, endpoints)
            bootstrap(linked, options.tables)
        finally:
            linked.close()


def reads(linked: Linked, forwarded: str, values: Sequence[str], count: int) -> None:
    catalogs = {
        "link": (linked.here, "here.orders"),
        "local table": (linked.here, "here.own"),
        "through a forwarder": (Catalog(forwarded, linked.root), "shop.orders"),
    }
    headers: dict[str, list[float]] = {label: [] for label in catalogs}
    parts: dict[str, list[float]] = {label: [] for label in catalogs}
    for turn in range(count + 1):
        for label, (catalog, name) in catalogs.items():
            header = timed(partial(catalog.shown, name))
            part = timed(partial(partitions, catalog, name, len(values)))
            if turn:
                headers[label].append(header * 1000)
                parts[label].append(part * 1000)
    for what, times in (("get_table", headers), (f"{len(values):,} partitions", parts)):
        for label in catalogs:
            tell(f"{what}: {label}", times[label], "ms")


def partitions(catalog: Catalog, name: str, count: int) -> None:
    client: HiveClient = catalog.client
    table = catalog.shown(name)
    assert table is not None
    found = client.catalog.few_partitions(table, count)
    assert found is not None
    assert len(found) == count


def lag(linked: Linked, count: int) -> None:
    seconds = []
    for change in range(count):
        begin = time.perf_counter()
        linked.there.set("shop.orders", {"change": str(change)})
        seconds.append(wait_until(partial(has_change, linked, str(change))) - begin)
    print(f"lag of {count} changes: p50 {percentile(seconds, 0.5):.2f} s, p95 {percentile(seconds, 0.95):.2f} s")


def engines(linked: Linked, count: int) -> None:
    """Links that parameters alone make, as an engine does."""
    seconds = []
    for number in range(count):
        there, here = f"shop.engine{number}", f"here.engine{number}"
        linked.there.table(there)
        settings = {"calque.remote.connected_to": there, "hive.metastore.uris": linked.remote_uri}
        begin = time.perf_counter()
        linked.here.bare(here, settings)
        place = linked.there.location(there)
        seconds.append(wait_until(lambda name=here, place=place: linked.here.location(name) == place) - begin)  # type: ignore[misc]
    print(f"{count} links of engines: live after p50 {percentile(seconds, 0.5):.2f} s, most {max(seconds):.2f} s")


def has_change(linked: Linked, change: str) -> bool:
    return linked.here.parameters("here.orders").get("change") == change


def idle(linked: Linked, links: int, endpoints: int) -> None:
    """Links of their own database, over endpoints that differ in their credentials."""
    assert linked.process is not None
    database = f"idle{links}x{endpoints}"
    linked.here.database(database)
    for number in range(links):
        name = f"t{number}"
        if name not in linked.there.tables("shop"):
            linked.there.table(f"shop.{name}")
        settings = f"'hive.metastore.uris' = '{linked.remote_uri}'"
        with_it = f"{settings}, 'calque.remote.credentials' = 'c{number % endpoints}'"
        linked.sql(f"CREATE REMOTE TABLE {database}.{name} CONNECTED TO shop.{name} WITH TBLPROPERTIES ({with_it})")
    linked.wait_live(*(f"{database}.t{number}" for number in range(links)), seconds=300)
    before = processor_seconds(linked.process.pid)
    time.sleep(IDLE_SECONDS)
    share = (processor_seconds(linked.process.pid) - before) / IDLE_SECONDS
    memory, _ = memory_mib(linked.process.pid)
    print(
        f"{links} links over {endpoints} endpoints: {memory:.0f} MiB, {share:.0%} of a processor when idle", flush=True
    )
    for number in range(links):
        linked.sql(f"DROP REMOTE TABLE {database}.t{number}")


def bootstrap(linked: Linked, tables: int) -> None:
    """Each with 20 partitions."""
    far, names = linked.there, [f"t{number}" for number in range(tables)]
    far.database("wide")
    for name in names:
        far.table(f"wide.{name}", *(f"{value:02}" for value in range(20)))
    linked.here.database("bare")

    def bare() -> None:
        for name, header in far.client.catalog.headers("wide", names).items():
            found = far.client.catalog.few_partitions(header, 1000)
            assert found is not None
            linked.here.client.create_table(replace(header, database="bare"))
            parts = [replace(part, database="bare") for part in found.values()]
            linked.here.client.add_partitions(TableName("bare", name), parts)

    def linked_database() -> None:
        linked.link_database("wide", "wide")
        wait_until(lambda: len(linked.here.tables("wide")) == tables, 0.2)
        linked.wait_live("wide", *(f"wide.{name}" for name in names), seconds=1200)

    one, other = timed(bare), timed(linked_database)
    print(
        f"{tables} tables of 20 partitions: live after {other:.1f} s, bare calls {one:.1f} s, ratio {other / one:.2f}"
    )


def test_links_are_read_like_local_tables() -> None:
    main(["--partitions", "20", "--reads", "2", "--changes", "2", "--engines", "2", "--links", "10", "--tables", "3"])


if __name__ == "__main__":
    main()
