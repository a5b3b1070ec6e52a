"""A metastore that has no other calls than those of its log, and remembers what it was asked for, and by whom."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from thrift.protocol.fastbinary import decode_binary, encode_binary
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TMessageType, TType
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

from calque.adapters.metastore.messages import (
    GET_CONFIG_VALUE,
    GET_CURRENT_EVENT_ID,
    GET_NEXT_NOTIFICATION,
    SET_USER,
    CurrentEventId,
    EventRequest,
    Events,
)
from calque.adapters.metastore.wire import argument_spec, result_spec
from calque.ports import EventLog

CALLS = {call.name: call for call in (GET_CURRENT_EVENT_ID, GET_NEXT_NOTIFICATION, GET_CONFIG_VALUE, SET_USER)}


@dataclass
class LogServer:
    """It gives what `log` has. `asked` are the limits of the reads, in order; `most` is how many events the server can
    make an answer of: it fails where it would be more."""

    uri: str
    log: EventLog
    most: int = 1 << 30
    knows_users: bool = True
    users: list[str] = field(default_factory=list)
    """One for each connection."""
    asked: list[int] = field(default_factory=list)
    given: int = 0
    """Events in all the answers that were sent whole."""

    def answer(self, name: str, argument: Any) -> Any:
        if name == SET_USER.name:
            self.users.append(argument)
            return (argument,)
        if name == GET_CONFIG_VALUE.name:
            return ""
        if name == GET_CURRENT_EVENT_ID.name:
            return CurrentEventId(self.log.current())
        assert isinstance(argument, EventRequest)
        self.asked.append(argument.limit)
        found = self.log.read(argument.after, argument.limit)
        return Events(tuple(found)) if len(found) <= self.most else None

    def serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError, EOFError, TTransportException):
            under = TSocket()
            under.setHandle(connection)
            transport = TBufferedTransport(under, 1 << 16)
            protocol = TBinaryProtocol(transport)
            while True:
                name, _, number = protocol.readMessageBegin()
                call = CALLS.get(name)
                if call is None:
                    protocol.skip(TType.STRUCT)
                    refuse(protocol, name, number, TApplicationException.UNKNOWN_METHOD, "no such call")
                    continue
                arguments = decode_binary(None, protocol, [SimpleNamespace, argument_spec(call)])
                answer = self.answer(name, getattr(arguments, "a1", None))
                if name == SET_USER.name and not self.knows_users:
                    refuse(protocol, name, number, TApplicationException.UNKNOWN_METHOD, "no such call")
                    continue
                if answer is None:
                    refuse(protocol, name, number, TApplicationException.INTERNAL_ERROR, "Java heap space")
                    continue
                protocol.writeMessageBegin(name, TMessageType.REPLY, number)
                spec = [SimpleNamespace, result_spec(call)]
                no_faults = dict.fromkeys(call.faults)
                transport.write(encode_binary(SimpleNamespace(success=answer, **no_faults), spec))
                transport.flush()
                self.given += len(answer.events) if isinstance(answer, Events) else 0


def refuse(protocol: TBinaryProtocol, name: str, number: int, kind: int, why: str) -> None:
    protocol.writeMessageBegin(name, TMessageType.EXCEPTION, number)
    TApplicationException(kind, why).write(protocol)
    protocol.trans.flush()


@contextmanager
def log_server(
    log: EventLog, most: int = 1 << 30, *, knows_users: bool = True, tls: ssl.SSLContext | None = None
) -> Iterator[LogServer]:
    listener = socket.create_server(("127.0.0.1", 0))
    found = LogServer(f"thrift://127.0.0.1:{listener.getsockname()[1]}", log, most, knows_users)

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            found.serve(tls.wrap_socket(connection, server_side=True) if tls is not None else connection)

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield found
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
