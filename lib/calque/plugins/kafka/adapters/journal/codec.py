"""The encoding of values as bytes: Avro in its single-object encoding, or as Confluent's serializers write it.

The first is two bytes C3 01, the writer's schema by its fingerprint (CRC-64-AVRO, little endian), and the record. The
second is a byte 0, the schema's id at a registry (big endian), and the record; without that registry it does not say
its schema, so calque writes the fingerprint beside it. A reader knows all released versions (`schemas/README.md`) and
takes each as the newest one.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import fastavro
import orjson
from fastavro.schema import fingerprint, parse_schema, to_parsing_canonical_form

from calque.errors import Broken
from calque.resources import schema_versions

MARKER = b"\xc3\x01"
HEAD = 10
"""Bytes before the record: the marker and the fingerprint."""
REGISTERED = b"\x00"
REGISTERED_HEAD = 5
"""Bytes before the record where a registry has the schema: the marker `REGISTERED` and the id."""
Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Codec:
    """A reader and writer of one schema. It reads all `versions`, which are by fingerprint, and writes the `newest`."""

    name: str
    versions: Mapping[bytes, Any]
    newest: bytes

    def encode(self, value: Mapping[str, object]) -> bytes:
        """Return the value as bytes in the newest version, with its fingerprint before it."""
        return self._written(MARKER + self.newest, value)

    def encode_registered(self, value: Mapping[str, object], schema_id: int) -> bytes:
        """Return the value as bytes in the newest version, for readers who look the schema up at a registry, which has
        it as `schema_id`."""
        return self._written(REGISTERED + schema_id.to_bytes(4, "big"), value)

    def decode(self, data: bytes) -> dict[str, Any]:
        """Return the value that `encode` wrote, in the form of the newest version. Raises `Broken` for bytes that are
        not of this schema."""
        if data[:2] != MARKER:
            raise Broken(
                f"A record begins with the bytes {data[:HEAD].hex() or 'of nothing'}, so it is no {self.name} record",
                "Something else than calque wrote it, or it is damaged",
                "Give calque a topic of its own, and let nobody else write into it",
            )
        schema = self.versions.get(data[2:HEAD])
        if schema is None:
            raise Broken(
                f"A record is of the schema {data[2:HEAD].hex()}, which is no known version of {self.name}",
                "A newer calque wrote it, or something else did",
                "Bring this calque to the version of the one that captures",
            )
        newest = self.versions[self.newest]
        try:
            record = fastavro.schemaless_reader(io.BytesIO(data[HEAD:]), schema, None if schema is newest else newest)
        except (EOFError, ValueError, IndexError, UnicodeDecodeError) as error:
            raise Broken(
                f"A {self.name} record can't be read",
                f"It is damaged: {type(error).__name__} {error}",
                "Let the journal begin anew in another topic",
            ) from error
        return record  # type: ignore[return-value]

    def _written(self, head: bytes, value: Mapping[str, object]) -> bytes:
        output = io.BytesIO()
        output.write(head)
        fastavro.schemaless_writer(output, self.versions[self.newest], dict(value))
        return output.getvalue()


def self_contained(registered: bytes, fingerprint: bytes) -> bytes:
    """Turn bytes that `encode_registered` wrote, of the schema with that fingerprint, into bytes as `encode` writes
    them. Raises `Broken` for bytes that name no schema by an id."""
    if registered[:1] != REGISTERED or len(registered) < REGISTERED_HEAD:
        raise Broken(
            f"A record begins with the bytes {registered[:REGISTERED_HEAD].hex() or 'of nothing'}, and no schema's id",
            "Something else than calque wrote it, or it is damaged",
            "Give calque a topic of its own, and let nobody else write into it",
        )
    return MARKER + fingerprint + registered[REGISTERED_HEAD:]


@cache
def codec(name: str) -> Codec:
    """Return the codec of all released versions of the schema."""
    return codec_of(name, [orjson.loads(path.read_bytes()) for path in schema_versions(name)])


def newest_text(name: str) -> str:
    """Return the schema's newest released version, as JSON."""
    return orjson.dumps(orjson.loads(schema_versions(name)[-1].read_bytes())).decode()


def codec_of(name: str, versions: Sequence[Schema]) -> Codec:
    """Return a codec of these versions, given oldest first."""
    schemas = {fingerprint_of(version): parse_schema(dict(version), named_schemas={}) for version in versions}
    return Codec(name, schemas, fingerprint_of(versions[-1]))


def fingerprint_of(schema: Schema) -> bytes:
    """Return the schema's fingerprint: eight bytes, little endian."""
    return bytes.fromhex(fingerprint(to_parsing_canonical_form(dict(schema)), "CRC-64-AVRO"))
