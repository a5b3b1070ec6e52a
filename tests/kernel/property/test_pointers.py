"""No definition at a target names a place of the source's: what a source's definition names is followed, or has it
set aside.

What is drawn knows nothing of the product's list of pointers: any key, at any level, has a place of the object's or its
database's as its value, in any spelling and encoding. The judge decodes what the target has.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from calque.core.events.kinds import kind_of, partition_obstacle
from calque.core.formats.pointers import leading_back
from calque.core.images.image import ImageBuilder, Marks, same_definition
from calque.core.policy.admit import Admission
from calque.model.hive import Column, Partition, SerDe, Skew, Storage, Table, location_of
from calque.model.names import TableName
from calque.model.policy import Policy

EXAMPLES = {"check": 15, "prove": 20_000}
LAW = settings(
    max_examples=EXAMPLES.get(settings.get_current_profile_name(), 100), suppress_health_check=list(HealthCheck)
)
SOURCE = "hq0source"
"""A name on the way to every place of the source's, and to none of the target's."""
TARGET = "s3a://dr/w"
MARKS = Marks(7, "r1")
EXCEPTIONS = {
    "comment": "a note for people: no engine reads rows by it",
    "columns.comments": "the same, of columns",
    "avro.schema.literal": "a schema with its notes; Avro has no places in it",
    "avro.schema.url": "the file itself is copied: its address is known where files are copied, not here",
    "COLUMN_STATS_ACCURATE": "names columns",
    "transient_lastDdlTime": "a time",
    "calque.*": "marks and what was parked: notes of calque's own, which no engine reads",
    "spark.sql.sources.schema*": "the columns with their comments",
    "spark.sql.statistics.*": "numbers, and values of columns",
}
"""Keys under which a place of the source's may stay, and why. Views may have it anywhere: engines read their text."""


# Definitions

NAME_CHARACTERS = st.characters(codec="utf-8", exclude_characters="/\0", exclude_categories=["Cs"])
NAMES = (
    st.sampled_from(
        ["t", "Orders", "a.b", "my table", "p=1", "p=a%2Fb", "x,y", "tab\tle", "q\"'", "ü", "日本", "a\\b", "{x}"]
    )
    | st.text(NAME_CHARACTERS, min_size=1, max_size=6)
).filter(lambda name: name.strip(" .") != "" and not name.startswith(("_", ".")) and not name.isspace())
KEYS = st.sampled_from(
    ["path", "location", "External.Path", "k", "read.from", "a b", "Ключ", "inputs", "Path.List"]
) | st.text(NAME_CHARACTERS, min_size=1, max_size=8)
HARMLESS = st.sampled_from(
    [
        "",
        "true",
        "12",
        "a/b",
        "/",
        "//",
        "https://wiki/page",
        "550e8400-e29b-41d4-a716-446655440000",
        "{}",
        "%",
        "\\",
        "==",
    ]
) | st.text(max_size=12)
SCHEMES = {
    "hdfs": (f"hdfs://{SOURCE}", ["hdfs://{0}{1}", "HDFS://{0}{1}", "hdfs:{1}", "hdfs://{1}", "{1}"]),
    "s3a": (f"s3a://{SOURCE}", ["s3://{0}{1}", "s3a://{0}{1}", "s3n://{0}{1}"]),
    "file": ("file:", ["file:{1}", "file://{1}", "file://localhost{1}", "{1}", "File:{1}"]),
}
"""By scheme: how the metastore writes it, and how else the same place is written."""


@dataclass(frozen=True)
class Shape:
    """An object at the source: its location, and which places of its database's its parameters may name."""

    thing: Table | Partition
    location: str
    directories: tuple[str, ...]
    scheme: str


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    scheme = draw(st.sampled_from(sorted(SCHEMES)))
    warehouse = f"/{SOURCE}" if scheme != "s3a" else ""
    database = draw(st.sampled_from(["d", "Shop", "d.e", "d-1"]))
    table = draw(NAMES)
    in_database = draw(st.booleans())
    database_path = f"{warehouse}/w/{database.lower()}.db"
    path = f"{database_path}/{table}" if in_database else f"{warehouse}/else/{table}"
    directories = (database_path,) if in_database else ()
    storage = Storage((Column("c", "string", f"of {SOURCE}"),), serde=SerDe(parameters={}), parameters={})
    if draw(st.booleans()):
        keyed = f"{path}/dt={draw(st.sampled_from(['1', 'a b', '__HIVE_DEFAULT_PARTITION__', '%01', '']))}"
        thing: Table | Partition = Partition(("1",), database, table, storage=storage, parameters={})
        path, directories = keyed, (*directories, path)
    else:
        thing = Table(table, database, storage=storage, parameters={}, type="EXTERNAL_TABLE")
    location = SCHEMES[scheme][0] + path
    return Shape(replace(thing, storage=replace(storage, location=location)), location, (path, *directories), scheme)


BELOW = st.lists(NAMES, max_size=2).map(lambda names: "".join(f"/{name}" for name in names))


def places(shape: Shape) -> st.SearchStrategy[str]:
    def written(path: str, below: str, form: str, slash: str) -> str:
        return form.format(SOURCE, path + below + slash)

    forms = st.sampled_from(SCHEMES[shape.scheme][1])
    return st.builds(written, st.sampled_from(shape.directories), BELOW, forms, st.sampled_from(["", "/"]))


# Encodings

CODES: Mapping[str, Callable[[str], str]] = {
    "object": lambda text: json.dumps({"a": 1, "b": [text]}),
    "array": lambda text: json.dumps(["x", text], ensure_ascii=False),
    "slashed": lambda text: json.dumps([text]).replace("/", "\\/"),
    "url": lambda text: quote(text, safe=""),
    "form": quote_plus,
    "hex": lambda text: text.encode().hex(),
    "HEX": lambda text: text.encode().hex().upper(),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64url": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
}


def values(shape: Shape) -> st.SearchStrategy[str]:
    lists = st.lists(places(shape) | st.sampled_from(["x", "s3://other/t"]), min_size=1, max_size=3).map(",".join)

    def encoded(text: str, codes: list[str]) -> str:
        for code in codes:
            text = CODES[code](text)
        return text

    return HARMLESS | st.builds(encoded, places(shape) | lists, st.lists(st.sampled_from(sorted(CODES)), max_size=2))


@st.composite
def definitions(draw: st.DrawFn) -> Shape:
    shape = draw(shapes())
    table_level, storage_level, serde_level = (draw(st.dictionaries(KEYS, values(shape), max_size=2)) for _ in range(3))
    storage = shape.thing.storage or Storage()
    skew = Skew(("c",), (("1",),), draw(st.dictionaries(st.just(("1",)), values(shape), max_size=1)))
    storage = replace(storage, parameters=storage_level, serde=SerDe(parameters=serde_level), skew=skew)
    return replace(shape, thing=replace(shape.thing, parameters=table_level, storage=storage))


# The judge


def readings(text: str, depth: int = 3) -> Iterator[str]:
    """The text, and all that it decodes to."""
    yield text
    for decode in (unquote, unquote_plus, of_hex, of_base64, of_json) if depth else ():
        for form in decode(text) if decode in (of_hex, of_base64, of_json) else [decode(text)]:  # type: ignore[operator]
            if form != text:
                yield from readings(form, depth - 1)


def of_hex(text: str) -> list[str]:
    try:
        return [bytes.fromhex(text).decode()]
    except ValueError:
        return []


def of_base64(text: str) -> list[str]:
    try:
        padded = text.translate(str.maketrans("-_", "+/")) + "=" * (-len(text) % 4)
        return [base64.b64decode(padded, validate=True).decode()]
    except (binascii.Error, ValueError):
        return []


def of_json(text: str) -> list[str]:
    try:
        return list(strings(json.loads(text)))
    except (ValueError, RecursionError):
        return []


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from strings(item)


def maps(thing: Table | Partition) -> list[Mapping[str, str]]:
    storage = thing.storage or Storage()
    skew = {str(key): value for key, value in ((storage.skew or Skew()).locations or {}).items()}
    return [thing.parameters or {}, storage.parameters or {}, (storage.serde or SerDe()).parameters or {}, skew]


def is_excepted(key: str) -> bool:
    return any(fnmatchcase(key, exception) for exception in EXCEPTIONS)


def leading_values(image: Table | Partition) -> list[tuple[str, str]]:
    """Parameters of the image that name a place of the source's."""
    return [
        (key, value)
        for each in maps(image)
        for key, value in each.items()
        if not is_excepted(key) and any(SOURCE in form for form in readings(value))
    ]


def imaging(renames: bool, data: str) -> ImageBuilder:
    rename = {"d": "d_dr", "shop": "shop_dr"} if renames else {}
    return ImageBuilder(Admission(Policy("dr", "hq", include=("*.*",), warehouse=TARGET, rename=rename, data=data)))


def image_of(shape: Shape, builder: ImageBuilder, location: str | None) -> Table | Partition:
    if isinstance(shape.thing, Partition):
        return builder.partition(shape.thing, TableName("d", "t"), MARKS, location)
    return builder.table(shape.thing, MARKS, location)


@LAW
@given(shapes(), st.dictionaries(KEYS, HARMLESS, max_size=4), st.dictionaries(KEYS, HARMLESS, max_size=4))
def test_a_definition_that_names_no_place_is_not_set_aside(
    shape: Shape, parameters: dict[str, str], serde: dict[str, str]
) -> None:
    storage = replace(shape.thing.storage or Storage(), serde=SerDe(parameters=serde))
    thing = replace(shape.thing, parameters=parameters, storage=storage)
    assert not is_set_aside(thing)


def is_set_aside(thing: Table | Partition) -> bool:
    return bool(partition_obstacle(thing) if isinstance(thing, Partition) else kind_of(thing))


TARGETS = st.sampled_from([f"{TARGET}/d.db/t", f"{TARGET}/d.db/_calque/t.r1/data/7", "file:/target/t", "hdfs://dr/w/t"])


def of_files(value: str) -> Shape:
    """A table with one value at its SerDe."""
    location = f"file:/{SOURCE}/w/d.db/t"
    storage = Storage((), location, serde=SerDe(parameters={"k": value}), parameters={})
    return Shape(
        Table("t", "d", storage=storage, parameters={}, type="EXTERNAL_TABLE"), location, (location[5:],), "file"
    )


@LAW
@given(definitions(), st.booleans(), TARGETS)
@example(of_files(f"file:/{SOURCE}/w/d.db/t/t,file://localhost/{SOURCE}/w/d.db/t"), False, f"{TARGET}/d.db/t")
@example(of_files(CODES["HEX"](CODES["HEX"](f"file:/{SOURCE}/w/d.db/t"))), False, f"{TARGET}/d.db/t")
def test_a_definition_is_set_aside_or_names_no_place_of_the_source_s(
    shape: Shape, renames: bool, location: str
) -> None:
    assume(not is_set_aside(shape.thing))
    image = image_of(shape, imaging(renames, "copy"), location)
    assert leading_values(image) == []
    assert list(leading_back(shape.thing, image)) == []
    assert same_definition(image, image_of(shape, imaging(renames, "copy"), None))


@LAW
@given(definitions(), st.booleans())
def test_where_files_stay_at_the_source_nothing_that_names_them_changes(shape: Shape, renames: bool) -> None:
    assume(not is_set_aside(shape.thing))
    image = image_of(shape, imaging(renames, "none"), location_of(shape.thing))
    for before, after in zip(maps(shape.thing), maps(image), strict=True):
        kept = {key: value for key, value in before.items() if key in after and key.lower() not in ("path", "external")}
        assert {key: after[key] for key in kept} == kept
    assert location_of(image) == location_of(shape.thing)


@LAW
@given(definitions(), st.text(max_size=12))
def test_a_view_is_not_set_aside_for_what_it_names_and_its_text_stays(shape: Shape, text: str) -> None:
    assume(isinstance(shape.thing, Table))
    assert isinstance(shape.thing, Table)
    view_text = f"SELECT * FROM parquet.`{shape.location}` -- {text}"
    view = replace(shape.thing, type="VIRTUAL_VIEW", view_original_text=view_text, view_expanded_text=view_text)
    assert not is_set_aside(view)
    image = imaging(renames=False, data="copy").table(view, MARKS, None)
    assert (image.view_original_text, image.view_expanded_text) == (view_text, view_text)
