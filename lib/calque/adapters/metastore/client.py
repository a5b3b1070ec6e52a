"""Connections to a metastore: a bounded pool, with one connection for each call that is under way.

Sockets never travel: a pickled client opens its own connections where it arrives.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Set
from contextlib import contextmanager
from itertools import count
from typing import Any

from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TMessageType
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from calque.adapters.metastore.addresses import Address, addresses
from calque.adapters.metastore.channel import Channel, ServerProblem, open_channel, refused_client
from calque.adapters.metastore.first_seen import FirstSeen
from calque.adapters.metastore.messages import GET_ID, SET_META_CONF, SET_USER, Call, CallUnknown, Fault
from calque.adapters.metastore.wire import decoded_result, encoded_arguments
from calque.errors import CallFailed, Unavailable
from calque.model.access import MetastoreAccess

logger = logging.getLogger(__name__)

READ_BUFFER = 1 << 18
LONGEST_STRING = 1 << 30
"""The greatest length of a string in bytes. A longer one is no answer of a metastore but another protocol on its
port."""


def anytime() -> None:
    """Permit every call: the default of `Client.permit`."""


class ServerFailed(CallFailed):
    """The server answered that it failed."""


class ConnectionLost(CallFailed):
    """The connection broke before there was an answer. A time-out is another error, because a slow server has lost
    nothing yet."""


class Client:
    """A client of the metastore at one of `uris` (`thrift://host:port` or `http://host:port/path`, comma-separated,
    tried in order), with the user and login of `access`. A server that refuses the login is not passed over for the
    next address, because it answers.

    Safe from several threads: at most `connections` calls are under way, further ones wait. Times are seconds. `permit`
    is called ahead of each call that changes anything, when all but sending it is done, and may raise. With
    `first_seen` each connection's server is asked for its id before the first call: another id than the first one
    raises `AccessRefused`.
    """

    def __init__(
        self,
        uris: str,
        access: MetastoreAccess = MetastoreAccess(),  # noqa: B008  (it is frozen)
        *,
        connect_timeout: float = 10.0,
        call_timeout: float = 600.0,
        connections: int = 8,
        permit: Callable[[], None] = anytime,
        first_seen: FirstSeen | None = None,
    ) -> None:
        self.uris, self.access, self.first_seen = uris, access, first_seen
        self.connect_timeout = connect_timeout
        self.call_timeout = call_timeout
        self.connections = connections
        self.permit = permit
        self.addresses = addresses(uris)
        self._clear()

    def call(
        self,
        call: Call,
        *arguments: Any,
        seconds: float | None = None,
        max_bytes: int | None = None,
        setting: tuple[str, str] | None = None,
    ) -> Any:
        """Send the call and return its result, within `seconds` where they are fewer than `call_timeout`. An answer of
        more than `max_bytes` bytes is not read to its end: `weighed.AnswerTooLarge`. Ahead of the call the connection
        is given `setting` (a name and a value), which it keeps as long as it lives; a server that does not know the
        setting says so.

        Raises `Fault` (an exception that the service declares), `CallUnknown` (the server does not know the call),
        `CallFailed`, and `Unavailable` where no address answers. A call that only reads, and a call that was not sent
        yet, is repeated when its connection breaks: once at the same address, and at the next one where the server had
        never answered on the connection (a proxy before a server that is down may take connections). A call whose time
        is over is not repeated.
        """
        request, wait = encoded_arguments(call, arguments), min(seconds or self.call_timeout, self.call_timeout)
        silent: set[Address] = set()
        for attempt in count(1):
            with self._connection(silent) as connection:
                if not call.reads:
                    self.permit()
                try:
                    if setting is not None:
                        to_set = encoded_arguments(SET_META_CONF, setting)
                        connection.exchange(SET_META_CONF, to_set, wait, max_bytes)
                    return connection.exchange(call, request, wait, max_bytes)
                except (Fault, CallUnknown, ServerProblem) as answer:
                    if isinstance(answer, ServerProblem):
                        connection.broken = answer.breaks
                        raise self._failing(call, str(answer), ServerFailed) from answer
                    raise
                except (OSError, EOFError, TTransportException, TProtocolException, OverflowError) as lost:
                    connection.broken = True
                    if refusal := refused_client(connection.address, lost):
                        raise refusal from lost
                    if not connection.answered:
                        silent.add(connection.address)
                    others = not connection.answered and not silent.issuperset(self.addresses)
                    may_repeat = call.reads or not connection.sent
                    if is_timeout(lost) or not may_repeat or (attempt > 1 and not others):
                        kind = CallFailed if is_timeout(lost) else ConnectionLost
                        raise self._failing(
                            call, f"{str(lost) or 'the connection broke'}{connection.unanswered()}", kind
                        ) from lost
                except BaseException:
                    connection.broken = True
                    raise
        raise AssertionError

    def close(self) -> None:
        """Close idle connections. The client stays usable."""
        while connection := self._idle_connection():
            connection.close()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._clear()

    def _clear(self) -> None:
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(self.connections)
        self._idle: list[Connection] = []

    @contextmanager
    def _connection(self, silent: Set[Address] = frozenset()) -> Iterator[Connection]:
        """Yield a connection that no other call uses, and put it back into the pool unless it broke. `silent` is as in
        `_new_connection`."""
        with self._places:
            connection = self._idle_connection() or self._new_connection(silent)
            try:
                yield connection
            finally:
                if connection.broken:
                    connection.close()
                else:
                    with self._lock:
                        self._idle.append(connection)

    def _idle_connection(self) -> Connection | None:
        """Return an idle connection that the other side has not closed, so that no call is lost to a server that was
        restarted; None without one."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection: Connection = self._idle.pop()
            if connection.is_open():
                return connection
            connection.close()

    def _new_connection(self, silent: Set[Address]) -> Connection:
        """Connect to the first address that takes a connection; addresses in `silent` are tried only where there are no
        others. Raises `Unavailable` where none takes one."""
        problems = []
        for address in [one for one in self.addresses if one not in silent] or self.addresses:
            try:
                channel = open_channel(address, self.access, self.connect_timeout)
            except OSError as problem:
                logger.debug("no connection to %s: %s", address, problem)
                problems.append(f"{address.host}:{address.port}: {problem}")
                continue
            return Connection(channel, self.first_seen)
        raise Unavailable(
            f"No metastore answers at {self.uris}",
            "; ".join(problems),
            "Check the address and that the service runs; the call is tried again",
        )

    def _failing(self, call: Call, why: str, kind: type[CallFailed]) -> CallFailed:
        outcome = "" if call.reads else "; whether it changed anything is unknown"
        return kind(
            f"The metastore at {self.uris} did not complete {call.name}{outcome}",
            why,
            "The state is read again and the call repeated; look into the metastore's log when this goes on",
        )


def is_timeout(error: Exception) -> bool:
    cause = error.inner if isinstance(error, TTransportException) else error
    return isinstance(cause, TimeoutError) or getattr(error, "type", None) == TTransportException.TIMED_OUT


class Connection:
    """One connection, used by one thread at a time. `broken` says that its stream is not at the beginning of an answer;
    `answered` that the server has answered anything on it; `sent` that the newest call itself was sent, and not only
    what goes ahead of it."""

    def __init__(self, channel: Channel, first_seen: FirstSeen | None = None) -> None:
        self.broken = False
        self._unmet = first_seen
        """The record that is still to be told who the server is; None when it knows."""
        self._unknown_user = channel.user
        """The user of whom the server is still to be told; empty when it knows."""
        self.answered = self.sent = False
        self.address, self._channel = channel.address, channel
        self._transport = TBufferedTransport(channel.transport, READ_BUFFER)
        self._protocol = TBinaryProtocol(
            self._transport,
            strictRead=True,
            string_length_limit=LONGEST_STRING,
            container_length_limit=LONGEST_STRING,
        )

    def exchange(self, call: Call, request: bytes, seconds: float, max_bytes: int | None) -> Any:
        self.sent = False
        if self._unknown_user:
            self._channel.begin(seconds, None)
            self._set_user()
        if self._unmet is not None:
            self._channel.begin(seconds, None)
            self._unmet.meet(self._identity(), f"{self.address.host}:{self.address.port}")
            self._unmet = None
        self._channel.begin(seconds, max_bytes)
        self.sent = True
        return self._exchange(call, request)

    def is_open(self) -> bool:
        return self._channel.is_open()

    def close(self) -> None:
        self._channel.close()

    def unanswered(self) -> str:
        """Return, for the end of an error's text, what may have been wrong from the beginning; empty where the server
        has answered on the connection."""
        return "" if self.answered else "; a server that wants TLS, a password, Kerberos or HTTP breaks off like this"

    def _identity(self) -> str:
        """Return the server's id; empty where it has none."""
        try:
            return str(self._exchange(GET_ID, encoded_arguments(GET_ID, ())) or "")
        except (CallUnknown, Fault) as answer:
            logger.debug("the metastore has no id: %s", answer)
            return ""

    def _set_user(self) -> None:
        """Have the server take all calls of the connection for the user's. A server that does not know users serves
        everybody alike, and so does one that fails in this call, for Hive's own clients too: both are logged only."""
        user, self._unknown_user = self._unknown_user, ""
        try:
            self._exchange(SET_USER, encoded_arguments(SET_USER, (user, ())))
        except (CallUnknown, Fault) as answer:
            logger.info("the metastore takes no user: %s", answer)
        except ServerProblem as answer:
            if answer.breaks:
                raise
            logger.info("the metastore takes no user: %s", answer)

    def _exchange(self, call: Call, request: bytes) -> Any:
        self._protocol.writeMessageBegin(call.name, TMessageType.CALL, 0)
        self._transport.write(request)
        self._transport.flush()
        _, kind, _ = self._protocol.readMessageBegin()
        self.answered = True
        if kind == TMessageType.EXCEPTION:
            raise self._problem()
        return decoded_result(call, self._protocol)

    def _problem(self) -> CallUnknown | ServerProblem:
        problem = TApplicationException()
        problem.read(self._protocol)
        if problem.type == TApplicationException.UNKNOWN_METHOD:
            return CallUnknown(str(problem))
        return ServerProblem(str(problem), breaks=problem.type != TApplicationException.INTERNAL_ERROR)
