"""The coding of values in Thrift's binary protocol, read and written by Thrift's own C codec.

The codec is driven by *specs*: for each structure a tuple, indexed by field number, of
`(number, type, attribute, type arguments, default)`. They are built here from tables of fields (`model.hive.FIELDS` and
those of `messages`), so there is no generated code: values are made straight from the wire as the frozen dataclasses of
the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

from thrift.protocol.fastbinary import decode_binary, encode_binary
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TType

from calque.adapters.metastore import messages, messages_of_transactions
from calque.adapters.metastore.messages import MAKERS, Call, DeclaredException, Fault
from calque.model.hive import Kind, ListOf, MapOf

FIELDS: Mapping[type, tuple[tuple[int, str, Kind], ...]] = {**messages.FIELDS, **messages_of_transactions.FIELDS}
Spec = tuple[tuple[int, int, str, Any, None] | None, ...]

SCALARS: Mapping[str, int] = {
    "string": TType.STRING,
    "binary": TType.STRING,
    "bool": TType.BOOL,
    "i16": TType.I16,
    "i32": TType.I32,
    "i64": TType.I64,
    "dbl": TType.DOUBLE,
}
TEXTS: Mapping[str, str] = {"string": "UTF8", "binary": "BINARY"}
SUCCESS = "success"


def encoded_arguments(call: Call, arguments: tuple[Any, ...]) -> bytes:
    """Return the bytes of a call's argument structure."""
    values = {f"a{number}": with_dicts(argument) for number, argument in enumerate(arguments, 1)}
    encoded: bytes = encode_binary(SimpleNamespace(**values), [SimpleNamespace, argument_spec(call)])
    return encoded


def decoded_result(call: Call, protocol: TBinaryProtocol) -> Any:
    """Read an answer from the protocol's transport and return the call's result. Raises the `Fault` that the server
    declared."""
    answer = vars(decode_binary(None, protocol, [SimpleNamespace, result_spec(call)]))
    result = answer.pop(SUCCESS, None)
    for kind, declared in answer.items():
        raise Fault(kind, declared.text)
    return result


@cache
def argument_spec(call: Call) -> Spec:
    return spec_of(tuple((number, f"a{number}", kind) for number, kind in enumerate(call.arguments, 1)))


@cache
def result_spec(call: Call) -> Spec:
    """Return the spec of an answer: field 0 is the result; the declared exceptions follow, each under its name."""
    declared = spec_of(tuple((number, name, DeclaredException) for number, name in enumerate(call.faults, 1)))
    success = None if call.result is None else (0, *typed(SUCCESS, call.result), None)
    return success, *declared[1:]


@cache
def struct_spec(structure: type) -> Spec:
    return spec_of(FIELDS[structure])


def spec_of(fields: tuple[tuple[int, str, Kind], ...]) -> Spec:
    slots: list[tuple[int, int, str, Any, None] | None] = [None] * (max((field[0] for field in fields), default=0) + 1)
    for number, name, kind in fields:
        slots[number] = (number, *typed(name, kind), None)
    return tuple(slots)


def typed(name: str, kind: Kind) -> tuple[int, str, Any]:
    code, arguments = encoding(kind)
    return code, name, arguments


def encoding(kind: Kind) -> tuple[int, Any]:
    """Return the wire type of a kind, and the codec's arguments for it. Lists become tuples, so that they can be keys
    of maps."""
    match kind:
        case ListOf(item):
            return TType.LIST, (*encoding(item), True)
        case MapOf(key, value):
            return TType.MAP, (*encoding(key), *encoding(value), False)
        case str():
            return SCALARS[kind], TEXTS.get(kind)
        case type():
            return TType.STRUCT, [MAKERS.get(kind, kind), struct_spec(kind)]


def with_dicts(value: Any) -> Any:
    """Return `value` with every mapping in it as a `dict`, because the C codec writes no others."""
    match value:
        case str() | bytes() | int() | float() | None:
            return value
        case tuple() | list():
            return value if not value or isinstance(value[0], str) else tuple(with_dicts(item) for item in value)
        case dict():
            return value
        case Mapping():
            return dict(value)
    structure: type = type(value)
    changed_fields = {
        name: new
        for name, old in ((name, getattr(value, name)) for name in containers(structure))
        if (new := with_dicts(old)) is not old
    }
    return replace(value, **changed_fields) if changed_fields else value


@cache
def containers(structure: type) -> tuple[str, ...]:
    """Return the names of the fields that hold more than a scalar."""
    return tuple(name for _, name, kind in FIELDS[structure] if not isinstance(kind, str))
