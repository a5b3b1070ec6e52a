"""A metastore behind hops of SSH: real servers of it, each in a process of its own."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from calque.adapters.metastore.addresses import addresses
from calque.adapters.metastore.channel import connected
from calque.adapters.metastore.client import Client
from calque.adapters.metastore.reader import HiveReader
from calque.errors import AccessRefused, Unavailable
from calque.model.access import MetastoreAccess
from calque.model.secrets import VariableSecret
from calque.model.tls import Tls
from calque.plugins.remotes.adapters import ssh_tunnel as tunnel
from calque.plugins.remotes.adapters.ssh_way import SshWay
from calque.plugins.remotes.model import SshHop, SshRoute
from support.services.bastion import Bastion
from support.services.certificates import certified
from support.services.linked import Linked
from support.services.servers import Shared
from support.sources.sshkeys import SshKey, make_key

pytestmark = pytest.mark.timeout(600)


@dataclass
class Way:
    """Two hops with keys of their own, and files that fit them."""

    root: Path
    hops: tuple[Bastion, Bastion]
    hosts: tuple[SshKey, SshKey]
    user: SshKey

    @property
    def route(self) -> SshRoute:
        hops = SshHop("ann", "localhost", self.hops[0].port), SshHop("bob", "127.0.0.1", self.hops[1].port)
        return SshRoute(hops, (str(self.user.path),), str(self.known(self.hosts)), seconds=20)

    def known(self, hosts: tuple[SshKey, SshKey], name: str = "known_hosts") -> Path:
        file = self.root / name
        names = f"[localhost]:{self.hops[0].port}", f"[127.0.0.1]:{self.hops[1].port}"
        file.write_text("".join(f"{name} {key.public}\n" for name, key in zip(names, hosts, strict=True)))
        return file


@pytest.fixture(scope="module")
def way(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    root = tmp_path_factory.mktemp("ssh")
    hosts = make_key(root / "first", "rsa"), make_key(root / "second", "ed25519")
    user = make_key(root / "user", "ecdsa")
    (root / "authorized_keys").write_text(f"{user.public}\n")
    (root / "authorized_keys").chmod(0o600)
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(Bastion([key.path], root / "authorized_keys", root / f"log-{key.path.name}"))
            for key in hosts
        )
        yield Way(root, (first, second), hosts, user)


def databases(uri: str, route: SshRoute) -> list[str]:
    """What a new client finds by new sessions."""
    tunnel._tunnel.cache_clear()
    return list(HiveReader(Client(uri, MetastoreAccess(route=SshWay(route)))).databases())


def test_calls_go_over_all_hops_and_share_their_sessions(way: Way, shared: Shared) -> None:
    uri = shared("source-3")["source-3"].uri
    assert "default" in databases(uri, way.route)
    before = tunnel._tunnel(way.route, False)._sessions
    clients = [HiveReader(Client(uri.replace("127.0.0.1", "localhost"), MetastoreAccess(route=SshWay(way.route))))] * 4
    assert all("default" in client.databases() for client in clients)
    assert tunnel._tunnel(way.route, False)._sessions is before
    assert len(before) == 2
    clients[0].client.close()


def test_sessions_that_nobody_uses_are_closed_and_made_anew(
    way: Way, shared: Shared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tunnel, "IDLE_SECONDS", 0.1)
    client = Client(shared("source-3")["source-3"].uri, MetastoreAccess(route=SshWay(way.route)))
    tunnel._tunnel.cache_clear()
    assert "default" in HiveReader(client).databases()
    client.close()
    until(lambda: not tunnel._tunnel(way.route, False)._sessions)
    assert "default" in HiveReader(client).databases()
    client.close()


def test_a_key_with_a_passphrase_opens_the_way(way: Way, shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = make_key(way.root / "locked", "ecdsa", "open")
    with (way.root / "authorized_keys").open("a") as file:
        file.write(f"{locked.public}\n")
    monkeypatch.setenv("PASSPHRASE", "open")
    route = replace(way.route, keys=(str(way.user.path), str(locked.path)), passphrase=VariableSecret("PASSPHRASE"))
    assert "default" in databases(shared("source-3")["source-3"].uri, route)
    with pytest.raises(AccessRefused, match=r"locked can't be used\. It is encrypted"):
        databases("thrift://localhost:1", replace(route, passphrase=None))


def test_whom_calque_can_not_trust_gets_no_key_of_it(way: Way) -> None:
    other = make_key(way.root / "other", "rsa")
    for hosts, said in (
        ((other, way.hosts[1]), r"localhost:\d+ has another key than .*\. ssh-rsa SHA256:"),
        ((way.hosts[0], make_key(way.root / "third", "ed25519")), r"127\.0\.0\.1:\d+ has another key than"),
    ):
        route = replace(way.route, known_hosts=str(way.known(hosts, "wrong")))
        with pytest.raises(AccessRefused, match=said):
            databases("thrift://localhost:1", route)
    (way.root / "none").write_text("")
    with pytest.raises(
        AccessRefused, match=r"none has no key of localhost:\d+\. No other is trusted\. .*ssh-keyscan -p"
    ):
        databases("thrift://localhost:1", replace(way.route, known_hosts=str(way.root / "none")))
    revoked = way.known(way.hosts, "revoked")
    revoked.write_text(f"{revoked.read_text()}@revoked * {way.hosts[0].public}\n")
    with pytest.raises(AccessRefused, match=r"revokes the key of localhost"):
        databases("thrift://localhost:1", replace(way.route, known_hosts=str(revoked)))


def test_who_is_not_let_in_hears_why_and_does_not_knock_again_at_once(way: Way) -> None:
    route = replace(way.route, keys=(str(make_key(way.root / "stranger").path),))
    with pytest.raises(AccessRefused, match=r"ann@localhost:\d+ does not take the key .*stranger\. ecdsa.* SHA256:"):
        databases("thrift://localhost:1", route)
    began = time.monotonic()
    with pytest.raises(AccessRefused, match=r"does not take the key"):
        tunnel.through(route, "localhost", 1, 5, refuse)
    assert time.monotonic() - began < tunnel.REFUSED_SECONDS


def refuse(host: str, port: int, seconds: float) -> socket.socket:
    raise AssertionError(f"{host}:{port} is connected to again within {seconds} s")


def test_a_hop_that_forwards_nothing_is_a_refusal(way: Way) -> None:
    keys = way.root / "authorized_keys"
    with Bastion([way.hosts[0].path], keys, way.root / "closed", forwards=False) as closed:
        known = way.root / "closed_hosts"
        known.write_text(f"[localhost]:{closed.port} {way.hosts[0].public}\n")
        route = SshRoute((SshHop("ann", "localhost", closed.port),), (str(way.user.path),), str(known))
        with pytest.raises(AccessRefused, match=r"ann@localhost:\d+ does not connect to localhost:1\."):
            databases("thrift://localhost:1", route)


def test_what_does_not_answer_is_unavailable(way: Way) -> None:
    with pytest.raises(Unavailable, match=r"bob@127\.0\.0\.1:\d+ can't connect to localhost:1"):
        databases("thrift://localhost:1", way.route)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        known = way.root / "silent_hosts"
        known.write_text(f"[localhost]:{port} {way.hosts[0].public}\n")
        route = SshRoute((SshHop("ann", "localhost", port),), (str(way.user.path),), str(known), seconds=0.5)
        with pytest.raises(Unavailable, match=r"does not answer as a server of SSH within 0\.5 s"):
            databases("thrift://localhost:1", route)
    with pytest.raises(Unavailable, match=r"[Rr]efused"):
        databases("thrift://localhost:1", route)


def test_a_session_that_answers_no_more_is_made_anew(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    tunnel._tunnel.cache_clear()
    route = way.route
    with Echoing() as port:
        tunnel.through(route, "localhost", port, 20, direct).close()
        before = tunnel._tunnel(route, False)._sessions
        with monkeypatch.context() as silent:
            silent.setattr(before[-1], "_send_user_message", lambda _: None)
            with pytest.raises(ConnectionError, match=r"bob@127\.0\.0\.1:\d+: Timeout"):
                tunnel.through(route, "localhost", port, 0.2, direct)
        tunnel.through(route, "localhost", port, 20, direct).close()
        assert tunnel._tunnel(route, False)._sessions is not before


def test_near_calque_itself_is_what_the_first_hop_is(way: Way, shared: Shared) -> None:
    access = MetastoreAccess(route=SshWay(way.route), far_only=True)
    with pytest.raises(AccessRefused, match=r"localhost:\d+ leads to 127\.0\.0\.1\. It is near calque itself"):
        HiveReader(Client(shared("source-3")["source-3"].uri, access)).databases()


def test_many_threads_share_a_way_and_close_theirs(way: Way) -> None:
    tunnel._tunnel.cache_clear()
    route = way.route
    with Echoing() as port:
        before = threading.active_count()

        def talk(number: int) -> bool:
            content, got = bytes([number]) * 300_000, bytearray()
            with tunnel.through(route, "localhost", port, 20, direct) as made:
                sender = threading.Thread(target=made.sendall, args=(content,))
                sender.start()
                while len(got) < len(content):
                    got += made.recv(1 << 16)
                sender.join()
            return bytes(got) == content

        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(talk, range(8)))
        until(lambda: tunnel._tunnel(route, False)._users == 0)
        until(lambda: sum(thread.name == "ssh" for thread in threading.enumerate()) == 0)
        until(lambda: threading.active_count() <= before + 3)


def test_tls_goes_over_ssh_and_is_as_strict(way: Way, tmp_path: Path) -> None:
    made = certified("127.0.0.1", tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(made.certificate, made.key)
    with Echoing(context) as port:
        access = MetastoreAccess(tls=Tls(ca=made.certificate), route=SshWay(way.route))
        with connected(*addresses(f"thrift://127.0.0.1:{port}"), access, 20) as over:
            over.sendall(b"secret")
            assert over.recv(6) == b"secret"
        with pytest.raises(AccessRefused, match=r"The certificate of the metastore at .* is for other names"):
            connected(*addresses(f"thrift://localhost:{port}"), access, 20)


def direct(host: str, port: int, seconds: float) -> socket.socket:
    return socket.create_connection((host, port), timeout=seconds)


class Echoing:
    """A server that answers with what it hears, and closes when its client does; within TLS with a context."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.context = context

    def __enter__(self) -> int:
        self.server = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.serve, daemon=True).start()
        return int(self.server.getsockname()[1])

    def __exit__(self, *_: object) -> None:
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(connection,), daemon=True).start()

    def answer(self, connection: socket.socket) -> None:
        with suppress(OSError):
            within = self.context.wrap_socket(connection, server_side=True) if self.context is not None else connection
            with within:
                while heard := within.recv(1 << 16):
                    within.sendall(heard)


def until(reached: Callable[[], object], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_link_over_two_hops_follows_and_lives_on_when_a_hop_is_back(way: Way, shared: Shared, tmp_path: Path) -> None:
    servers = shared("source-3", "target-4")
    linked = Linked(tmp_path, servers["target-4"].uri, servers["source-3"].uri)
    here, there = linked.here, linked.there
    there.database("ssh_far")
    there.table("ssh_far.orders", "1")
    here.database("ssh_near")
    hop = Bastion([way.hosts[0].path], way.root / "authorized_keys", way.root / "log-mortal")
    try:
        mortal = Way(way.root, (hop, way.hops[1]), way.hosts, way.user)
        route = " -> ".join(map(str, mortal.route.hops))
        linked.config.write_text(
            f"{linked.config.read_text()}[remotes.credentials.far]\n"
            f"private_keys = [{json.dumps(str(way.user.path))}]\n"
            f"known_hosts = {json.dumps(mortal.route.known_hosts)}\n"
        )
        settings = f"'hive.metastore.uris' = '{linked.remote_uri}' 'ssh.tunnel.route' = '{route}'"
        properties = f"VIA 'ssh' WITH TBLPROPERTIES ({settings} 'calque.remote.credentials' = 'far')"
        for wrong, said in (
            ("'ssh.tunnel.route' = 'bastion'", "'bastion' is no route. 'bastion' is not user@host"),
            ("'ssh.tunnel.route' = 'a@b'", "'ssh.tunnel.private.keys' is missing"),
            (
                "'ssh.tunnel.route' = 'a@b' 'ssh.tunnel.private.keys' = '/none' 'ssh.tunnel.known.hosts' = '/none'",
                "/none",
            ),
        ):
            with_it = f"VIA 'ssh' WITH TBLPROPERTIES ('hive.metastore.uris' = '{linked.remote_uri}' {wrong})"
            code, told = linked.refused(f"CREATE REMOTE TABLE ssh_near.orders CONNECTED TO ssh_far.orders {with_it}")
            assert (code, said in told) == (65, True), told
        linked.sql(f"CREATE REMOTE TABLE ssh_near.orders CONNECTED TO ssh_far.orders {properties}")
        with linked.running():
            linked.wait_live("ssh_near.orders")
            there.partitions("ssh_far.orders", "2")
            linked.wait_until(lambda: here.parts("ssh_near.orders") == ["p=1", "p=2"])
            hop.stop()
            linked.wait_until(lambda: "localhost" in linked.reason("ssh_near.orders"))
            there.partitions("ssh_far.orders", "3")
            assert here.parts("ssh_near.orders") == ["p=1", "p=2"]
            hop = Bastion([way.hosts[0].path], way.root / "authorized_keys", way.root / "log-mortal", port=hop.port)
            linked.wait_until(lambda: here.parts("ssh_near.orders") == ["p=1", "p=2", "p=3"])
            linked.wait_live("ssh_near.orders")
        # Nobody waits for a catalog that is away
        hop.stop()
        command = [sys.executable, "-m", "calque.cli", "run", "--until", "head", "-c", str(linked.config)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        assert ended.returncode == 0, ended.stderr
        assert "is not waited for" in ended.stderr
        assert here.parts("ssh_near.orders") == ["p=1", "p=2", "p=3"]
    finally:
        linked.close()
        hop.stop()
