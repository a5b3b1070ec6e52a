"""What the page costs with many tables and targets: the first paint in a real browser, answers, memory of the process.

The page is that of `run`, over targets whose states of tables are as in a running process; there are no metastores
and no streams beside it. `first paint` is the browser's own word for the moment at which the page shows anything,
`drawn` when the states of all targets are on it. All of it is on this machine, so that no network is in it.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from urllib.request import urlopen

from rig import arguments, memory_mib, tell, tell_machine, timed, wait_until

from calque.config.checks import Endpoint
from calque.serve.guard import Tokens
from calque.serve.http import Access, serve
from calque.serve.pages import Pages
from support.services.browser import DESKTOP, Browser, browser, missing
from support.worlds.pages import fill, page_of

PAINT = "return performance.getEntriesByName('first-contentful-paint').map((entry) => entry.startTime)[0] ?? null"


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, tables=100_000, targets=20, runs=10).parse_args(given)
    tell_machine()
    with tempfile.TemporaryDirectory(prefix="calque-bench-") as folder:
        console = page_of(Path(folder), options.targets)
        before, _ = memory_mib(own_process())
        for part in console.targets().values():
            fill(part, options.tables)
        filled, _ = memory_mib(own_process())
        pages = Pages(console.run.snapshot, console.run.meters.text, dict, console.front())
        serving = serve(Endpoint("127.0.0.1", 0), pages, Access(Tokens(), None))
        console.begin()
        try:
            answers(serving.address, options.runs)
            if missing():
                print(f"no first paint: {' and '.join(missing())} not installed")
            else:
                with browser() as chromium:
                    paints(chromium, serving.address, options.targets, options.runs)
            served, _ = memory_mib(own_process())
        finally:
            console.end()
            serving.end()
        states = f"states of {options.targets} × {options.tables:,} tables"
        print(f"{states}: {filled - before:.0f} MiB; the page with its answers: {served - filled:.0f} MiB more")


def own_process() -> int:
    return int(Path("/proc/self").resolve().name)


def answers(address: str, runs: int) -> None:
    for label, path in (
        ("overview", "overview"),
        ("tables, first page", "tables?target=t00"),
        ("tables, one of all by a part of its name", "tables?target=t00&q=t099999"),
        ("tables, those set aside", "tables?target=t00&state=quarantined"),
        ("tables, by their lags", "tables?target=t00&order=lag"),
        ("all tables as CSV", "export?target=t00&format=csv"),
    ):
        assert read(address, path)
        times = []
        for _ in range(runs):
            time.sleep(1.05 if path == "overview" else 0.0)  # It is the same for all who ask within a second.
            times.append(timed(partial(read, address, path)) * 1000)
        tell(f"{label} ({len(read(address, path)) / 1000:.0f} kB)", times, "ms")


def read(address: str, path: str) -> bytes:
    with urlopen(f"{address}/api/{path}", timeout=60) as answer:
        content: bytes = answer.read()
    return content


def paints(chromium: Browser, address: str, targets: int, runs: int) -> None:
    chromium.show(DESKTOP, "light")
    first, drawn = [], []
    for _ in range(runs):
        chromium.driver.get("about:blank")
        begin = time.perf_counter()
        chromium.driver.get(f"{address}/#/")
        count = "return document.querySelectorAll('.targets section').length"
        drawn.append((wait_until(lambda count=count: chromium.run(count) == targets) - begin) * 1000)  # type: ignore[misc]
        wait_until(lambda: chromium.run(PAINT) is not None)
        first.append(float(chromium.run(PAINT)))
    tell("first paint", first, "ms")
    tell("drawn, with the driver's round trips", drawn, "ms")
    heap = chromium.run("return performance.memory.usedJSHeapSize") / (1 << 20)
    print(f"the browser's heap for the page: {heap:.1f} MiB")


def test_the_page_of_many_tables() -> None:
    main(["--tables", "1000", "--targets", "2", "--runs", "1"])


if __name__ == "__main__":
    main()
