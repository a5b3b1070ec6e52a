"""`calque run` by tickets that live for a minute, through three lives of them, at servers that start again meanwhile
and ask for a ticket that is valid then."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from calque.engine.check.check_target import TEXT
from calque.model.access import MetastoreAccess
from calque.model.hive import Database, Table
from calque.model.names import TableName
from calque.sandbox.writer import HiveClient
from support.services.realms import DR, HQ, LACKING, address, keys, metastores, two_realms

LIFE = 60
LIVES = 3
PATIENCE = 120

pytestmark = pytest.mark.skipif(bool(LACKING), reason=LACKING)


def test_a_run_goes_through_three_lives_of_tickets(tmp_path: Path) -> None:
    config = tmp_path / "calque.toml"
    with (
        two_realms(tmp_path / "realms") as realms,
        metastores(realms, {HQ: "authentication", DR: "privacy"}) as servers,
        realms.tickets_of(f"{LIFE}s"),
    ):
        logins = {HQ: realms.login("calque"), DR: realms.login("replica", DR)}
        uris = {realm: address(server, realm) for realm, server in servers.items()}
        source, target = (HiveClient(uris[realm], access=MetastoreAccess(login=logins[realm])) for realm in (HQ, DR))
        config.write_text(
            f'[source]\nname = "hq"\nmetastore = "{uris[HQ]}"\n{keys(logins[HQ])}\n'
            f'[targets.dr]\nmetastore = "{uris[DR]}"\n{keys(logins[DR])}\nwarehouse = "dr"\ninclude = ["sales.*"]\n'
        )
        source.create_database(Database("sales", location=(tmp_path / "source").as_uri()))
        command = [sys.executable, "-m", "calque.cli"]
        run = subprocess.Popen([*command, "run", "-c", str(config)], cwd=tmp_path)
        try:
            began, number = time.monotonic(), 0
            while time.monotonic() - began < LIVES * LIFE + LIFE / 2:
                number += 1
                source.create_table(Table(f"t{number}", "sales", storage=TEXT, type="MANAGED_TABLE"))
                name = TableName("sales", f"t{number}")
                wait_until(lambda name=name: target.catalog.table(name) is not None)  # type: ignore[misc]
                servers[(HQ, DR)[number % 2]].restart()
                time.sleep(LIFE / 4)
            run.send_signal(signal.SIGTERM)
            assert run.wait(PATIENCE) == 0
        finally:
            run.kill()
        verified = subprocess.run([*command, "verify", "-c", str(config)], cwd=tmp_path, timeout=PATIENCE, check=False)
        assert verified.returncode == 0
        for client in (source, target):
            client.close()


def wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.5)
