"""Open connections to a metastore: sockets, TLS, and the login that a server asks for before the first call.

A `Channel` carries the bytes of calls. It raises `OSError` where a server can't be reached, and `AccessRefused` where a
server refuses calque or can't be trusted, or calque's own files can't be read.
"""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Protocol

from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TTransportException

from calque.adapters.metastore.addresses import Address
from calque.adapters.metastore.logins import LONGEST_REASON, bearer_headers, log_in, note_refused_token, printable
from calque.adapters.metastore.weighed import LimitedTransport
from calque.core.policy.near_addresses import is_near
from calque.errors import AccessRefused, Refused
from calque.model.access import KerberosLogin, MetastoreAccess, PasswordLogin, TokenLogin
from calque.model.secrets import refusals_of_access
from calque.model.tls import Tls, reason

Connect = Callable[[str, int, float], socket.socket]
"""A function that opens a socket to a host and a port, within seconds."""
HTTP_REFUSALS = frozenset({401, 403})
HTTP_ELSEWHERE = frozenset({301, 302, 307, 308, 404, 405})


class ServerProblem(Exception):
    """The server answered with a failure that the service does not declare. `breaks` says that its answer was not read
    to the end."""

    def __init__(self, text: str, breaks: bool) -> None:
        self.breaks = breaks
        super().__init__(text)


class Channel(Protocol):
    """An open connection. `transport` is what Thrift's buffer reads from and writes to. `user` is the user of whom a
    call is still to tell the server, empty where it knows."""

    address: Address
    transport: Any
    user: str

    def begin(self, seconds: float, max_bytes: int | None) -> None:
        """Begin an answer, which is waited for `seconds`, and may have `max_bytes` bytes; None: any number."""
        ...

    def is_open(self) -> bool:
        """Return whether the connection can be used: False once the other side has closed it, or has sent bytes that
        were not asked for."""
        ...

    def close(self) -> None: ...


def open_channel(address: Address, access: MetastoreAccess, seconds: float) -> Channel:
    """Connect to the address, within `seconds`, and log in. Raises `OSError` and `AccessRefused`."""
    with refusals_of_access():
        if address.scheme == "thrift":
            return SocketChannel(address, access, seconds)
        return HttpChannel(address, access, seconds)


class SocketChannel:
    """A channel of Thrift over a socket."""

    def __init__(self, address: Address, access: MetastoreAccess, seconds: float) -> None:
        self.address = address
        self.user = "" if isinstance(access.login, KerberosLogin) else access.user_name()
        self._socket = connected(address, access, seconds)
        under = TSocket()
        under.setHandle(self._socket)
        self._limited = LimitedTransport(under)
        self.transport: Any = self._limited
        try:
            match access.login:
                case PasswordLogin() as login:
                    self.transport = log_in(self._limited, address, self.user, login)
                    self.user = ""
                case KerberosLogin() as login:
                    self.transport = by_ticket(self._limited, address, login)
        except BaseException:
            self.close()
            raise

    def begin(self, seconds: float, max_bytes: int | None) -> None:
        self._socket.settimeout(seconds)
        self._limited.begin(max_bytes)

    def is_open(self) -> bool:
        return is_silent(self._socket)

    def close(self) -> None:
        self._socket.close()


class HttpChannel:
    """A channel of Thrift in the bodies of HTTP requests, over one connection that is kept alive."""

    user = ""

    def __init__(self, address: Address, access: MetastoreAccess, seconds: float) -> None:
        self.address, self._access = address, access
        require_far(address.host, address.port, access)
        self._connection = HTTPConnection(address.host, address.port, timeout=seconds)
        if address.scheme == "https":
            context = (access.tls or Tls()).context()
            self._connection = HTTPSConnection(address.host, address.port, timeout=seconds, context=context)
        try:
            self._connection.connect()
        except ssl.SSLError as error:
            raise distrust(address, error) or error from error
        require_far_peer(address.host, address.port, access, self._connection.sock)
        self._connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._request = bytearray()
        self._response: HTTPResponse | None = None
        self._limited = LimitedTransport(self)
        self.transport: Any = self._limited

    def begin(self, seconds: float, max_bytes: int | None) -> None:
        if self._connection.sock is not None:
            self._connection.sock.settimeout(seconds)
        self._limited.begin(max_bytes)

    def is_open(self) -> bool:
        try:
            if self._response is not None:
                # The rest of the response is the end mark that HTTP puts behind its chunks.
                self._response.read()
        except (OSError, HTTPException):
            return False
        return self._connection.sock is not None and is_silent(self._connection.sock)

    def close(self) -> None:
        self._connection.close()

    # What lies below Thrift's buffer

    def write(self, data: bytes) -> None:
        self._request += data

    def flush(self) -> None:
        """Send the request, and wait until its answer begins. Raises `AccessRefused` and `ServerProblem` for a status
        other than 200."""
        body, self._request = bytes(self._request), bytearray()
        with refusals_of_access():
            headers = {"Content-Type": "application/x-thrift", "Accept": "application/x-thrift", **self._who()}
        try:
            self._connection.request("POST", self.address.path, body, headers)
            self._response = self._connection.getresponse()
        except HTTPException as error:
            raise ConnectionError(f"the answer is none of HTTP: {error!r}") from error
        if self._response.status != 200:
            raise self._problem(self._response)

    def read(self, size: int) -> bytes:
        assert self._response is not None
        try:
            chunk = self._response.read(size)
        except HTTPException as error:
            raise ConnectionError(f"the answer broke off: {error!r}") from error
        if not chunk:
            raise EOFError("the answer ended too soon")
        return chunk

    def _who(self) -> dict[str, str]:
        login = self._access.login
        if isinstance(login, TokenLogin):
            return bearer_headers(self.address, login)
        return {"x-actor-username": self._access.user_name()}

    def _problem(self, response: HTTPResponse) -> AccessRefused | ServerProblem:
        text = printable(response.read(LONGEST_REASON))
        status = f"It answers {response.status} {response.reason}"
        if response.status in HTTP_REFUSALS and isinstance(self._access.login, TokenLogin):
            return note_refused_token(self.address, self._access.login, text or status)
        if response.status in HTTP_REFUSALS:
            what = f"The metastore at {self.address} refuses the user {self._access.user_name()}"
            todo = "Give a token that it takes by token_env or token_file, or another user"
            return AccessRefused(what, text or status, todo)
        if response.status in HTTP_ELSEWHERE:
            todo = "Write the path that metastore.server.thrift.http.path has there"
            return AccessRefused(f"There is no metastore at {self.address}", status, todo)
        return ServerProblem(f"{status}: {text}" if text else status, breaks=True)


def require_far(host: str, port: int, access: MetastoreAccess, peer: str = "") -> None:
    """Raise `AccessRefused` where the access has `far_only` and an address of `host`, or `peer` where it is given, is
    near calque itself."""
    if not access.far_only:
        return
    resolved = socket.getaddrinfo(peer or host, port, type=socket.SOCK_STREAM)
    near = next((str(one[4][0]) for one in resolved if is_near(str(one[4][0]))), None)
    if near is not None:
        todo = "Write this address out in [remotes] allow, or make the link by CREATE REMOTE in calque sql"
        raise AccessRefused(f"{host}:{port} leads to {near}", "It is near calque itself, and nothing allows that", todo)


def require_far_peer(host: str, port: int, access: MetastoreAccess, connection: socket.socket) -> None:
    """Raise `AccessRefused`, and close the connection, where the access has `far_only` and the peer is near calque
    itself. To be called before anything is sent, because a name may lead elsewhere at each look-up."""
    if access.far_only:
        try:
            require_far(host, port, access, connection.getpeername()[0])
        except BaseException:
            connection.close()
            raise


def connected(address: Address, access: MetastoreAccess, seconds: float) -> socket.socket:
    """Return a socket to the address, by the route and within TLS where `access` has them. Raises `OSError` where the
    connection fails, `AccessRefused` where calque and the server do not trust each other's certificate or `access`
    forbids an address near this host, and `Refused` where the files of TLS can't be used."""
    context = access.tls.context() if access.tls is not None else None

    def connect(host: str, port: int, seconds: float) -> socket.socket:
        require_far(host, port, access)
        made = socket.create_connection((host, port), timeout=seconds)
        require_far_peer(host, port, access, made)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return made

    if access.route is None:
        plain = connect(address.host, address.port, seconds)
    else:
        plain = access.route.connect(address.host, address.port, seconds, connect, far_only=access.far_only)
        plain.settimeout(seconds)
    if context is None:
        return plain
    try:
        return context.wrap_socket(plain, server_hostname=address.host)
    except ssl.SSLError as error:
        plain.close()
        raise distrust(address, error) or error from error
    except OSError:
        plain.close()
        raise


def by_ticket(limited: LimitedTransport, address: Address, login: KerberosLogin) -> Any:
    """Log in by Kerberos and return the transport. Raises `Refused` where the extra `kerberos` is not installed, and
    what `kerberos.log_in` raises."""
    try:
        from calque.adapters.metastore import kerberos
    except ImportError as error:
        what = "Kerberos needs a package that is not installed, or the system's library of it"
        todo = "apt install gcc libc6-dev python3-dev libkrb5-dev, and pip install 'calque-replicator[kerberos]'"
        raise Refused(what, str(error), todo) from error
    return kerberos.log_in(limited, address, login)


CERTIFICATE_PROBLEMS = {
    9: ("is not valid yet", "Set the clocks right, or have the certificate made anew"),
    10: ("has expired", "Have the server's certificate renewed"),
    62: ("is for other names", "Write the address by a name that is in the certificate, or have it made for this one"),
    64: ("is for other names", "Write the address by a name that is in the certificate, or have it made for this one"),
}
"""The problem and the advice, by OpenSSL's number of why a certificate can't be verified."""


def distrust(address: Address, error: ssl.SSLError) -> AccessRefused | None:
    """Return the error that says why TLS with a server that answered failed; None where the server did not answer by
    TLS at all."""
    if isinstance(error, ssl.SSLCertVerificationError):
        unknown = ("is from nobody that calque trusts", "Name the authority that signed it in tls.ca")
        problem, todo = CERTIFICATE_PROBLEMS.get(error.verify_code, unknown)
        return AccessRefused(
            f"The certificate of the metastore at {address} {problem}", error.verify_message.capitalize(), todo
        )
    if "ALERT" in (error.reason or ""):
        todo = "Give a certificate and a key that it takes in tls.certificate and tls.key"
        return AccessRefused(f"The metastore at {address} refuses this client's TLS", reason(error), todo)
    return None


def refused_client(address: Address, error: BaseException) -> AccessRefused | None:
    """Return the error for a server that gave the connection up after it saw calque's certificate, which TLS 1.3 tells
    with the first answer. None for all other errors."""
    cause = error.inner if isinstance(error, TTransportException) else error
    return distrust(address, cause) if isinstance(cause, ssl.SSLError) else None


def is_silent(handle: socket.socket) -> bool:
    """Return whether the socket is open with nothing to read. The end of a connection would be readable."""
    if handle.fileno() < 0:
        return False
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return not poll.poll(0)
