"""Values as bytes and back: Avro in its single-object encoding, or as Confluent's serializers write it.

The first is two bytes C3 01, the writer's schema by its fingerprint (CRC-64-AVRO, little endian), the record. The
second is a byte 0, the schema's id at a registry (big endian), the record; it says nothing without that registry, so
the fingerprint stands beside it. Whoever reads knows all released versions (`schemas/README.md`) and takes each as the
newest one.
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
"""Bytes before the record where a registry has the schema: this marker and the id."""
Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Codec:
    """Reads all `versions` of one schema by their fingerprint, and writes the `newest`."""

    name: str
    versions: Mapping[bytes, Any]
    newest: bytes

    def encode(self, value: Mapping[str, object]) -> bytes:
        """The newest version of the value, whole."""
        return self._written(MARKER + self.newest, value)

    def encode_registered(self, value: Mapping[str, object], schema_id: int) -> bytes:
        """The same for readers who look the schema up at a registry, which has it under that id."""
        return self._written(REGISTERED + schema_id.to_bytes(4, "big"), value)

    def decode(self, data: bytes) -> dict[str, Any]:
        """As the newest version has it. Raises `Broken` for what is not of this schema."""
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
    """What `encode_registered` wrote, of the schema with that fingerprint, as `encode` writes it. Raises `Broken`."""
    if registered[:1] != REGISTERED or len(registered) < REGISTERED_HEAD:
        raise Broken(
            f"A record begins with the bytes {registered[:REGISTERED_HEAD].hex() or 'of nothing'}, and no schema's id",
            "Something else than calque wrote it, or it is damaged",
            "Give calque a topic of its own, and let nobody else write into it",
        )
    return MARKER + fingerprint + registered[REGISTERED_HEAD:]


@cache
def codec(name: str) -> Codec:
    """Of all the schema's released versions."""
    return codec_of(name, [orjson.loads(path.read_bytes()) for path in schema_versions(name)])


def newest_text(name: str) -> str:
    """The schema's newest released version, as JSON."""
    return orjson.dumps(orjson.loads(schema_versions(name)[-1].read_bytes())).decode()


def codec_of(name: str, versions: Sequence[Schema]) -> Codec:
    """Of these versions, oldest first."""
    schemas = {fingerprint_of(version): parse_schema(dict(version), named_schemas={}) for version in versions}
    return Codec(name, schemas, fingerprint_of(versions[-1]))


def fingerprint_of(schema: Schema) -> bytes:
    """The eight bytes that stand for the schema."""
    return bytes.fromhex(fingerprint(to_parsing_canonical_form(dict(schema)), "CRC-64-AVRO"))
