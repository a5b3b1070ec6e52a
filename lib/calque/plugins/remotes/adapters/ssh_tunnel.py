"""Sockets to metastores behind hops of SSH: the last hop forwards the connection (RFC 4254, 7.2).

Each hop's session runs within the session of the hop before. All connections of a process over one route share its
sessions. The sessions are made for the first connection, made again when one is dead, and closed after `IDLE_SECONDS`
without a connection. Only the route is sent to other processes; sockets and keys never are.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from paramiko import AuthenticationException, Channel, ChannelException, PKey, SSHException, Transport

from calque.adapters.metastore.channel import Connect
from calque.errors import AccessRefused
from calque.plugins.remotes.adapters.ssh_files import KeysOfHost, fingerprint, keys_of_host, private_key
from calque.plugins.remotes.model import SshHop, SshRoute

KEEPALIVE_SECONDS = 15
DEAD_MILLISECONDS = 45_000
"""The time after which a first hop that acknowledges nothing counts as dead."""
IDLE_SECONDS = 60.0
REFUSED_SECONDS = 5.0
"""Seconds for which a refusal is repeated without a new attempt: hops lock out clients that try all the time."""
PROHIBITED = 1
"""SSH_OPEN_ADMINISTRATIVELY_PROHIBITED (RFC 4254, 5.1)."""
CHUNK = 1 << 16
NOWHERE = ("127.0.0.1", 0)
"""The origin that is reported for a forwarded connection."""
RSA = ("rsa-sha2-512", "rsa-sha2-256")
logging.getLogger("paramiko").setLevel(logging.CRITICAL)
"""paramiko's log lines are left out, because it raises its errors, too."""


def through(
    route: SshRoute, host: str, port: int, seconds: float, connect: Connect, *, far_only: bool = False
) -> socket.socket:
    """Return a socket to `host` and `port`, names that the last hop resolves. `connect` makes the socket to the first
    hop. With `far_only` near hosts are forbidden, and sessions that were made without `far_only` are not shared.

    Raises `OSError` where a hop does not answer, or the last one can't connect to the host. Raises `AccessRefused`
    where a hop refuses calque, or can't be trusted, and `Refused` for files that can't be used.
    """
    return _tunnel(route, far_only).open((host, port), seconds, connect)


class SessionLost(ConnectionError):
    """The error of a session that does not answer any more, even though it still counts as active."""


class Tunnel:
    """The sessions over one route, and the number of their users. Safe from several threads."""

    def __init__(self, route: SshRoute) -> None:
        self.route = route
        self._lock = threading.Lock()
        self._sessions: list[Transport] = []
        self._users = 0
        self._used_at = 0.0
        self._is_timed = False
        """A timer runs that will close the sessions if they are not used."""
        self._refused: tuple[float, AccessRefused] | None = None

    def open(self, place: tuple[str, int], seconds: float, connect: Connect) -> socket.socket:
        with self._lock:
            if not (self._sessions and all(session.is_active() for session in self._sessions)):
                self._close()
                self._sessions = self._made(connect)
            last = self._sessions[-1]
            self._users += 1
        try:
            return as_socket(forwarded(last, self.route.hops[-1], place, seconds), self._leave)
        except BaseException as error:
            if isinstance(error, SessionLost):
                self._give_up(last)
            self._leave()
            raise

    def _made(self, connect: Connect) -> list[Transport]:
        if self._refused is not None and time.monotonic() < self._refused[0]:
            refusal = self._refused[1]
            raise AccessRefused(refusal.what, refusal.why, refusal.todo)
        try:
            return sessions(self.route, connect)
        except AccessRefused as refusal:
            self._refused = (time.monotonic() + REFUSED_SECONDS, refusal)
            raise

    def _give_up(self, last: Transport) -> None:
        with self._lock:
            if self._sessions[-1:] == [last]:
                self._close()

    def _close(self) -> None:
        for session in reversed(self._sessions):
            session.close()
        self._sessions = []

    def _leave(self) -> None:
        with self._lock:
            self._users -= 1
            self._used_at = time.monotonic()
            if self._users == 0 and not self._is_timed:
                self._look_later(IDLE_SECONDS)

    def _look_later(self, seconds: float) -> None:
        self._is_timed = True
        timer = threading.Timer(seconds, self._close_unused)
        timer.daemon = True
        timer.start()

    def _close_unused(self) -> None:
        with self._lock:
            self._is_timed = False
            left = self._used_at + IDLE_SECONDS - time.monotonic()
            if self._users == 0 and left > 0:
                self._look_later(left)
            elif self._users == 0:
                self._close()


@cache
def _tunnel(route: SshRoute, _far_only: bool) -> Tunnel:
    return Tunnel(route)


@dataclass(frozen=True, slots=True)
class Trust:
    """The keys that a session with a hop needs before anything is sent there: those that the hop may show, and calque's
    own."""

    hosts: KeysOfHost
    own: PKey


def sessions(route: SshRoute, connect: Connect) -> list[Transport]:
    """Return the sessions of all hops, the nearest first, each within the session before. Raises as `through`; then all
    sessions are closed."""
    trusts = [trust_of(route, number) for number in range(len(route.hops))]
    made: list[Transport] = []
    try:
        for number, hop in enumerate(route.hops):
            under: socket.socket | Channel
            if made:
                under = forwarded(made[-1], route.hops[number - 1], (hop.host, hop.port), route.seconds)
            else:
                under = first(hop, route.seconds, connect)
                under.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAD_MILLISECONDS)
            made.append(session(under, route, number, trusts[number]))
    except BaseException:
        for one in reversed(made):
            one.close()
        raise
    return made


def trust_of(route: SshRoute, number: int) -> Trust:
    """Return the keys for the hop of that number, from 0. Raises `Refused` for files that can't be used, and
    `AccessRefused` for a hop of which the `known_hosts` file has no key."""
    hop = route.hops[number]
    hosts = keys_of_host(route.known_hosts, hop)
    if not hosts.trusted:
        todo = f"Put its key there: ssh-keyscan -p {hop.port} {hop.host}, and compare it with what its people say"
        raise AccessRefused(f"{route.known_hosts} has no key of {hop.place()}", "No other is trusted", todo)
    return Trust(hosts, private_key(route.key(number), route.passphrase))


def first(hop: SshHop, seconds: float, connect: Connect) -> socket.socket:
    """Return a socket to the first hop. Raises `OSError`, which names the hop."""
    try:
        return connect(hop.host, hop.port, seconds)
    except OSError as error:
        raise ConnectionError(f"{hop}: {error.strerror or error}") from error


def session(under: socket.socket | Channel, route: SshRoute, number: int, trust: Trust) -> Transport:
    """Return a session that is logged in to the hop of that number. The server's key is checked before anything secret
    is sent. Raises `OSError`, `AccessRefused`."""
    hop = route.hops[number]
    made = Transport(under)
    made.daemon = True
    try:
        made.get_security_options().key_types = kinds(trust.hosts)
        negotiate(made, hop, route.seconds)
        require_known(made, hop, trust.hosts, route.known_hosts)
        made.auth_timeout = route.seconds
        try:
            left = made.auth_publickey(hop.user, trust.own)
        except AuthenticationException as error:
            if not made.is_active():
                raise ConnectionError(f"{hop} ended the session: {error}") from error
            left = ["another key"]
        if left:
            todo = "Add its public key to authorized_keys there, or name another key"
            raise AccessRefused(f"{hop} does not take the key {route.key(number)}", fingerprint(trust.own), todo)
        made.set_keepalive(KEEPALIVE_SECONDS)
    except SSHException as error:
        made.close()
        raise ConnectionError(f"{hop}: {error}") from error
    except BaseException:
        made.close()
        raise
    return made


def negotiate(made: Transport, hop: SshHop, seconds: float) -> None:
    done = threading.Event()
    made.banner_timeout = made.handshake_timeout = seconds
    made.start_client(done)
    if not done.wait(seconds):
        raise TimeoutError(f"{hop} does not answer as a server of SSH within {seconds:g} s")
    if not made.is_active():
        raise ConnectionError(f"{hop}: {made.get_exception() or 'it ended the negotiation'}")


def kinds(known: KeysOfHost) -> tuple[str, ...]:
    """Return the algorithms of the keys that are trusted. Only these are offered, because a server shows one key, of
    the kind that the client asks for."""
    names = dict.fromkeys(key.get_name() for key in known.trusted)
    return tuple(kind for name in names for kind in (RSA if name == "ssh-rsa" else (name,)))


def require_known(made: Transport, hop: SshHop, known: KeysOfHost, path: str) -> None:
    shown = made.get_remote_server_key()
    if shown in known.revoked:
        raise AccessRefused(f"{path} revokes the key of {hop.place()}", fingerprint(shown), "Ask its people")
    if shown not in known.trusted:
        todo = "Somebody may stand between: ask its people. Replace its line if the key is right"
        raise AccessRefused(f"{hop.place()} has another key than {path} says", fingerprint(shown), todo)


def forwarded(within: Transport, hop: SshHop, place: tuple[str, int], seconds: float) -> Channel:
    """Return a channel from the hop of the session `within` to the host and port `place`. Raises `OSError`,
    `AccessRefused`."""
    try:
        return within.open_channel("direct-tcpip", place, NOWHERE, timeout=seconds)
    except ChannelException as error:
        if error.code == PROHIBITED:
            why, todo = error.text, "Have AllowTcpForwarding and PermitOpen allow it there"
            raise AccessRefused(f"{hop} does not connect to {place[0]}:{place[1]}", why, todo) from error
        raise ConnectionError(f"{hop} can't connect to {place[0]}:{place[1]}: {error.text}") from error
    except SSHException as error:
        raise SessionLost(f"{hop}: {error}") from error


def as_socket(channel: Channel, closed: Callable[[], None]) -> socket.socket:
    """Return a real socket in front of the channel, as TLS and `select` need one. `closed` is called once both
    directions have ended."""
    near, far = socket.socketpair()
    ways = (lambda: pump(far, channel, channel.close), lambda: pump(channel, far, lambda: far.shutdown(socket.SHUT_WR)))
    left = [len(ways)]
    lock = threading.Lock()

    def carry(way: Callable[[], None]) -> None:
        with suppress(OSError, SSHException, EOFError):
            way()
        with lock:
            left[0] -= 1
            is_last = left[0] == 0
        if is_last:
            far.close()
            channel.close()
            closed()

    for way in ways:
        threading.Thread(target=carry, args=(way,), name="ssh", daemon=True).start()
    return near


def pump(source: socket.socket | Channel, sink: socket.socket | Channel, end: Callable[[], None]) -> None:
    """Copy all bytes from `source` to `sink` until `source` ends or a call fails, then call `end`."""
    try:
        while data := source.recv(CHUNK):
            sink.sendall(data)
    finally:
        end()
