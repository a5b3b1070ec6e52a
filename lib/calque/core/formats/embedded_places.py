"""Search for places inside texts: is a place, or a path below it, named there, plainly or in JSON, a URL's form, hex or
Base64?

A text is decoded only where it can be of such a form and is long enough for the place.
"""

from __future__ import annotations

import re
from binascii import Error, a2b_base64
from collections.abc import Iterator, Sequence
from urllib.parse import unquote, unquote_plus

from calque.core.formats.layout import Place

NESTED = 3
"""The number of encodings, one inside another, that are decoded at most: JSON that is Base64 within JSON has three."""
LONGEST = 1 << 20
"""Characters of a text that is decoded."""
FAMILIES = {"s3a": "s3", "s3n": "s3", "wasbs": "wasb", "abfss": "abfs"}
"""Schemes, each with the scheme whose files it names too."""
SPELLINGS = {"s3": ("s3", "s3a", "s3n"), "wasb": ("wasb", "wasbs"), "abfs": ("abfs", "abfss")}
BY_DEFAULT = frozenset({"file", "hdfs", "viewfs"})
"""Schemes of file systems that a path without scheme or authority may mean."""
OWN_PLACE = "calque.place:"
"""The mark that stands for an object's own place in a definition without one."""
OTHER_SCHEMES = frozenset({"http", "https", "jdbc", "gs", "oss", "cosn", "memory", OWN_PLACE[:-1]})
EXCESS_SLASHES = re.compile(r"(?<![:/])/{2,}")
ESCAPE = re.compile(r"((?:\\u[0-9A-Fa-f]{4})+)|\\(.)", re.DOTALL)
CONTROLS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
HEX = re.compile(r"[0-9A-Fa-f]{4,}")
RUNS = re.compile(r"[A-Za-z0-9+/_-]{4,}")
"""Runs of characters that may be Base64."""
URL_SAFE = str.maketrans("-_", "+/")
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*\Z")
BEFORE_PATHS = frozenset("\"'`,;|=:<([{&!#?\ufffd")
OF_NAMES = frozenset("_-=%+@~$")
END = re.compile(r"[\s\"'`,;|<>()\[\]{}&?#*\\\x00-\x1f\ufffd]")
"""A character that ends a place in a text."""


def holds(text: str, roots: Sequence[Place]) -> bool:
    """Tell whether the text, or a text that it decodes to, names one of the places or a path below one."""
    named = [(anchor, root) for root in roots if (anchor := anchor_of(root))]
    shortest = min((len(anchor) for anchor, _ in named), default=0)
    if not shortest or len(text) < shortest:
        return False
    bytes_of_anchors = [anchor.encode(errors="replace") for anchor, _ in named]
    return any(
        anchor in form and next(occurrences(form, root), None) is not None
        for form in decoded(text, shortest, bytes_of_anchors)
        for anchor, root in named
    )


def replaced(text: str, roots: Sequence[Place], location: str) -> str:
    """Return the text with each of the places that stands in it plainly replaced by `location`. Encoded ones stay."""
    for root in roots:
        spans = list(occurrences(text, root))
        for begin, end in reversed(spans):
            text = f"{text[:begin]}{location.rstrip('/')}{text[end:]}"
    return text


def lies_in(text: str, place: Place, root: Place) -> bool:
    """Tell whether a text that is nothing but `place` lies at or below `root`, in any spelling."""
    if not Place("", "", root.path).contains(Place("", "", place.path)):
        return False
    if family(place.scheme) == family(root.scheme):
        return place.authority == root.authority or (not place.authority and root.scheme in BY_DEFAULT)
    return text.startswith("/") and may_be_bare(root)


def may_be_bare(root: Place) -> bool:
    """Tell whether a path without scheme and authority may mean the place. A path of a single name never does, because
    such a text is too common."""
    return root.scheme in BY_DEFAULT and root.path.count("/") > 1


def family(scheme: str) -> str:
    return FAMILIES.get(scheme, scheme)


def anchor_of(root: Place) -> str:
    """Return the part of a place that every plain naming of it contains: the path, or for a root the authority."""
    return root.path if root.path != "/" else root.authority


# Decoding


def decoded(text: str, shortest: int, anchors: Sequence[bytes], depth: int = NESTED) -> Iterator[str]:
    """Yield `text`, and each text that it may be an encoding of (percent, backslashes, Base64, hexadecimal), where
    these have at least `shortest` characters. At most `depth` encodings in one another are undone, and none of a text
    of more than `LONGEST` characters. Decoded bytes that are no UTF-8 are yielded only where one of `anchors` is in
    them, because others hold no place that is searched for."""
    if len(text) < shortest:
        return
    yield text
    if "//" in text:
        yield EXCESS_SLASHES.sub("/", text)
    if depth and len(text) <= LONGEST:
        for form in forms(text, shortest, anchors):
            yield from decoded(form, shortest, anchors, depth - 1)


def forms(text: str, shortest: int, anchors: Sequence[bytes]) -> Iterator[str]:
    """Yield each text that the text may be one encoding of."""
    if "%" in text:
        yield unquote(text)
        if "+" in text:
            yield unquote_plus(text)
    if "\\" in text:
        yield ESCAPE.sub(unescaped, text)
    for run in RUNS.findall(text):
        if 3 * len(run) >= 4 * shortest:
            content = of_base64(run.translate(URL_SAFE))
            yield from as_text(content, anchors)
    for run in HEX.findall(text) if len(text) >= 2 * shortest else ():
        if len(run) >= 2 * shortest:
            yield from as_text(bytes.fromhex(run[len(run) % 2 :]), anchors)


def of_base64(run: str) -> bytes:
    """Decode a text of Base64 with or without its padding; empty where it is none."""
    whole = run[:-1] if len(run) % 4 == 1 else run
    try:
        return a2b_base64(whole + "=" * (-len(whole) % 4))
    except Error:
        return b""


def as_text(content: bytes, anchors: Sequence[bytes]) -> Iterator[str]:
    """Yield the bytes as text where they are UTF-8, or where one of `anchors` is in them."""
    try:
        yield content.decode()
    except UnicodeDecodeError:
        if any(anchor in content for anchor in anchors):
            yield content.decode(errors="replace")


def unescaped(match: re.Match[str]) -> str:
    units, character = match.groups()
    if units:
        return bytes.fromhex(units.replace("\\u", "")).decode("utf-16-be", errors="replace")
    return CONTROLS.get(character, character)


# Finding


def occurrences(text: str, root: Place) -> Iterator[tuple[int, int]]:
    """Yield the begin and the end of each occurrence of the place in the text, without the path that follows below
    it."""
    anchor, path = anchor_of(root), root.path if root.path != "/" else ""
    position = text.find(anchor) if anchor else -1
    while position >= 0:
        end = position + len(anchor)
        begin = beginning(text, end - len(path), root) if is_end(text, end) else None
        if begin is not None:
            yield begin, end
        position = text.find(anchor, position + 1)


def is_end(text: str, end: int) -> bool:
    """Tell whether the name before `end` is complete there, and does not go on."""
    following = text[end : end + 1]
    if following == ".":
        return not text[end + 1 : end + 2].isalnum()
    return not following.isalnum() and following not in OF_NAMES


def beginning(text: str, at: int, root: Place) -> int | None:
    """Return the position where the location begins whose path begins at `at`; None where the location is another
    place's."""
    if root.authority and text.endswith(root.authority, 0, at):
        authority = at - len(root.authority)
        slashes = without_slashes(text, authority)
        return scheme_before(text, slashes, root) if slashes < authority else None
    if root.authority and root.scheme not in BY_DEFAULT:
        return None
    slashes = without_slashes(text, at)
    if at - slashes != 1 and (begin := scheme_before(text, slashes, root)) is not None:
        return begin
    if root.scheme == "file" and text.endswith("//localhost", 0, at):
        return scheme_before(text, at - len("//localhost"), root)
    return at if may_be_bare(root) and may_begin(text, at) else None


def without_slashes(text: str, end: int) -> int:
    while end and text[end - 1] == "/":
        end -= 1
    return end


def scheme_before(text: str, end: int, root: Place) -> int | None:
    """Return the position where the place's scheme begins, whose colon ends at `end`; None where another text stands
    there."""
    if not end or text[end - 1] != ":":
        return None
    match = SCHEME.search(text, max(0, end - 33), end - 1)
    word = match[0].lower() if match else ""
    for spelling in SPELLINGS.get(family(root.scheme), (root.scheme,)):
        if word == spelling or (root.authority and word.endswith(spelling)):
            return end - 1 - len(spelling)
    return None


def may_begin(text: str, at: int) -> bool:
    """Tell whether a path without a scheme may begin at `at`."""
    before = text[at - 1 : at] if at else ""
    if before == ":":
        match = SCHEME.search(text, max(0, at - 33), at - 1)
        word = match[0].lower() if match else ""
        return family(word) not in SPELLINGS and word not in BY_DEFAULT and word not in OTHER_SCHEMES
    return not before or before in BEFORE_PATHS or before.isspace() or before < " "
