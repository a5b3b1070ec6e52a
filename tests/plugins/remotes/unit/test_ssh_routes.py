"""Routes of SSH, and the files that they name."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from paramiko import HostKeys

from calque.adapters.metastore.client import Client
from calque.adapters.metastore.reader import HiveReader
from calque.errors import AccessRefused, Refused
from calque.model.access import MetastoreAccess
from calque.model.secrets import FileSecret, VariableSecret
from calque.plugins.remotes.adapters.ssh_files import fingerprint, keys_of_host, private_key
from calque.plugins.remotes.adapters.ssh_way import SshWay
from calque.plugins.remotes.config import Credentials
from calque.plugins.remotes.core.ssh_routes import KEYS, KNOWN_HOSTS, ROUTE, TIMEOUT, hops_of, route_of
from calque.plugins.remotes.model import SshHop, SshRoute
from calque.plugins.remotes.wiring.ssh_routes import ssh_route
from support.sources.sshkeys import make_key

FILES = {KEYS: "/keys/one,/keys/two", KNOWN_HOSTS: "/keys/known_hosts"}


def test_the_documents_route_has_two_hops() -> None:
    assert hops_of("bastionuser@bastion-host.domain -> user@cluster-node.domain") == (
        SshHop("bastionuser", "bastion-host.domain"),
        SshHop("user", "cluster-node.domain"),
    )


def test_hops_have_ports_and_addresses() -> None:
    assert hops_of("a@[::1]:2222->b.c@Node") == (SshHop("a", "::1", 2222), SshHop("b.c", "node"))
    assert str(SshHop("a", "::1", 2222)) == "a@[::1]:2222"


@pytest.mark.parametrize("route", ["", "a", "a@", "@b", "a@b:0", "a@b:65536", "a@b ->", "a@b -> c", "a:x@b", "a@b c@d"])
def test_what_is_no_route_is_refused(route: str) -> None:
    with pytest.raises(Refused, match=r"is no route|has an empty hop"):
        hops_of(route)


def test_settings_come_before_credentials() -> None:
    secret = VariableSecret("PASS")
    assert route_of({ROUTE: "a@b -> c@d", TIMEOUT: "1500", **FILES}, ("/other",), "/more", secret) == SshRoute(
        (SshHop("a", "b"), SshHop("c", "d")), ("/keys/one", "/keys/two"), "/keys/known_hosts", secret, 1.5
    )
    route = route_of({ROUTE: "a@b -> c@d"}, ("/other",), "/more", None)
    assert (route.key(1), route.known_hosts, route.seconds) == ("/other", "/more", 30.0)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({KNOWN_HOSTS: "/k"}, f"'{KEYS}' is missing."),
        ({KEYS: "/k"}, f"'{KNOWN_HOSTS}' is missing."),
        ({KEYS: "/k,/l,/m", KNOWN_HOSTS: "/k"}, "There are 3 private keys for 1 hop."),
        ({KEYS: "k", KNOWN_HOSTS: "/k"}, "'k' is no absolute path."),
        ({KEYS: "/k", KNOWN_HOSTS: "/k", TIMEOUT: "soon"}, f"'{TIMEOUT}' = 'soon' is no time."),
        ({KEYS: "/k", KNOWN_HOSTS: "/k", TIMEOUT: "0"}, f"'{TIMEOUT}' = '0' is no time."),
    ],
)
def test_what_a_route_lacks_is_said(settings: Mapping[str, str], said: str) -> None:
    with pytest.raises(Refused) as refused:
        route_of({ROUTE: "a@b", **settings}, (), "", None)
    assert str(refused.value).startswith(said)


def test_http_does_not_go_over_ssh() -> None:
    settings = {ROUTE: "a@b", **FILES, KEYS: "/key", "hive.metastore.uris": "http://far:9083/metastore"}
    with pytest.raises(Refused, match=r"An address by HTTP does not go over SSH"):
        ssh_route(settings, Credentials())


def test_without_its_package_ssh_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "calque.plugins.remotes.adapters.ssh_tunnel", None)
    route = SshRoute((SshHop("a", "b"),), ("/key",), "/known_hosts")
    with pytest.raises(AccessRefused, match=r"pip install 'calque-replicator\[ssh\]'"):
        HiveReader(Client("thrift://far:9083", MetastoreAccess(route=SshWay(route)))).databases()


@pytest.mark.parametrize("kind", ["ecdsa", "ed25519", "rsa"])
def test_keys_are_read_with_their_passphrase(kind: str, tmp_path: Path) -> None:
    plain, encrypted = make_key(tmp_path / "plain", kind), make_key(tmp_path / "encrypted", kind, "open")
    (tmp_path / "pass").write_text("open\n")
    assert private_key(str(plain.path), None).get_base64() == plain.public.split()[1]
    found = private_key(str(encrypted.path), FileSecret(str(tmp_path / "pass")))
    assert found.get_base64() == encrypted.public.split()[1]
    with pytest.raises(Refused, match=r"can't be used\. It is encrypted, or it is no key"):
        private_key(str(encrypted.path), None)
    (tmp_path / "pass").write_text("shut")
    with pytest.raises(Refused, match=r"can't be used\. Its passphrase does not fit"):
        private_key(str(encrypted.path), FileSecret(str(tmp_path / "pass")))


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    key = make_key(tmp_path / "key", "ecdsa")
    key.path.chmod(0o640)
    with pytest.raises(Refused, match=r"Others may read the private key"):
        private_key(str(key.path), None)


@pytest.mark.parametrize("content", ["", "ssh-rsa AAAA", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n"])
def test_what_is_no_key_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(content)
    (tmp_path / "key").chmod(0o600)
    with pytest.raises(Refused, match=r"can't be used"):
        private_key(str(tmp_path / "key"), None)
    with pytest.raises(Refused, match=r"can't be read\. No such file"):
        private_key(str(tmp_path / "other"), None)


@pytest.mark.parametrize(
    ("names", "hop", "found"),
    [
        ("node", SshHop("a", "node"), True),
        ("other,node", SshHop("a", "node"), True),
        ("*.corp,!x.corp", SshHop("a", "node.corp"), True),
        ("*.corp,!x.corp", SshHop("a", "x.corp"), False),
        ("node", SshHop("a", "node", 2222), False),
        ("[node]:2222", SshHop("a", "node", 2222), True),
        ("[n*]:2222", SshHop("a", "node", 2222), True),
        (HostKeys.hash_host("node"), SshHop("a", "node"), True),
        (HostKeys.hash_host("[node]:2222"), SshHop("a", "node", 2222), True),
        (HostKeys.hash_host("other"), SshHop("a", "node"), False),
        ("|1|no|hash", SshHop("a", "node"), False),
    ],
    ids=range(11),
)
def test_known_hosts_name_hosts_in_all_of_opensshs_ways(names: str, hop: SshHop, found: bool, tmp_path: Path) -> None:
    key = make_key(tmp_path / "key", "ed25519")
    known = tmp_path / "known_hosts"
    known.write_text(f"# a comment\n\n{names} {key.public} somebody\n")
    trusted = keys_of_host(str(known), hop).trusted
    assert [one.get_base64() for one in trusted] == ([key.public.split()[1]] if found else [])


def test_revoked_keys_authorities_and_unknown_kinds_are_told_apart(tmp_path: Path) -> None:
    one, two, three = (make_key(tmp_path / name, "ecdsa") for name in ("one", "two", "three"))
    known = tmp_path / "known_hosts"
    known.write_text(
        f"node {one.public}\n@revoked node {two.public}\n@cert-authority * {three.public}\nnode ssh-other AAAA\n"
    )
    found = keys_of_host(str(known), SshHop("a", "node"))
    assert [key.get_base64() for key in found.trusted] == [one.public.split()[1]]
    assert [key.get_base64() for key in found.revoked] == [two.public.split()[1]]
    assert fingerprint(found.trusted[0]).startswith("ecdsa-sha2-nistp256 SHA256:")


@pytest.mark.parametrize(
    "line", ["node ssh-ed25519 %%%%", "node ssh-ed25519 AAAA", "node ecdsa-sha2-nistp256 AAAAE2VjZA=="]
)
def test_a_line_that_is_no_key_is_refused_with_its_number(line: str, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    known.write_text(f"\n{line}\n")
    with pytest.raises(Refused, match=r"Line 2 of .* is no key of a host"):
        keys_of_host(str(known), SshHop("a", "node"))
    assert keys_of_host(str(known), SshHop("a", "other")).trusted == ()
    with pytest.raises(Refused, match=r"known hosts .* can't be read\. No such file"):
        keys_of_host(str(tmp_path / "none"), SshHop("a", "node"))
