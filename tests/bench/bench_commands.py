"""Processor seconds (user and system) of commands beside a running process, whose share is counted, and without one.

Commands run from bytecode, as from an installed wheel. The share of the process is what it and its children use while
the command runs, less what they use idle. The baseline is an interpreter that imports click and ends.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rig import (
    Job,
    arguments,
    metastores,
    partition,
    plain_table,
    processor_seconds,
    target,
    tell,
    tell_machine,
    tell_ratio,
    wait_until,
)

from calque.control.asking import SOCKETS
from calque.model.hive import Database
from calque.model.names import TableName
from calque.sandbox.writer import HiveClient

DATABASE, AT_TARGET = "busy", "busy_copy"
COMMANDS = (
    ("status",),
    ("epochs", "list"),
    ("sql", "SHOW TABLES AT dr"),
    ("done", "list"),
    ("quarantine", "list"),
)
IDLE_SECONDS, TIMES = 10.0, 10


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(__doc__, runs=5, epochs=100, tables=100).parse_args(given)
    with metastores(2) as (root, (source_server, target_server)):
        client = HiveClient(source_server.uri)
        client.create_database(Database(DATABASE, location=(root / "source").as_uri()))
        for number in range(options.tables):
            client.create_table(plain_table(DATABASE, f"t{number}", root / "source" / f"t{number}"))
        table = plain_table(DATABASE, "growing", root / "source" / "growing", partitioned=True)
        client.create_table(table)
        job = Job(root / "job", source_server, {"dr": target(target_server, root / "warehouse", DATABASE, AT_TARGET)})
        environment = with_bytecode(root / "bytecode")
        runs_of = {words: partial(run_command, job, words, environment) for words in COMMANDS}
        tell_machine()
        bare = tell("python -c 'import click'", measured(lambda: bare_python(environment), options.runs), "s")
        with job.running() as process:
            grow(client, table, target_server.uri, options.epochs)
            wait_until(lambda: any((root / "job" / "state" / SOCKETS).glob("*")))
            beside = {words: beside_process(runs_of[words], process.pid, options.runs) for words in COMMANDS}
        alone = {words: measured(runs_of[words], options.runs) for words in COMMANDS}
    for words in COMMANDS:
        name = " ".join(words)
        tell_ratio("of bare Python", tell(f"{name}, beside the process", beside[words], "s") / bare)
        tell(f"{name}, alone", alone[words], "s")


def grow(client: HiveClient, table: object, uri: str, epochs: int) -> None:
    """Add so many partitions one by one, each of which the target shows before the next one comes."""
    there = HiveClient(uri).catalog
    for number in range(epochs):
        client.add_partitions(TableName(DATABASE, "growing"), [partition(table, str(number))])
        wait_until(lambda n=number: len(there.partition_names(TableName(AT_TARGET, "growing"))) == n + 1)


def with_bytecode(folder: Path) -> dict[str, str]:
    """The environment in which Python keeps bytecode in the folder."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(folder)}


def run_command(job: Job, words: Sequence[str], environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "calque.start", *words, "-c", str(job.config)]
    subprocess.run(command, check=True, capture_output=True, env=environment, cwd=job.root)


def bare_python(environment: dict[str, str]) -> None:
    subprocess.run([sys.executable, "-c", "import click"], check=True, env=environment)


def measured(run: Callable[[], None], runs: int) -> list[float]:
    """Return the processor seconds of the children that `run` starts, of each of `runs` runs after a first one, which
    writes bytecode."""
    run()
    return [once(run) for _ in range(runs)]


def once(run: Callable[[], None]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def beside_process(run: Callable[[], None], process: int, runs: int) -> list[float]:
    """Return the processor seconds of a command with what the process does for it. Each figure is the mean of `TIMES`
    commands, because the system counts a process's seconds in hundredths."""
    run()
    idle = seconds_meanwhile(process, lambda: time.sleep(IDLE_SECONDS)) / IDLE_SECONDS
    found = []
    for _ in range(runs):
        own: list[float] = []
        began = time.monotonic()
        share = seconds_meanwhile(process, lambda o=own: o.extend(once(run) for _ in range(TIMES)))
        found.append(statistics.mean(own) + max(share - idle * (time.monotonic() - began), 0.0) / TIMES)
    return found


def seconds_meanwhile(process: int, action: Callable[[], object]) -> float:
    before = processor_seconds(process)
    action()
    return processor_seconds(process) - before


def test_the_cost_of_commands_is_measured() -> None:
    main(["--runs", "1", "--epochs", "2", "--tables", "2"])


if __name__ == "__main__":
    main()
