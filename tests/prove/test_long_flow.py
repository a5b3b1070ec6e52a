"""Random histories on real metastores: processes die at random instants, operators interfere, readers look on."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from calque.sandbox import Metastore, MetastoreSettings
from support.runs.seeds import seed
from support.services.deployments import Deployment

ROUNDS = int(os.environ.get("CALQUE_ROUNDS", "12"))
SEED = seed()
LIVES = 4
"""Processes of a round, before the last one."""
SERVERS = {
    "source-3": MetastoreSettings(version="3.1.3"),
    "source-4": MetastoreSettings(version="4.2.0", message_format="gzip", stock=True),
    "target-3": MetastoreSettings(version="3.1.3"),
    "target-4": MetastoreSettings(version="4.2.0"),
}
MORE = (
    "",
    'appends = "new_directory"',
    'atomicity = "rows"',
    'consistency = "database"',
)
"""Lines of a target's configuration."""


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Metastore]]:
    root = tmp_path_factory.mktemp("servers")
    with ThreadPoolExecutor(len(SERVERS)) as pool:
        started = pool.map(lambda item: Metastore.start(item[1], root / item[0]), SERVERS.items())
        found = dict(zip(SERVERS, started, strict=True))
    yield found
    for server in found.values():
        server.stop()


@pytest.mark.timeout(0)
@pytest.mark.parametrize("number", range(ROUNDS))
def test_whatever_happens_readers_see_states_of_the_source_and_in_the_end_the_last(
    number: int, servers: Mapping[str, Metastore], tmp_path: Path
) -> None:
    seed = SEED + number
    rng = random.Random(seed)
    print(f"CALQUE_SEED={seed}")
    source = servers[rng.choice(["source-3", "source-4"])]
    deployment = Deployment(tmp_path, number, source, {"three": servers["target-3"], "four": servers["target-4"]}, seed)
    configure(deployment, rng)
    try:
        play(deployment, source, rng)
    finally:
        deployment.close()


def configure(deployment: Deployment, rng: random.Random) -> None:
    lines = deployment.config.read_text().splitlines()
    for target in deployment.targets:
        more = rng.choice(MORE)
        print(f"{target.name}: {more}")
        at = lines.index(f"[targets.{target.name}]") + 1
        lines[at:at] = [more, 'max_drop = "100%"']
    scan = rng.choice(['scan = "1s"', ""])
    lines.insert(1, scan)
    print(scan)
    deployment.config.write_text("\n".join(lines))


def play(deployment: Deployment, source: Metastore, rng: random.Random) -> None:
    deployment.write(rng.randrange(40))
    deployment.rest = 0.0
    deployment.watch()
    for _ in range(LIVES):
        deployment.start()
        until = time.monotonic() + rng.uniform(2, 20)
        while time.monotonic() < until:
            deployment.write(rng.choice([1, 1, 1, 10]), pause=rng.choice([0, 0.03, 0.3]))
            if rng.random() < 0.1:
                interfere(deployment, source, rng)
        number = rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
        code = deployment.end(number)
        assert code == (0 if number is signal.SIGTERM else -number), deployment.tail()
        if rng.random() < 0.3:
            shutil.rmtree(deployment.root / "checkpoints", ignore_errors=True)
        deployment.write(rng.choice([0, 0, 5, 30]))
        if rng.random() < 0.2:
            purge(deployment, source, rng)
    for target in deployment.targets:
        said(deployment, "resume", "--target", target.name)
    deployment.start()
    deployment.write(10, pause=0.03)
    deployment.settle(timeout=240)
    deployment.check_equal()
    for target in deployment.targets:
        print(f"{target.name}: {target.proof.observations} observations")
    problems = deployment.problems()
    assert not problems, "\n".join([*problems[:2], *deployment.writer.done, deployment.tail()])
    verified = deployment.calque("verify", "--data", "checksum", "--json", timeout=300)
    assert verified.returncode == 0, verified.stdout + verified.stderr + "\n".join(deployment.writer.done)
    assert deployment.end(signal.SIGTERM) == 0


def purge(deployment: Deployment, source: Metastore, rng: random.Random) -> None:
    """The log forgets events, also some that nobody has read."""
    upto = deployment.source.current() - rng.choice([0, 0, 3])
    print("purged", upto, source.sql('DELETE FROM "NOTIFICATION_LOG" WHERE "EVENT_ID" <= %s RETURNING 1', (upto,))[:1])


def restart(source: Metastore) -> None:
    source.kill()
    source.restart()


def interfere(deployment: Deployment, source: Metastore, rng: random.Random) -> None:
    """What operators do while it runs."""
    target = rng.choice(deployment.targets)
    at = ["--target", target.name]
    choices: list[Callable[[], None]] = [
        lambda: said(deployment, "pause", *at),
        lambda: said(deployment, "resume", *at),
        lambda: said(deployment, "bootstrap", *at, "--tables", f"{rng.choice(deployment.databases)}.*"),
        lambda: said(deployment, "repair", *at),
        lambda: said(deployment, "sweep", *at),
        lambda: said(deployment, "plan", *at),
        lambda: said(deployment, "replay", *at, "--from", str(max(0, deployment.source.current() - rng.randrange(60)))),
        lambda: said(deployment, "verify", *at),
        lambda: restart(source),
        lambda: stand_still(deployment, rng.random() * 3),
    ]
    rng.choice(choices)()


def stand_still(deployment: Deployment, seconds: float) -> None:
    assert deployment.process is not None
    deployment.process.send_signal(signal.SIGSTOP)
    time.sleep(seconds)
    deployment.process.send_signal(signal.SIGCONT)


def said(deployment: Deployment, *command: str) -> None:
    """The command, which may be early, and is never broken."""
    found = deployment.calque(*command, timeout=300)
    print(command, found.returncode, found.stderr.strip()[:300])
    assert found.returncode in (0, 65, 75), f"{command} {found.stdout} {found.stderr}"
    assert "Traceback" not in found.stderr
