"""Bounds on what calque takes from outside, in bytes after unpacking and in depth."""

from __future__ import annotations

from dataclasses import dataclass

MESSAGE = 256 << 20
"""The most bytes of a message of the log, of a file of metadata, and of what either unpacks to."""
LONGEST_MESSAGE = 1 << 30
"""The greatest value of `max_message`, in bytes: no server sends a longer message."""
SCHEMA = 16 << 20
"""The most bytes of a schema that a definition points to, or has in its parameters."""
MANIFESTS = 16 << 20
"""The most bytes of all manifests in one directory of a symlink table."""
RESOURCE = 1 << 30
"""The most bytes of a file that a function points to."""
DEEPEST = 100
"""The most levels of lists and objects in JSON, and of types in a type."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of one source: `[source] max_message`, `max_schema`, `max_resource`."""

    message: int = MESSAGE
    schema: int = SCHEMA
    resource: int = RESOURCE
