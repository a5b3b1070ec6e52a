"""As whom metastores are called, and whom calque believes to be one: over real sockets, with servers of tests."""

from __future__ import annotations

import os
import pickle
import pwd
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from calque.adapters.metastore.addresses import Address, address
from calque.adapters.metastore.client import Client
from calque.adapters.metastore.log import HiveLog
from calque.errors import AccessRefused, Refused, Unavailable
from calque.model.access import KerberosLogin, MetastoreAccess, PasswordLogin, TokenLogin
from calque.model.secrets import FileSecret, VariableSecret
from calque.model.tls import Tls
from support.memory.metastore import MemoryLog, MemoryMetastore
from support.services.authority import Authority
from support.services.logserver import log_server

LOG = MemoryLog(MemoryMetastore())
MYSELF = pwd.getpwuid(os.getuid()).pw_name


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def current(uri: str, access: MetastoreAccess = MetastoreAccess()) -> int:  # noqa: B008
    client = Client(uri, access, connect_timeout=10, call_timeout=10)
    try:
        return HiveLog(client).current()
    finally:
        client.close()


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(AccessRefused) as refused:
        call()
    return str(refused.value)


# Users


def test_each_connection_says_once_whose_calls_it_makes() -> None:
    with log_server(LOG) as server:
        log = HiveLog(Client(server.uri, MetastoreAccess(user="calque"), connections=1))
        assert [log.current() for _ in range(3)] == [0, 0, 0]
        assert server.users == ["calque"]
        assert current(server.uri) == 0
        assert server.users == ["calque", MYSELF]
        log.close()


def test_a_server_that_knows_no_users_serves_all_the_same() -> None:
    with log_server(LOG, knows_users=False) as server:
        assert current(server.uri, MetastoreAccess(user="calque")) == 0


# Kerberos


@pytest.mark.parametrize(
    ("service", "principal"),
    [
        ("hive/_HOST", "hive/hms-1.hq@"),
        ("hive/_HOST@HQ.EXAMPLE", "hive/hms-1.hq@HQ.EXAMPLE"),
        ("hive/balancer.hq@HQ.EXAMPLE", "hive/balancer.hq@HQ.EXAMPLE"),
        ("_HOST@HQ.EXAMPLE", "_HOST@HQ.EXAMPLE"),
    ],
)
def test_host_stands_for_that_of_the_address_in_small_letters(service: str, principal: str) -> None:
    assert KerberosLogin(service_principal=service).service_at("HMS-1.hq") == principal


# TLS


def test_a_server_with_a_certificate_of_a_trusted_authority_is_called(authority: Authority) -> None:
    with log_server(LOG, tls=authority.server("127.0.0.1")) as server:
        assert current(server.uri, MetastoreAccess("calque", tls=Tls(authority.ca))) == 0
        assert server.users == ["calque"]


def test_each_doubt_about_a_certificate_says_what_to_do(authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Authority(tmp_path / "other")
    trusting = MetastoreAccess(tls=Tls(authority.ca))
    with log_server(LOG, tls=other.server("127.0.0.1")) as server:
        said = refusal(lambda: current(server.uri, trusting))
        assert said.startswith(f"The certificate of the metastore at {server.uri} is from nobody that calque trusts.")
        assert said.endswith("Name the authority that signed it in tls.ca.")
        assert current(server.uri, MetastoreAccess(tls=Tls(verify=False))) == 0
    with log_server(LOG, tls=authority.server("127.0.0.1", expired=True)) as server:
        said = refusal(lambda: current(server.uri, trusting))
        assert said.startswith(f"The certificate of the metastore at {server.uri} has expired.")
    with log_server(LOG, tls=authority.server("metastore.example.com")) as server:
        said = refusal(lambda: current(server.uri, trusting))
        assert said.startswith(f"The certificate of the metastore at {server.uri} is for other names.")
        assert "'127.0.0.1'" in said


def test_a_server_that_asks_for_a_certificate_gets_calque_s(authority: Authority) -> None:
    with log_server(LOG, tls=authority.server("127.0.0.1", asks=True)) as server:
        assert current(server.uri, MetastoreAccess(tls=Tls(authority.ca, *authority.client("calque")))) == 0
        said = refusal(lambda: current(server.uri, MetastoreAccess(tls=Tls(authority.ca))))
        assert said.startswith(f"The metastore at {server.uri} refuses this client's TLS.")


def test_a_server_without_tls_is_not_believed_to_be_one_and_may_be_another_one_later(authority: Authority) -> None:
    with log_server(LOG) as server, pytest.raises(Unavailable, match="No metastore answers"):
        current(server.uri, MetastoreAccess(tls=Tls(authority.ca)))


def test_a_refusal_is_not_passed_over_for_the_next_address_and_silence_is(authority: Authority) -> None:
    trusting = MetastoreAccess(tls=Tls(authority.ca))
    with (
        log_server(LOG, tls=authority.server("127.0.0.1")) as good,
        log_server(LOG, tls=authority.server("elsewhere")) as bad,
    ):
        assert current(f"thrift://127.0.0.1:1,{good.uri}", trusting) == 0
        assert "is for other names" in refusal(lambda: current(f"{bad.uri},{good.uri}", trusting))


def test_files_are_looked_at_when_they_are_used(authority: Authority, tmp_path: Path) -> None:
    certificate, key = authority.client("calque")
    Tls(authority.ca, certificate, key).context()
    another_key = authority.client("another")[1]
    for tls, said in (
        (Tls(str(tmp_path / "none.pem")), "none.pem can't be used. No such file or directory."),
        (Tls(authority.ca, certificate, another_key), "another.key. Key values mismatch."),
        (Tls(key), "calque.key can't be used."),
    ):
        with pytest.raises(Refused) as refused:
            tls.context()
        assert said in str(refused.value)


# Secrets


def test_what_is_sent_to_spark_s_workers_has_no_secret_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METASTORE_PASSWORD", "hush")
    client = Client(
        "thrift://127.0.0.1:1", MetastoreAccess("calque", PasswordLogin(VariableSecret("METASTORE_PASSWORD")))
    )
    sent = pickle.dumps(client)
    assert b"hush" not in sent
    assert b"METASTORE_PASSWORD" in sent
    assert pickle.loads(sent).access == client.access
    assert "hush" not in repr(client.access)


@pytest.mark.parametrize("login", [PasswordLogin, TokenLogin], ids=lambda kind: kind.__name__)
def test_a_secret_that_can_not_be_read_concerns_every_call_and_is_no_table_s_fault(
    login: Callable[[FileSecret], PasswordLogin | TokenLogin], tmp_path: Path
) -> None:
    access = MetastoreAccess("calque", login(FileSecret(str(tmp_path / "gone"))))
    with log_server(LOG) as server:
        uri = server.uri if login is PasswordLogin else server.uri.replace("thrift", "http")
        assert "gone" in refusal(lambda: current(uri, access))


def test_a_server_that_negotiates_nothing_is_unavailable_and_says_what_was_tried(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("hush")
    access = MetastoreAccess("calque", PasswordLogin(FileSecret(str(tmp_path / "password"))))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Client(f"thrift://127.0.0.1:{silent.getsockname()[1]}", access, connect_timeout=0.5)
        with pytest.raises(Unavailable, match='auth = "plain" asks for it') as unavailable:
            HiveLog(client).current()
        assert "hush" not in str(unavailable.value)


# Addresses


@pytest.mark.parametrize(
    ("uri", "parts"),
    [
        ("thrift://hq:9083", Address("thrift", "hq", 9083)),
        ("thrift://[::1]", Address("thrift", "::1", 9083)),
        ("http://hq:9083", Address("http", "hq", 9083, "/metastore")),
        ("https://hq:9083/a/b/", Address("https", "hq", 9083, "/a/b")),
    ],
)
def test_an_address_has_a_path_where_it_is_for_http(uri: str, parts: Address) -> None:
    assert address(uri) == parts
    assert address(str(parts)) == parts
