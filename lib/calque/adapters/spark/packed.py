"""How the description of a source travels as a string: Spark hands data sources nothing else."""

from __future__ import annotations

import base64

from pyspark import cloudpickle

OPTION = "stream"
"""The one option of our data sources."""


def pack(stream: object) -> str:
    """`stream` as text. Keep it small and free of secrets: plans show a source's options."""
    pickled: bytes = cloudpickle.dumps(stream)  # type: ignore[no-untyped-call]
    return base64.b64encode(pickled).decode("ascii")


def unpack(text: str) -> object:
    return cloudpickle.loads(base64.b64decode(text))
