"""The bodies of answers over HTTP, read up to a bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from calque.core.formats.bounded import TooMuch
from calque.model.bounds import MESSAGE

CHUNK = 64 << 10


class BoundedBody:
    """A stand-in for a response of urllib3, from which `requests` or the AWS SDK reads the body. `stream` raises
    `TooMuch` and closes the connection once the unpacked body is longer than `most` bytes. It keeps none of these
    bytes."""

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
