"""A socket that weighs the answer that is being read from it, and gives up one that is too heavy."""

from __future__ import annotations

from thrift.transport.TSocket import TSocket


class AnswerTooLarge(Exception):
    """The answer grew beyond what was allowed. The rest of it is still to come: the connection is of no use."""


class LimitedTransport:
    """The transport below Thrift's buffer."""

    def __init__(self, socket: TSocket) -> None:
        self._socket = socket
        self._most: int | None = None
        self._read = 0

    def begin(self, most: int | None) -> None:
        """The next answer may have so many bytes; None: any number."""
        self._most, self._read = most, 0

    def read(self, size: int) -> bytes:
        chunk: bytes = self._socket.read(size)
        self._read += len(chunk)
        if self._most is not None and self._read > self._most:
            raise AnswerTooLarge(f"An answer grew beyond {self._most} bytes")
        return chunk

    def readAll(self, size: int) -> bytes:  # noqa: N802  (the name is Thrift's)
        """Thrift's own adds piece to piece, which copies a long text again and again."""
        whole = bytearray()
        while len(whole) < size:
            whole += self.read(size - len(whole))
        return bytes(whole)

    def write(self, data: bytes) -> None:
        self._socket.write(data)

    def flush(self) -> None:
        self._socket.flush()
