"""Writing of the model's values in the form of Hive's notification messages and dumps: Thrift's JSON protocol.

A structure is `{"number":{"type":value}}`; a list `["type",length,items…]`; a map `["key type","value type",length,
{key:value}]`. A key that is a list stands there as such (`{["str",1,"a"]:"b"}`, Hive's skewed locations), so that a
message with one is no JSON; Hive's are not either.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from math import isfinite, isnan
from typing import Any

from calque.model import facets, hive
from calque.model.hive import Kind, ListOf, MapOf

FIELDS = {**hive.FIELDS, **facets.FIELDS}
TAGS: Mapping[str, str] = {
    "string": "str",
    "binary": "str",
    "i16": "i16",
    "i32": "i32",
    "i64": "i64",
    "dbl": "dbl",
    "bool": "tf",
}
Encode = Callable[[Any], str]
quoted: Encode = json.JSONEncoder(ensure_ascii=False).encode


def tjson(structure: Any) -> str:
    """Return the text of one structure; fields that are None are left out."""
    return STRUCTURES[type(structure)](structure)


def encoder(kind: Kind) -> Encode:
    """Return the function that writes a value of this kind as text."""
    match kind:
        case ListOf(item):
            return list_encoder(item)
        case MapOf(key, item):
            return map_encoder(key, item)
        case "string":
            return quoted
        case "binary":
            return binary
        case "dbl":
            return double
        case str():
            return number
        case type():
            return structure_encoder(kind)


def number(value: int) -> str:
    return str(int(value))


def double(value: float) -> str:
    """Write a number; the three that JSON does not have are words, as Thrift writes them."""
    if isfinite(value):
        return repr(float(value))
    return '"NaN"' if isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'


def binary(value: bytes) -> str:
    """Write Base64 without padding, as Thrift does."""
    return quoted(base64.b64encode(value).decode().rstrip("="))


def list_encoder(item: Kind) -> Encode:
    begin, encode = f"[{quoted(tag(item))},", encoder(item)
    return lambda values: begin + ",".join([str(len(values)), *map(encode, values)]) + "]"


def map_encoder(key: Kind, item: Kind) -> Encode:
    begin, encode_key, encode = f'["{tag(key)}","{tag(item)}",', encoder(key), encoder(item)

    def encode_map(values: Mapping[Any, Any]) -> str:
        entries = ",".join([f"{encode_key(name)}:{encode(one)}" for name, one in values.items()])
        return f"{begin}{len(values)},{{{entries}}}]"

    return encode_map


def structure_encoder(kind: type) -> Encode:
    fields = [(f'"{number}":{{"{tag(of_field)}":', name, encoder(of_field)) for number, name, of_field in FIELDS[kind]]

    def encode_structure(structure: Any) -> str:
        parts = [
            f"{begin}{encode(value)}}}"
            for begin, name, encode in fields
            if (value := getattr(structure, name)) is not None
        ]
        return f"{{{','.join(parts)}}}"

    return encode_structure


def tag(kind: Kind) -> str:
    match kind:
        case ListOf():
            return "lst"
        case MapOf():
            return "map"
        case str():
            return TAGS[kind]
        case type():
            return "rec"


STRUCTURES: Mapping[type, Encode] = {kind: structure_encoder(kind) for kind in FIELDS}
