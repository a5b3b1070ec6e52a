"""Metastores that take tickets of Kerberos alone, in two realms, with a key distribution center of its own in each."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from calque.adapters.files import FileStorage
from calque.adapters.files.systems import FileSystemSet
from calque.adapters.metastore.catalog import HiveCatalog
from calque.adapters.metastore.client import Client
from calque.adapters.metastore.log import HiveLog
from calque.adapters.metastore.reader import HiveReader
from calque.app import APP
from calque.engine.check.check_target import TEXT
from calque.errors import AccessRefused, Unavailable
from calque.model.access import KerberosLogin, MetastoreAccess
from calque.model.hive import Database, Table, location_of
from calque.model.names import TableName
from calque.model.policy import TargetCapabilities
from calque.sandbox import Metastore
from calque.sandbox.writer import HiveClient
from kernel.contract import test_catalog, test_event_log
from support.memory.metastore import HIVE_3, MemoryLog, MemoryMetastore
from support.runs.proofs import one_a_day
from support.runs.seeds import seed
from support.services.hdfs import Hdfs
from support.services.kdc import Kdc, write_krb5
from support.services.logserver import log_server
from support.services.realms import (
    DR,
    HQ,
    LACKING,
    TOKENS,
    USERS,
    Realms,
    address,
    keys,
    krb5_of,
    metastores,
    two_realms,
)
from support.worlds.metastore_worlds import NUMBERS, World

pytestmark = pytest.mark.skipif(bool(LACKING), reason=LACKING)
Servers = Mapping[str, Metastore]
LIFE = 5.0
"""Seconds that a ticket lives at least, for the center."""


@pytest.fixture(scope="module")
def realms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realms]:
    with two_realms(tmp_path_factory.mktemp("realms")) as both:
        yield both


@pytest.fixture(scope="module")
def servers(realms: Realms) -> Iterator[Servers]:
    """The one of HQ sends in the clear, the one of DR encrypts."""
    with metastores(realms, {HQ: "authentication", DR: "privacy"}) as both:
        yield both


@pytest.fixture(scope="module")
def hdfs(realms: Realms, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """Of DR, where everybody may write below /dr."""
    from hdfs_native import Client as HdfsClient

    service = realms.service("hdfs", DR)
    with Hdfs.start(tmp_path_factory.mktemp("hdfs"), kerberos=service) as started:
        user = {"kerberos_principal": service.principal, "kerberos_keytab": str(service.keytab)}
        client = HdfsClient(started.uri, {"hadoop.security.authentication": "kerberos"}, **user)
        client.mkdirs("/dr")
        client.set_permission("/dr", 0o777)
        yield started


Call = Callable[[str, KerberosLogin | None], Client]


@pytest.fixture
def client() -> Iterator[Call]:
    """To an address, with a login or as any user."""
    made: list[Client] = []

    def call(uri: str, login: KerberosLogin | None) -> Client:
        access = MetastoreAccess(login=login) if login else MetastoreAccess()
        made.append(Client(uri, access, connect_timeout=20, call_timeout=20))
        return made[-1]

    yield call
    for each in made:
        each.close()


def refusal(client: Client) -> str:
    with pytest.raises(AccessRefused) as refused:
        HiveLog(client).current()
    return str(refused.value)


# What is proven


def test_the_log_is_read_by_the_ticket_of_a_user_with_the_privilege_alone(
    realms: Realms, servers: Servers, client: Call
) -> None:
    uri = servers[HQ].uri
    assert HiveLog(client(uri, realms.login("calque"))).current() >= 0
    stranger = client(uri, realms.login("stranger"))
    assert "default" in HiveReader(stranger).databases()
    said = refusal(stranger)
    assert said.startswith(f"The metastore at {uri} does not let stranger@{HQ} read its notification log.")
    assert "hadoop.proxyuser.stranger.hosts" in said


def test_users_of_two_realms_are_called_by_several_threads_of_one_process(
    realms: Realms, servers: Servers, client: Call
) -> None:
    logins = {HQ: realms.login("calque"), DR: realms.login("replica", DR)}

    def ask(number: int) -> int:
        realm = (HQ, DR)[number % 2]
        return HiveLog(client(address(servers[realm], realm), logins[realm])).current()

    with ThreadPoolExecutor(8) as pool:
        assert min(pool.map(ask, range(40))) >= 0


def test_host_stands_for_that_of_each_address(realms: Realms, servers: Servers, client: Call) -> None:
    login = replace(realms.login("replica", DR), service_principal=f"hive/_HOST@{DR}")
    nobody = "thrift://127.0.0.1:1"
    assert HiveLog(client(f"{nobody},{address(servers[DR], DR)}", login)).current() >= 0
    said = refusal(client(f"{nobody},{servers[DR].uri}", login))
    assert said.startswith(f"Kerberos does not let replica@{DR} call hive/127.0.0.1@{DR}, the metastore at")


def test_the_ticket_of_the_process_serves_without_a_keytab(realms: Realms, servers: Servers, client: Call) -> None:
    with realms.tickets_of("1h"):
        said = refusal(client(servers[HQ].uri, KerberosLogin()))
        assert "Say `kinit` as the user that calque runs as, or write principal and keytab." in said
        get_ticket(realms.login("calque"))
        for login in (KerberosLogin(), KerberosLogin(f"calque@{HQ}")):
            assert HiveLog(client(servers[HQ].uri, login)).current() >= 0


def get_ticket(login: KerberosLogin) -> None:
    """Into the cache of the process, as `kinit` does it."""
    import gssapi

    name = gssapi.Name(login.principal, gssapi.NameType.kerberos_principal)
    assert gssapi.Credentials(name=name, usage="initiate", store={"client_keytab": login.keytab}).lifetime > 0


# The end of tickets


def test_three_lives_of_tickets_are_gone_through_by_a_keytab_alone(
    realms: Realms, servers: Servers, client: Call
) -> None:
    """What was connected to before stays so: a server asks for a ticket at the beginning alone."""
    logs = []
    with realms.tickets_of(f"{LIFE:.0f}s"):
        get_ticket(realms.login("calque"))
        logs.append(HiveLog(client(servers[HQ].uri, KerberosLogin())))
        logins = replace(realms.login("calque"), service_principal=f"hive/_HOST@{HQ}"), realms.login("replica", DR)
        began = time.monotonic()
        while time.monotonic() - began < 3 * LIFE + 1:
            for realm, login in zip((HQ, DR), logins, strict=True):
                logs.append(HiveLog(client(address(servers[realm], realm), login)))
            assert all(log.current() >= 0 for log in logs)
            time.sleep(LIFE / 2)
        said = refusal(client(servers[HQ].uri, KerberosLogin()))
    assert "expired" in said
    assert "Say `kinit` as the user that calque runs as, or write principal and keytab." in said


# Refusals


def test_each_refusal_says_what_to_do(realms: Realms, servers: Servers, client: Call, tmp_path: Path) -> None:
    uri, login = servers[HQ].uri, realms.login("calque")
    called = f"call hive/127.0.0.1@, the metastore at {uri}."
    said = refusal(client(uri, replace(login, keytab=str(tmp_path / "none"))))
    assert said.startswith(f"Kerberos does not let calque@{HQ} {called} The keytab {tmp_path}/none gave no ticket: ")
    assert "No such file or directory." in said
    said = refusal(client(uri, realms.login("mistyped")))
    assert said.startswith(f"Kerberos does not let mistyped@{HQ} {called} The keytab {login.keytab} gave no ticket: ")
    assert "See by `klist -k` that it has the principal's newest key" in said
    said = refusal(client(uri, replace(login, service_principal=f"nobody/_HOST@{HQ}")))
    assert f"Server nobody/127.0.0.1@{HQ} not found in Kerberos database." in said
    assert "(hive.metastore.kerberos.principal there) as service_principal." in said
    said = refusal(client(uri, KerberosLogin("calque@NOWHERE.EXAMPLE", login.keytab)))
    assert said.startswith("Kerberos does not let calque@NOWHERE.EXAMPLE call")
    keytab = shutil.copy(login.keytab, tmp_path / "another")
    with krb5_of(write_krb5(tmp_path / "krb5.conf", [realms.kdcs[DR]])):
        said = refusal(client(uri, replace(login, keytab=str(keytab))))
    assert "Cannot find KDC for realm" in said
    assert "Name a key distribution center below [realms] in krb5.conf" in said


def test_a_center_that_is_away_is_waited_for(servers: Servers, client: Call, tmp_path: Path) -> None:
    with Kdc("FAR.EXAMPLE", {"users": ["calque"]}, tmp_path / "far") as far:
        krb5 = write_krb5(tmp_path / "krb5.conf", [far])
    log = HiveLog(client(servers[HQ].uri, KerberosLogin("calque@FAR.EXAMPLE", str(far.keytab("users")))))
    with krb5_of(krb5), pytest.raises(Unavailable) as unavailable:
        log.current()
    assert "Cannot contact any KDC for realm 'FAR.EXAMPLE' (a key distribution center" in str(unavailable.value)


def test_who_speaks_otherwise_than_the_server_is_told(realms: Realms, servers: Servers, client: Call) -> None:
    with pytest.raises(Unavailable, match="a server that wants TLS, a password, Kerberos or HTTP breaks off like this"):
        HiveLog(client(servers[HQ].uri, None)).current()
    with log_server(MemoryLog(MemoryMetastore())) as plain, pytest.raises(Unavailable, match='auth = "kerberos" asks'):
        HiveLog(client(plain.uri, realms.login("calque"))).current()


# What holds for every metastore

LAWS = (
    test_event_log.test_every_event_follows_the_one_before,
    test_event_log.test_a_limit_takes_the_oldest,
    test_event_log.test_only_an_empty_answer_is_the_end,
    test_event_log.test_writers_at_once_leave_no_hole_and_no_double,
    test_catalog.test_a_table_reads_back_as_it_was_written,
    test_catalog.test_what_is_missing_reads_as_absent,
    test_catalog.test_several_threads_read_and_write_at_once,
    test_catalog.test_real_readers_travel_as_pickles,
)
"""Of the suites of the ports."""


@pytest.fixture(params=one_a_day([HQ, DR], seed()))
def world(request: pytest.FixtureRequest, realms: Realms, servers: Servers, tmp_path: Path) -> Iterator[World]:
    realm = request.param
    login = realms.login(USERS[realm][0], realm)
    writer = HiveClient(address(servers[realm], realm), access=MetastoreAccess(login=login))
    catalog = HiveCatalog(writer.client, TargetCapabilities(compare_and_swap=HIVE_3.compare_and_swap))
    yield World(realm, HIVE_3, catalog, writer.log, writer, tmp_path, next(NUMBERS), None)
    writer.close()


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_what_holds_for_every_metastore_holds_for_one_that_takes_tickets(
    world: World, law: Callable[[World], None]
) -> None:
    law(world)


# calque


def test_a_run_replicates_between_realms_and_is_verified(
    realms: Realms, servers: Servers, hdfs: Hdfs, tmp_path: Path
) -> None:
    source, target = realms.login("calque"), realms.login("replica", DR)
    write_sales(HiveClient(servers[HQ].uri, access=MetastoreAccess(login=source)), tmp_path)
    storage = {"principal": target.principal, "keytab": target.keytab, **TOKENS}
    config = tmp_path / "calque.toml"
    config.write_text(
        f'[source]\nname = "hq"\nmetastore = "{servers[HQ].uri}"\n{keys(source)}\n'
        f'[targets.dr]\nmetastore = "{address(servers[DR], DR)}"\n{keys(target)}\n'
        f'warehouse = "{hdfs.uri}/dr"\ninclude = ["sales.*"]\n'
        "[targets.dr.storage]\n" + "".join(f'"{name}" = "{value}"\n' for name, value in storage.items())
    )
    Path(source.keytab).chmod(0o644)
    said = ""
    for command in (("check",), ("run", "--until", "head"), ("verify",)):
        ended = calque(config, *command)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        said += ended.stdout
    assert f"Every user of this host can read {source.keytab}." in said
    replica = HiveClient(address(servers[DR], DR), access=MetastoreAccess(login=target))
    table = replica.catalog.table(TableName("sales", "orders"))
    assert table is not None
    assert table.storage is not None
    assert (
        FileStorage(FileSystemSet(storage, kinds=APP.file_systems())).read(f"{table.storage.location}/rows") == b"1\n"
    )


@pytest.mark.prove
def test_a_link_is_followed_by_the_tickets_of_its_credentials(realms: Realms, servers: Servers, tmp_path: Path) -> None:
    """The local metastore is in one realm, the remote one in the other."""
    login, remote = realms.login("replica", DR), realms.login("calque")
    write_sales(HiveClient(servers[HQ].uri, access=MetastoreAccess(login=remote)), tmp_path, "far")
    local = HiveClient(address(servers[DR], DR), access=MetastoreAccess(login=login))
    local.create_database(Database("near", location=f"file:{tmp_path}/near"))
    config = tmp_path / "calque.toml"
    config.write_text(
        f'[remotes]\nmetastore = "{address(servers[DR], DR)}"\n{keys(login)}\n'
        f'[remotes.credentials.hq]\n{keys(remote)}\n[serve]\naddress = ""\n'
    )
    settings = f"'hive.metastore.uris' = '{servers[HQ].uri}'"
    create = f"CREATE REMOTE TABLE near.orders CONNECTED TO far.orders WITH TBLPROPERTIES ({settings}"
    refused = calque(config, "sql", f"{create})")
    assert refused.returncode == 75
    assert "a server that wants TLS, a password, Kerberos or HTTP breaks off like this" in refused.stderr
    create += ", 'calque.remote.credentials' = 'hq')"
    for command in (("sql", create), ("run", "--until", "head"), ("sql", "SHOW REMOTE TABLES", "--json")):
        ended = calque(config, *command)
        assert ended.returncode == 0, ended.stdout + ended.stderr
    assert '"live"' in ended.stdout
    table = local.catalog.table(TableName("near", "orders"))
    assert table is not None
    assert location_of(table) == f"file:{tmp_path}/source/orders"
    local.close()


def calque(config: Path, *command: str) -> subprocess.CompletedProcess[str]:
    arguments = [sys.executable, "-m", "calque.cli", *command, "-c", str(config)]
    return subprocess.run(arguments, capture_output=True, text=True, timeout=200, cwd=config.parent, check=False)


def write_sales(source: HiveClient, folder: Path, database: str = "sales") -> None:
    """A database with a table of one file."""
    home = folder / "source"
    (home / "orders").mkdir(parents=True)
    (home / "orders" / "rows").write_text("1\n")
    source.create_database(Database(database, location=home.as_uri()))
    storage = replace(TEXT, location=(home / "orders").as_uri())
    source.create_table(
        Table("orders", database, storage=storage, parameters={"EXTERNAL": "TRUE"}, type="EXTERNAL_TABLE")
    )
    source.close()
