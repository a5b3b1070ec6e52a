"""Live deployments: a source that never stands still, targets in every mode, each of them watched by a reader.

Two writers change the source: one definitions, listings and files, of which the source itself tells what it shows; one
rows, also in ways of which only the writer knows what a reader may see on the way.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from calque.model.names import TableName
from calque.model.policy import Policy
from calque.sandbox import Metastore
from support.judges.proof import Look, Proof, with_rows
from support.services.deployments import NUMBERS, Deployment, Target
from support.services.servers import Shared
from support.services.thriftproxy import asked
from support.sources.rowers import Rows, RowWriter, rows_of

MODES = {
    "listing": "",
    "rows": 'atomicity = "rows"\nappends = "new_directory"',
    "whole": 'consistency = "database"',
}
TABLES, BEFORE = 4, 30
"""Of each writer, and steps of both, before calque begins."""
LOOKS = 5
"""Of each reader, at a window and behind it."""
CHANGES = 20
"""Of what each target shows, at least."""
ROUNDS = 240
"""Within which a wrong planner has to be found out."""
SECONDS = 240.0
"""For it all, and those of `PATIENCE` for each observation."""
PATIENCE = 0.02
LONGEST_PAUSE = 2.0
OTHER = {3: 4, 4: 3}


class Live(Deployment):
    """Its targets have the modes that they are called by; the writer of rows has a database of its own."""

    def __init__(self, root: Path, number: int, source: Metastore, targets: Mapping[str, Metastore], seed: int) -> None:
        self.of_rows = f"rows{number}"
        super().__init__(root, number, source, targets, seed)
        self.rest = 0.0
        self.rows = {target.name: Proof() for target in self.targets}
        for target in self.targets:
            target.databases = (*self.databases, self.of_rows)
            if target.name == "rows":
                target.proof.shape = with_rows
            if target.name == "whole":
                target.proof.whole = frozenset(self.databases)
                self.rows[target.name].whole = frozenset({self.of_rows})
        self.row_writer = RowWriter(source.uri, self.of_rows, root / "rows", seed, self.note_rows)
        self.chance = random.Random(seed)

    def policy(self, name: str, index: int) -> Policy:
        """The targets' databases have names of their own."""
        policy = super().policy(name, index)
        rename = {database: f"{database}_{name}" for database in (*self.databases, self.of_rows)}
        return replace(policy, include=(*policy.include, f"{self.of_rows}.*"), rename=rename)

    def text(self, source: Metastore) -> str:
        text = super().text(source)
        for mode in MODES:
            text = text.replace(f"[targets.{mode}]", f"[targets.{mode}]\n{MODES[mode]}")
        return text

    def note_rows(self, event_id: int, rows: Mapping[TableName, Rows]) -> None:
        for proof in self.rows.values():
            proof.note(event_id, dict(rows))

    def see(self, target: Target, look: Look) -> None:
        of_rows = {name: found for name, found in look.tables.items() if name.database == self.of_rows}
        rows = {name: rows_of(found, look.contents) for name, found in of_rows.items()}
        self.rows[target.name].see(look.event_id, time.time(), rows, look.vague)
        others = {name: found for name, found in look.tables.items() if name not in of_rows}
        super().see(target, replace(look, tables=others))

    def begin(self) -> None:
        """What is there before calque comes."""
        self.noted = self.source.current()
        while len(self.source.databases()) < len(self.databases):
            self.writer.run("create_database")
        for _ in range(TABLES):
            self.writer.run("create_table")
            self.row_writer.create()
        for _ in range(BEFORE):
            self.step()

    def step(self) -> None:
        if self.chance.random() < 0.5:
            self.row_writer.step()
        else:
            self.write(1)

    def pause(self) -> None:
        """A moment, in which every reader comes round once, unless the machine is too slow for that."""
        until = time.monotonic() + LONGEST_PAUSE
        before = [target.proof.looks for target in self.targets]
        time.sleep(self.chance.random() * 0.1)
        while any(target.proof.looks == was for target, was in zip(self.targets, before, strict=True)):
            if time.monotonic() > until:
                return
            time.sleep(0.01)

    def observations(self) -> int:
        return sum(target.proof.observations + self.rows[target.name].observations for target in self.targets)

    def changes(self) -> int:
        """Of the target that showed the fewest."""
        return min(min(target.proof.changes, self.rows[target.name].changes) for target in self.targets)

    def problems(self) -> list[str]:
        of_rows = [
            f"{target.name} {problem}"
            for target in self.targets
            for problem in self.problems_of(target, self.rows[target.name])
        ]
        return [*super().problems(), *of_rows]

    def check_rows(self) -> None:
        """Every target shows the rows that the source has."""
        for target in self.targets:
            look = target.at_rest()
            for name, states in self.rows[target.name].history.states.items():
                shown = rows_of(look.tables[name], look.contents) if name in look.tables else None
                assert shown == states[-1][1], f"{target.name} {name}"


@contextmanager
def deployed(shared: Shared, version: int, root: Path, seed: int) -> Iterator[Live]:
    """Over a source of the major version, and targets of both, each with a server to itself: its event id is nobody
    else's."""
    print(f"CALQUE_SEED={seed}")
    source, *targets = shared(f"source-{version}", "target-3", "target-4", f"source-{OTHER[version]}").values()
    deployment = Live(root, next(NUMBERS), source, dict(zip(MODES, targets, strict=True)), seed)
    try:
        yield deployment
    finally:
        deployment.close()


@contextmanager
def late(deployment: Live, seconds: float) -> Iterator[None]:
    """Its targets answer calque late, so that readers come between any two calls."""
    with ExitStack() as proxies:
        text = deployment.config.read_text()
        for target in deployment.targets:
            proxy = proxies.enter_context(asked(target.uri))
            proxy.delay = seconds
            text = text.replace(target.uri, proxy.uri)
        deployment.config.write_text(text)
        yield


def until_found_out(deployment: Live) -> None:
    """Until a reader saw what it must not have seen; calque is held up in each round, so that windows are large. A slow
    machine takes longer for its rounds. Raises `AssertionError` after `ROUNDS` of them."""
    deployment.begin()
    deployment.start()
    deployment.watch()
    assert deployment.process is not None
    rounds = 0
    while not (problems := deployment.problems()):
        rounds += 1
        assert rounds <= ROUNDS, f"{deployment.observations()} observations {deployment.tail()}"
        deployment.process.send_signal(signal.SIGSTOP)
        for _ in range(BEFORE):
            deployment.step()
        deployment.process.send_signal(signal.SIGCONT)
        for _ in range(LOOKS):
            deployment.pause()
    print(f"found out after {deployment.observations()} observations: {problems[0][:200]}")


def live(deployment: Live, observations: int) -> None:
    """Until there were so many, all targets together. Raises `AssertionError`."""
    deployment.begin()
    deployment.start()
    deployment.settle(timeout=SECONDS)
    watching = deployment.watch()
    until = time.monotonic() + SECONDS + observations * PATIENCE
    while (deployment.observations() < observations or deployment.changes() < CHANGES) and time.monotonic() < until:
        deployment.step()
        deployment.pause()
    deployment.settle(timeout=SECONDS)
    deployment.watching.set()
    for thread in watching:
        thread.join(60)
        assert not thread.is_alive()
    told = [f"{t.name}: {t.proof.observations} + {deployment.rows[t.name].observations}" for t in deployment.targets]
    print(f"{', '.join(told)} observations, at least {deployment.changes()} changes")
    done = [*deployment.writer.done[-40:], *deployment.row_writer.done[-40:], deployment.tail()]
    assert not (problems := deployment.problems()), "\n".join([*problems[:3], *done])
    assert deployment.observations() >= observations
    assert deployment.changes() >= CHANGES
    deployment.check_equal()
    deployment.check_rows()
    verified = deployment.calque("verify", "--data", "checksum")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert deployment.end(signal.SIGTERM) == 0
