"""Bodies of answers over HTTP, read within a bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from calque.core.formats.bounded import TooMuch
from calque.model.bounds import MESSAGE

CHUNK = 64 << 10


class BoundedBody:
    """In the place of a response of urllib3 that `requests` or the AWS SDK reads the body from. Raises `TooMuch` beyond
    `most` bytes after unpacking, having kept no more, and closes the connection."""

    def __init__(self, raw: Any, most: int = MESSAGE) -> None:
        self._raw, self._most = raw, most

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def stream(self, amt: int | None = None, decode_content: bool | None = None) -> Iterator[bytes]:
        count = 0
        for chunk in self._raw.stream(min(amt or CHUNK, CHUNK), decode_content=decode_content):
            count += len(chunk)
            if count > self._most:
                self._raw.close()
                raise TooMuch(f"it answers more than {self._most} bytes")
            yield chunk
