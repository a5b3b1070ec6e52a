"""Real metastores that ask who calls them, and how."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from calque.adapters.metastore.catalog import HiveReader
from calque.adapters.metastore.client import Client
from calque.adapters.metastore.log import HiveLog
from calque.errors import Refused
from calque.model.access import MetastoreAccess
from calque.sandbox import Metastore, MetastoreSettings
from support.services.servers import SETTINGS

VERSIONS = ("3.1.3", "4.2.0")
Start = Callable[..., Metastore]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """A server with settings of its own, which all tests of the module share that ask for the same."""
    started: dict[str, Metastore] = {}

    def metastore(settings: MetastoreSettings) -> Metastore:
        key = repr(settings)
        if key not in started:
            started[key] = Metastore.start(settings, tmp_path_factory.mktemp("metastore"))
        return started[key]

    yield metastore
    for server in started.values():
        server.stop()


def calque(command: str, config: Path) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, "-m", "calque.cli", command, "-c", str(config)]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=120, cwd=config.parent, check=False)


def configuration(folder: Path, source: str, target: str) -> Path:
    """Each side by the lines below its section's name."""
    file = folder / "calque.toml"
    include = 'include = ["sales.*"]'
    file.write_text(f'[source]\nname = "hq"\n{source}\n[targets.dr]\nwarehouse = "dr"\n{include}\n{target}\n')
    return file


# Users


@pytest.mark.parametrize("version", VERSIONS)
def test_the_log_is_read_by_a_user_with_the_privilege_alone(start: Start, version: str) -> None:
    uri = start(SETTINGS[f"source-{version[0]}"]).uri
    assert HiveLog(Client(uri)).current() == 0
    stranger = Client(uri, MetastoreAccess(user="stranger"))
    assert HiveReader(stranger).databases() == ("default",)
    for ask in (HiveLog(stranger).current, lambda: HiveLog(stranger).read(0, 10)):
        with pytest.raises(Refused) as refused:
            ask()
        assert refused.value.what == f"The metastore at {uri} does not let stranger read its notification log"
        assert "hadoop.proxyuser.stranger.hosts" in refused.value.todo


def test_a_server_that_does_not_go_by_users_is_told_to_let_its_own_read(start: Start) -> None:
    settings = MetastoreSettings(proxy_users=(), extra={"metastore.execute.setugi": "false"})
    with pytest.raises(Refused, match="does not let the user that it runs as read") as refused:
        HiveLog(Client(start(settings).uri, MetastoreAccess(user="calque"))).current()
    assert "hadoop.proxyuser.USER.hosts" in refused.value.todo


def test_a_run_ends_with_what_to_grant_in_one_line(start: Start, tmp_path: Path) -> None:
    uri = start(SETTINGS["source-4"]).uri
    config = configuration(tmp_path, f'metastore = "{uri}"\nuser = "stranger"', f'metastore = "{uri}"')
    config.write_text(config.read_text() + 'rename = { "sales" = "sales_dr" }\n')
    ended = calque("run", config)
    assert ended.returncode == 65, ended.stderr
    *_, last = ended.stderr.splitlines()
    assert last == (
        f"calque: The metastore at {uri} does not let stranger read its notification log. "
        "hive.metastore.event.db.notification.api.auth is true there, and the user has no proxy privilege. "
        "Set hadoop.proxyuser.stranger.hosts to * or the addresses of this host, and "
        "hadoop.proxyuser.stranger.groups to *, in its core-site.xml, or that property to false in its hive-site.xml, "
        "and start it again."
    )
