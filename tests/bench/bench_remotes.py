"""What a link costs a reader and how far it lags, on real metastores.

Times of get_table and of all partitions of one table: on a link, on a local table of the same size, and at the remote
metastore through a forwarder of bytes, which is less than a proxy of metastore calls does. Calls of the three are made
in turn. Then the seconds from a change at the remote catalog to when the link shows it, and memory and processor of the
idle process.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from rig import arguments, memory_mib, metastores, percentile, processor_seconds, tell, tell_machine, timed, wait_until

from calque.sandbox.writer import HiveClient
from support.services.linked import Catalog, Linked
from support.services.thriftproxy import asked

IDLE_SECONDS = 20.0


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, partitions=1000, reads=50, changes=30, links=10).parse_args(given)
    tell_machine()
    with metastores(2) as (root, (local, remote)):
        linked = Linked(root, local.uri, remote.uri)
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
            for links in (1, options.links):
                idle(linked, links)
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


def has_change(linked: Linked, change: str) -> bool:
    return linked.here.parameters("here.orders").get("change") == change


def idle(linked: Linked, links: int) -> None:
    assert linked.process is not None
    for number in range(len(linked.rows()), links):
        linked.there.table(f"shop.t{number}")
        linked.link(f"here.t{number}", f"shop.t{number}")
    linked.wait_live(*linked.rows(), seconds=300)
    before = processor_seconds(linked.process.pid)
    time.sleep(IDLE_SECONDS)
    share = (processor_seconds(linked.process.pid) - before) / IDLE_SECONDS
    memory, _ = memory_mib(linked.process.pid)
    print(f"{links} links over one endpoint: {memory:.0f} MiB, {share:.0%} of a processor when idle", flush=True)


def test_links_are_read_like_local_tables() -> None:
    main(["--partitions", "20", "--reads", "2", "--changes", "2", "--links", "2"])


if __name__ == "__main__":
    main()
