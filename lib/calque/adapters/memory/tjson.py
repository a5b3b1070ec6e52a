"""Values of `model.hive` as Hive writes them inside notification messages: Thrift's JSON protocol.

A structure is `{"number":{"type":value}}`; a list `["type",length,items…]`; a map `["key type","value type",length,
{key:value}]`. A key that is a list stands there as such (`{["str",1,"a"]:"b"}`, Hive's skewed locations), so that a
message with one is no JSON; Hive's are not either.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from calque.model.hive import FIELDS, Kind, ListOf, MapOf

TAGS: Mapping[str, str] = {"string": "str", "i32": "i32", "i64": "i64", "bool": "tf"}


def tjson(structure: Any) -> str:
    """The text of one structure; fields that are None are left out."""
    return braced(
        f'"{number}":{{"{tag(kind)}":{text(kind, value)}}}'
        for number, name, kind in FIELDS[type(structure)]
        if (value := getattr(structure, name)) is not None
    )


def text(kind: Kind, value: Any) -> str:
    match kind:
        case ListOf(item):
            return f"[{','.join((quoted(tag(item)), str(len(value)), *(text(item, one) for one in value)))}]"
        case MapOf(key, item):
            entries = braced(f"{text(key, name)}:{text(item, one)}" for name, one in value.items())
            return f'["{tag(key)}","{tag(item)}",{len(value)},{entries}]'
        case "string":
            return quoted(value)
        case str():
            return str(int(value))
        case type():
            return tjson(value)


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


def quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def braced(parts: Iterable[str]) -> str:
    return "{" + ",".join(parts) + "}"
