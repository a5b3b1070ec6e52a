"""The description of a source as a string, because Spark hands nothing else to data sources."""

from __future__ import annotations

import base64

from pyspark import cloudpickle

OPTION = "stream"
"""The one option of calque's data sources."""


def pack(stream: object) -> str:
    """Return `stream` as text. Keep it small and free of secrets, because plans show a source's options."""
    pickled: bytes = cloudpickle.dumps(stream)  # type: ignore[no-untyped-call]
    return base64.b64encode(pickled).decode("ascii")


def unpack(text: str) -> object:
    return cloudpickle.loads(base64.b64decode(text))
