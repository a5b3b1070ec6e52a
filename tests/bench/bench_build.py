"""Memory and processor seconds of calque alone while it reads and builds one table, and while it compares one that the
target has: no server, no file.

Each figure is of a process of its own. The source makes partitions as they are asked for, the target keeps none, or
makes their images.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from rig import arguments, number, tell_machine

from calque.engine.exact_reads.build_in_batches import BATCH

WHOLE = 10**9
ONE = """
import sys, time
from pathlib import Path
import endless
read = getattr(endless, sys.argv.pop(1))
def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
read(10, 10)
Path("/proc/self/clear_refs").write_text("5")
base, begin = peak(), time.process_time()
assert read(*map(int, sys.argv[1:])).advanced.complete
print(peak() - base, time.process_time() - begin)
"""


def main(given: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--sizes", default="10000,100000", help=" ")
    options = parser.parse_args(given)
    tell_machine()
    for size in map(int, options.sizes.split(",")):
        for what in ("read", "compare"):
            for label, batch in ((f"batches of {BATCH:,}", BATCH), ("in one piece", WHOLE)):
                tell(what, size, label, batch)


def tell(what: str, size: int, label: str, batch: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ONE, what, str(size), str(batch)], capture_output=True, text=True, check=True
    )
    memory, seconds = map(float, done.stdout.split())
    each = memory * 1024 / size
    print(f"{size:>9,} partitions, {what:<7} {label:<18} {number(memory):>8} MiB at most, {number(each)} KiB each, "
          f"{number(seconds)} s of processor", flush=True)  # fmt: skip


def test_a_build_is_measured() -> None:
    main(["--sizes", "50"])


if __name__ == "__main__":
    main()
