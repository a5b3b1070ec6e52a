"""A transport that weighs the answer that is being read from it, and gives up an answer that is too heavy."""

from __future__ import annotations

from typing import Any


class AnswerTooLarge(Exception):
    """The answer grew beyond what was allowed. The rest of it is still to come, therefore the connection is of no more
    use."""


class LimitedTransport:
    """The transport below Thrift's buffer, with a limit on the bytes of each answer."""

    def __init__(self, under: Any) -> None:
        self._under = under
        self._max_bytes: int | None = None
        self._read = 0

    def isOpen(self) -> bool:  # noqa: N802  (the name is Thrift's)
        return True

    def begin(self, max_bytes: int | None) -> None:
        """Begin an answer, which may have `max_bytes` bytes; None: any number."""
        self._max_bytes, self._read = max_bytes, 0

    def read(self, size: int) -> bytes:
        chunk: bytes = self._under.read(size)
        self._read += len(chunk)
        if self._max_bytes is not None and self._read > self._max_bytes:
            raise AnswerTooLarge(f"An answer grew beyond {self._max_bytes} bytes")
        return chunk

    def readAll(self, size: int) -> bytes:  # noqa: N802  (the name is Thrift's)
        """Read exactly `size` bytes. Thrift's own method adds piece to piece, which copies a long text again and
        again."""
        content = bytearray()
        while len(content) < size:
            content += self.read(size - len(content))
        return bytes(content)

    def write(self, data: bytes) -> None:
        self._under.write(data)

    def flush(self) -> None:
        self._under.flush()
