"""What the benchmarks share: metastores, calque as a process, objects to write, and how figures are printed."""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from calque.model.hive import Column, Partition, SerDe, Storage, Table
from calque.model.names import TableName
from calque.sandbox import Metastore, MetastoreSettings

sys.path.append(str(Path(__file__).parents[1]))
"""What tests share: pytest finds it by itself, scripts do not."""

SOURCE = "hq"
INPUT = "org.apache.hadoop.mapred.TextInputFormat"
OUTPUT = "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat"
SERDE = SerDe(class_name="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={})
TIMEOUT_SECONDS = 600.0


# Figures


def arguments(text: str | None, **defaults: int) -> argparse.ArgumentParser:
    """A parser of whole numbers, one option for each default."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=" ")
    return parser


def tell(label: str, values: Sequence[float], unit: str) -> float:
    """Print median and spread of the runs' values; the median."""
    middle = statistics.median(values)
    spread = f"{number(min(values))} – {number(max(values))}"
    print(f"{label:<46}{number(middle):>10} {unit:<9} spread {spread}, runs {len(values)}", flush=True)
    return middle


def number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"


def tell_ratio(label: str, ratio: float) -> None:
    print(f"{label:<46}{ratio:>10.2f}", flush=True)


def tell_machine() -> None:
    one, five, _ = os.getloadavg()
    print(f"{os.cpu_count()} cores, load {one:.1f} (1 min) {five:.1f} (5 min)", flush=True)


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def timed(action: Callable[[], object]) -> float:
    """Seconds that the action takes."""
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def wait_until(reached: Callable[[], object], pause: float = 0.005, seconds: float = TIMEOUT_SECONDS) -> float:
    """Look until it is so; the monotonic moment. Raises `TimeoutError`."""
    deadline = time.perf_counter() + seconds
    while not reached():
        if time.perf_counter() > deadline:
            raise TimeoutError(f"nothing came within {seconds:.0f} s")
        time.sleep(pause)
    return time.perf_counter()


# Services and processes


@contextmanager
def metastores(count: int, version: str = "3.1.3") -> Iterator[tuple[Path, Sequence[Metastore]]]:
    """A folder that goes away, and so many fresh metastores."""
    with (
        tempfile.TemporaryDirectory(prefix="calque-bench-", ignore_cleanup_errors=True) as folder,
        ThreadPoolExecutor() as pool,
    ):
        root = Path(folder).resolve()
        settings = MetastoreSettings(version=version)
        starting = [pool.submit(Metastore.start, settings, root / f"metastore{index}") for index in range(count)]
        servers = [start.result() for start in starting]
        try:
            yield root, servers
        finally:
            for server in servers:
                server.stop()


@dataclass
class Job:
    """A configuration in a folder of its own, and processes on it. `targets`: name → lines of its section; `journal`
    are those of the journal's."""

    root: Path
    source: Metastore
    targets: Mapping[str, Sequence[str]]
    poll: str = "250ms"
    journal: Sequence[str] = ()
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.root.mkdir(parents=True)
        lines = ["[source]", f'name = "{SOURCE}"', f'metastore = "{self.source.uri}"', f'poll = "{self.poll}"']
        lines += ["[journal]", *self.journal]
        for name, section in self.targets.items():
            lines += [f"[targets.{name}]", *section]
        self.config.write_text("\n".join(lines))

    @property
    def config(self) -> Path:
        return self.root / "calque.toml"

    @property
    def log(self) -> Path:
        return self.root / "run.log"

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        """Start Python with this command and the configuration."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, *command, "-c", str(self.config)], stdout=log, stderr=log, cwd=self.root
            )
        return self.process

    def run(self, *options: str) -> subprocess.Popen[bytes]:
        return self.start("-m", "calque.cli", "run", *options)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(90)

    @contextmanager
    def running(self, *command: str) -> Iterator[subprocess.Popen[bytes]]:
        """`calque run`, or another command, until the end of the block."""
        try:
            yield self.start(*command) if command else self.run()
        finally:
            self.stop()

    def command(self, *words: str) -> None:
        """A command of calque's beside it; raises when it fails."""
        with self.log.open("ab") as log:
            whole = [sys.executable, "-m", "calque.cli", *words, "-c", str(self.config)]
            subprocess.run(whole, stdout=log, stderr=log, cwd=self.root, check=True, timeout=TIMEOUT_SECONDS)

    def until_head(self) -> None:
        """`calque run --until head`; raises when it fails."""
        code = self.run("--until", "head").wait(TIMEOUT_SECONDS)
        if code:
            raise RuntimeError(f"calque run ended with {code}\n{self.log.read_text()[-4000:]}")


def target(server: Metastore, warehouse: Path, database: str, renamed: str) -> Sequence[str]:
    """The lines of a target that takes one database under another name."""
    return (
        f'metastore = "{server.uri}"',
        f'warehouse = "{warehouse.as_uri()}"',
        f'include = ["{database}.*"]',
        f'rename = {{ {database} = "{renamed}" }}',
    )


# Objects


def plain_table(database: str, name: str, location: Path, *, partitioned: bool = False) -> Table:
    columns = (Column("id", "bigint"), Column("name", "string"), Column("amount", "double"))
    keys = (Column("p", "string"),) if partitioned else ()
    storage = Storage(columns, location.as_uri(), INPUT, OUTPUT, serde=SERDE)
    parameters = {"EXTERNAL": "TRUE"}
    return Table(
        name, database, "me", storage=storage, partition_keys=keys, parameters=parameters, type="EXTERNAL_TABLE"
    )


def partition(table: Table, value: str) -> Partition:
    assert table.storage is not None
    storage = Storage(table.storage.columns, f"{table.storage.location}/p={value}", INPUT, OUTPUT, serde=SERDE)
    return Partition((value,), table.database, table.name, storage=storage, parameters={})


def copy_partition(server: Metastore, table: TableName, values: range, first_id: int = 1_000_000) -> None:
    """Give the table copies of its partition p=0, with these numbers for values, in the server's database: there is no
    event, no directory, and no minutes for 100,000. Ids begin at `first_id` + the first value, which nothing has."""
    ((part, storage, serde),) = server.sql(
        'SELECT p."PART_ID", s."SD_ID", s."SERDE_ID" FROM "PARTITIONS" p JOIN "SDS" s ON s."SD_ID" = p."SD_ID" '
        'JOIN "TBLS" t ON t."TBL_ID" = p."TBL_ID" JOIN "DBS" d ON d."DB_ID" = t."DB_ID" '
        'WHERE p."PART_NAME" = %s AND t."TBL_NAME" = %s AND d."NAME" = %s',
        ["p=0", table.table, table.database],
    )
    for name, key, number, changed in (
        ("SERDES", "SERDE_ID", serde, "'SERDE_ID', i"),
        ("SERDE_PARAMS", "SERDE_ID", serde, "'SERDE_ID', i"),
        ("SDS", "SD_ID", storage, """'SD_ID', i, 'SERDE_ID', i, 'LOCATION', replace("LOCATION", 'p=0', 'p=' || n)"""),
        ("PARTITIONS", "PART_ID", part, "'PART_ID', i, 'SD_ID', i, 'PART_NAME', 'p=' || n"),
        ("PARTITION_PARAMS", "PART_ID", part, "'PART_ID', i"),
        ("PARTITION_KEY_VALS", "PART_ID", part, "'PART_ID', i, 'PART_KEY_VAL', n"),
    ):
        server.sql(
            f"""INSERT INTO "{name}" SELECT (jsonb_populate_record(NULL::"{name}",
                to_jsonb(t) || jsonb_build_object({changed}))).*
                FROM "{name}" t, generate_series({values.start}, {values.stop - 1}) n, LATERAL (SELECT n + {first_id} i)
                WHERE t."{key}" = {number}"""
        )


def write_file(path: Path, content: bytes) -> None:
    """Complete before it has its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.tmp")
    draft.write_bytes(content)
    draft.rename(path)


# Process trees


def tree(root: int) -> list[int]:
    """The process and all its descendants."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (found := stat(int(entry.name))):
            parents[int(entry.name)] = int(found[1])
    found_ids = [root]
    for parent in found_ids:
        found_ids += [child for child, its_parent in parents.items() if its_parent == parent]
    return found_ids


def stat(process: int) -> list[str]:
    """The fields of /proc/PID/stat behind the name; none when it is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def processor_seconds(root: int) -> float:
    """Of the whole tree, with the children that have ended."""
    ticks = sum(sum(int(value) for value in found[11:15]) for process in tree(root) if (found := stat(process)))
    return ticks / os.sysconf("SC_CLK_TCK")


def memory_mib(root: int) -> tuple[float, float]:
    """RSS and PSS of the whole tree."""
    total = {"Rss:": 0, "Pss:": 0}
    for process in tree(root):
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            name, *rest = line.split()
            if name in total:
                total[name] += int(rest[0])
    return total["Rss:"] / 1024, total["Pss:"] / 1024
