"""Links as parameters: what is one, what is refused and why, and what may be connected to."""

from __future__ import annotations

import pytest

from calque.core.images.own_parameters import CONNECTED_TO, is_link
from calque.core.policy.near_addresses import is_near
from calque.errors import Refused
from calque.model.names import TableName
from calque.plugins.remotes.adapters.catalogs import GLUE
from calque.plugins.remotes.core.definitions import (
    CLIENTS,
    CREDENTIALS,
    SSH,
    THRIFT,
    URIS,
    VIA,
    client_of,
    link_of,
    link_of_parameters,
    parameters_of,
)
from calque.plugins.remotes.core.permission import is_allowed, is_far_only, refusal
from calque.plugins.remotes.core.ssh_routes import KEYS, ROUTE
from calque.plugins.remotes.model import Endpoint, LentLogin, LinkDefinition

FAR, ELSE = "thrift://remote-hms:9083", "thrift://evil:9083"
LOCAL, REMOTE = TableName("local_db", "local_tbl"), TableName("remote_db", "remote_tbl")
THRIFT_FACTORY = "org.apache.hadoop.hive.metastore.ThriftHiveMetastoreClientFactory"


def endpoint(*addresses: str, **settings: str) -> Endpoint:
    return Endpoint("thrift", tuple(sorted({URIS: ",".join(addresses), **settings}.items())))


def test_the_documents_own_example_is_a_link() -> None:
    link = link_of(LOCAL, "remote_db.remote_tbl", THRIFT_FACTORY, {URIS: FAR}, CLIENTS)
    assert link == LinkDefinition(LOCAL, REMOTE, endpoint(FAR))


def test_the_documents_route_through_bastions_is_a_link() -> None:
    settings = {URIS: FAR, ROUTE: "bastionuser@bastion-host.domain -> user@cluster-node.domain"}
    via = "org.apache.hadoop.hive.metastore.SSHThriftHiveMetastoreClientFactory"
    assert link_of(LOCAL, None, via, settings, CLIENTS).endpoint == Endpoint("ssh", tuple(sorted(settings.items())))


def test_without_connected_to_and_via_a_link_has_its_own_name_by_thrift() -> None:
    assert link_of(TableName("Shop"), None, None, {URIS: FAR}, CLIENTS) == LinkDefinition(
        TableName("shop"), TableName("shop"), endpoint(FAR)
    )


@pytest.mark.parametrize("local", [LOCAL, TableName("local_db")])
def test_parameters_that_a_link_writes_are_read_as_the_same_link(local: TableName) -> None:
    remote = "remote_db.remote_tbl" if local.table else "remote_db"
    link = link_of(local, remote, "thrift", {URIS: FAR, CREDENTIALS: "far"}, CLIENTS)
    others = {"EXTERNAL": "TRUE", "comment": "ours", "token": "its own"}
    assert is_link(parameters_of(link))
    assert link_of_parameters(local, {**parameters_of(link), **others}, CLIENTS) == link
    assert not is_link(others)
    assert not is_link(None)


@pytest.mark.parametrize(
    ("connected_to", "via", "settings", "said"),
    [
        (None, "thirft", {URIS: FAR}, "There is no client 'thirft'. The nearest is thrift."),
        (None, None, {"hive.metastore.uri": FAR}, "'hive.metastore.uri' is no setting of 'thrift'. The nearest is"),
        (None, None, {}, "'hive.metastore.uris' is missing."),
        (None, None, {URIS: " "}, "'hive.metastore.uris' is missing."),
        (None, None, {URIS: FAR, "hive.metastore.password": "x"}, "'hive.metastore.password' would be a secret"),
        (None, "ssh", {URIS: FAR}, "'ssh.tunnel.route' is missing."),
        ("remote_db", None, {URIS: FAR}, "'remote_db' names no remote table."),
        ("a.b.c", None, {URIS: FAR}, "'a.b.c' names no remote table."),
        (".t", None, {URIS: FAR}, "'.t' names no remote table."),
    ],
)
def test_what_is_no_link_is_refused_with_the_reason(
    connected_to: str | None, via: str | None, settings: dict[str, str], said: str
) -> None:
    with pytest.raises(Refused) as caught:
        link_of(LOCAL, connected_to, via, settings, CLIENTS)
    assert str(caught.value).startswith(said)


def test_a_refused_secret_is_not_quoted() -> None:
    with pytest.raises(Refused) as caught:
        link_of_parameters(LOCAL, {CONNECTED_TO: "a.b", URIS: FAR, "fs.s3a.secret.key": "hush"}, CLIENTS)
    assert "hush" not in str(caught.value)
    assert "[remotes.credentials.NAME]" in caught.value.todo


def test_a_misspelt_parameter_of_a_link_is_refused_with_the_nearest() -> None:
    parameters = {CONNECTED_TO: "a.b", URIS: FAR, "calque.remote.credential": "far"}
    with pytest.raises(Refused, match=r"The nearest is calque[.]remote[.]credentials"):
        link_of_parameters(LOCAL, parameters, CLIENTS)


def test_clients_are_known_by_class_names_in_any_package() -> None:
    assert client_of("xxx.yyy.SSHThriftHiveMetastoreClientFactory", CLIENTS) is SSH
    assert client_of("Thrift", CLIENTS) is THRIFT
    assert VIA not in parameters_of(LinkDefinition(LOCAL, REMOTE, endpoint(FAR))).values()


@pytest.mark.parametrize(
    ("address", "allow", "allowed"),
    [
        (FAR, ["thrift://remote-hms:9083"], True),
        ("THRIFT://Remote-HMS", ["thrift://remote-hms:9083"], True),
        ("thrift://hms-7.corp:9083", ["thrift://hms-?.corp:*"], True),
        ("thrift://hms-7.corp.evil:9083", ["thrift://hms-*.corp:9083"], False),
        ("thrift://hms-7.evil:80/x.corp:9083", ["thrift://hms-*.corp:9083"], False),
        ("thrift://hms-7@evil:9083", ["thrift://hms-*:9083"], False),
        ("thrift://user:x@remote-hms:9083", ["thrift://*:9083"], False),
        ("thrift://remote-hms:9084", ["thrift://*:9083"], False),
        (FAR, [], False),
        ("thrift://127.0.0.1:9083", ["thrift://*:9083"], False),
        ("thrift://127.0.0.1:22", ["thrift://127.0.0.1:*"], False),
        ("thrift://127.0.0.1:9083", ["thrift://127.0.0.1:9083"], True),
        ("thrift://127.1:9083", ["thrift://*:9083"], False),
        ("thrift://2130706433:9083", ["thrift://*:9083"], False),
        ("thrift://0x7f000001:9083", ["thrift://*:9083"], False),
        ("thrift://localhost.:9083", ["thrift://*:9083"], False),
        ("thrift://169.254.169.254:80", ["thrift://*:80"], False),
        ("thrift://[::ffff:127.0.0.1]:9083", ["thrift://[*:*:*:*]:9083", "thrift://*:9083"], False),
        ("no address", ["*"], False),
    ],
)
def test_an_address_is_allowed_by_a_pattern_and_near_ones_only_when_written_out(
    address: str, allow: list[str], allowed: bool
) -> None:
    assert is_allowed(address, allow) is allowed


@pytest.mark.parametrize(
    "host", ["localhost", "::1", "[::1]", "127.0.0.9", "0.0.0.0", "fe80::1%eth0", "x.localhost", ""]
)
def test_near_hosts_are_known(host: str) -> None:
    assert is_near(host)


@pytest.mark.parametrize("host", ["remote-hms", "10.0.0.1", "2001:db8::1", "7up.corp"])
def test_far_hosts_are_known(host: str) -> None:
    assert not is_near(host)


OWN = ["thrift://127.0.0.1:9090"]


ANYWHERE = ("thrift://*:*", "https://*:*/*", "http://*:*/*")
LENT = {
    "far": LentLogin((FAR,)),
    "unlent": LentLogin(),
    "open": LentLogin(ANYWHERE, secret=True),
    "sealed": LentLogin(ANYWHERE, secret=True, tls=True),
}


@pytest.mark.parametrize(
    ("asked", "granted", "allow", "said"),
    [
        (endpoint(FAR), [], [FAR], None),
        (endpoint(FAR), [endpoint(FAR)], [], None),
        (endpoint(FAR), [], [], f"Nothing allows links to {FAR}."),
        (endpoint(FAR, "thrift://127.0.0.1:22"), [], [FAR], "Nothing allows links to thrift://127.0.0.1:22."),
        (endpoint("thrift://localhost:9090"), [], ["thrift://localhost:9090"], "The link leads to the local metastore"),
        (endpoint(OWN[0]), [endpoint(OWN[0])], [], "The link leads to the local metastore itself."),
        (endpoint(FAR, **{CREDENTIALS: "nobody"}), [], [FAR], "There are no credentials 'nobody'."),
        (endpoint(FAR, **{CREDENTIALS: "far"}), [], [FAR], None),
        (endpoint(FAR, **{CREDENTIALS: "unlent"}), [], [FAR], f"The credentials 'unlent' are not for {FAR}."),
        (endpoint(FAR, **{CREDENTIALS: "unlent"}), [endpoint(FAR, **{CREDENTIALS: "unlent"})], [], None),
        (endpoint(f"{FAR},{ELSE}", **{CREDENTIALS: "far"}), [], ["thrift://*:*"], "The credentials 'far' are not for"),
        (endpoint(FAR, **{CREDENTIALS: "open"}), [], [FAR], f"No password or token of 'open' goes to {FAR} without"),
        (endpoint(FAR, **{CREDENTIALS: "open"}), [endpoint(FAR, **{CREDENTIALS: "open"})], [], None),
        (endpoint(FAR, **{CREDENTIALS: "sealed"}), [], [FAR], None),
        (endpoint("https://hms.far:1/m", **{CREDENTIALS: "open"}), [], ["https://*:*/m"], None),
        (endpoint("http://hms.far:1/m", **{CREDENTIALS: "sealed"}), [], ["http://*:*/m"], "No password or token of"),
        (Endpoint("thrift", ()), [], ["*"], "The link names no address"),
    ],
)
def test_nothing_is_connected_to_that_neither_a_statement_nor_a_pattern_allows(
    asked: Endpoint, granted: list[Endpoint], allow: list[str], said: str | None
) -> None:
    refused = refusal(asked, THRIFT, granted, allow, LENT, OWN)
    assert (refused is None) if said is None else str(refused).startswith(said)


def test_key_files_are_a_statements_alone_to_name() -> None:
    asked = Endpoint("ssh", tuple(sorted({URIS: FAR, ROUTE: "a@b", KEYS: "/root/.ssh/id"}.items())))
    assert str(refusal(asked, SSH, [], [FAR], {}, OWN)).startswith(f"'{KEYS}' names a file of calque's machine.")
    assert refusal(asked, SSH, [asked], [], {}, OWN) is None


def test_keys_of_ssh_are_lent_to_hops_that_their_section_names() -> None:
    route = over("a@bastion -> b@node")
    asked = Endpoint("ssh", (*route.settings, (CREDENTIALS, "keys")))
    allow = ["ssh://*:22", "thrift://localhost:9083"]
    for endpoints, said in (((), "ssh://bastion:22"), (("ssh://bastion:22",), "ssh://node:22"), (tuple(allow), None)):
        refused = refusal(asked, SSH, [], allow, {"keys": LentLogin(endpoints)}, OWN)
        assert (refused.what if refused else None) == (said and f"The credentials 'keys' are not for {said}")


def test_the_machines_own_login_is_lent_to_nobody() -> None:
    settings = {"aws.glue.endpoint": "https://glue.far:443"}
    asked, allow = Endpoint("glue", tuple(settings.items())), ["https://glue.far:443"]
    assert "names no credentials" in str(refusal(asked, GLUE.form, [], allow, {}, OWN))
    assert refusal(asked, GLUE.form, [asked], [], {}, OWN) is None
    asked = Endpoint("glue", (*settings.items(), (CREDENTIALS, "far")))
    assert refusal(asked, GLUE.form, [], allow, {"far": LentLogin(tuple(allow), secret=True)}, OWN) is None


def over(route: str) -> Endpoint:
    return Endpoint("ssh", tuple(sorted({URIS: "thrift://localhost:9083", ROUTE: route}.items())))


@pytest.mark.parametrize(
    ("route", "allow", "said"),
    [
        ("a@bastion", ["ssh://bastion:22", "thrift://*:9083"], None),
        ("a@Bastion:2222 -> b@127.0.0.1", ["ssh://bastion:2222", "ssh://*:22", "thrift://localhost:9083"], None),
        ("a@bastion", ["thrift://localhost:9083"], "Nothing allows links to ssh://bastion:22."),
        ("a@bastion -> b@node", ["ssh://bastion:22", "thrift://*:*"], "Nothing allows links to ssh://node:22."),
        ("a@bastion", ["ssh://*:22"], "Nothing allows links to thrift://localhost:9083."),
        ("a@localhost", ["ssh://*:22", "thrift://*:*"], "Nothing allows links to ssh://localhost:22."),
        ("a@localhost", ["ssh://localhost:22", "thrift://*:*"], None),
        ("bastion", ["ssh://*:*", "thrift://*:*"], "'bastion' is no route."),
    ],
)
def test_each_hop_and_what_is_behind_the_last_one_has_to_be_allowed(
    route: str, allow: list[str], said: str | None
) -> None:
    refused = refusal(over(route), SSH, [], allow, {}, ["thrift://localhost:9083"])
    assert (refused is None) if said is None else str(refused).startswith(said)


def test_what_is_behind_a_hop_is_not_near() -> None:
    assert is_far_only(over("a@bastion -> b@localhost"), SSH, [])
    assert not is_far_only(over("a@localhost"), SSH, [])
