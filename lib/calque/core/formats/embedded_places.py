"""Places inside texts: is something at or below a place named there, plainly or in JSON, a URL's form, hex or Base64?

A text is decoded only where it can be of such a form and is long enough for the place.
"""

from __future__ import annotations

import re
from binascii import Error, a2b_base64
from collections.abc import Iterator, Sequence
from urllib.parse import unquote, unquote_plus

from calque.core.formats.layout import Place

NESTED = 3
"""How many encodings lie in one another at most: JSON that is Base64 within JSON."""
LONGEST = 1 << 20
"""Characters of a text that is decoded."""
FAMILIES = {"s3a": "s3", "s3n": "s3", "wasbs": "wasb", "abfss": "abfs"}
"""Schemes that name the same files as another."""
SPELLINGS = {"s3": ("s3", "s3a", "s3n"), "wasb": ("wasb", "wasbs"), "abfs": ("abfs", "abfss")}
BY_DEFAULT = frozenset({"file", "hdfs", "viewfs"})
"""Schemes of file systems that a path without scheme or authority may mean."""
OWN_PLACE = "calque.place:"
"""Stands for an object's own place in a definition that has none."""
OTHER_SCHEMES = frozenset({"http", "https", "jdbc", "gs", "oss", "cosn", "memory", OWN_PLACE[:-1]})
EXCESS_SLASHES = re.compile(r"(?<![:/])/{2,}")
ESCAPE = re.compile(r"((?:\\u[0-9A-Fa-f]{4})+)|\\(.)", re.DOTALL)
CONTROLS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
HEX = re.compile(r"[0-9A-Fa-f]{4,}")
RUNS = re.compile(r"[A-Za-z0-9+/_-]{4,}")
"""What may be Base64."""
URL_SAFE = str.maketrans("-_", "+/")
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*\Z")
BEFORE_PATHS = frozenset("\"'`,;|=:<([{&!#?\ufffd")
OF_NAMES = frozenset("_-=%+@~$")
END = re.compile(r"[\s\"'`,;|<>()\[\]{}&?#*\\\x00-\x1f\ufffd]")
"""Where a place in a text ends."""


def holds(text: str, roots: Sequence[Place]) -> bool:
    """Whether the text, or what it decodes to, names something at or below one of the places."""
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
    """The text with each of the places, where they stand there plainly, replaced by the location."""
    for root in roots:
        spans = list(occurrences(text, root))
        for begin, end in reversed(spans):
            text = f"{text[:begin]}{location.rstrip('/')}{text[end:]}"
    return text


def lies_in(text: str, place: Place, root: Place) -> bool:
    """Whether a text that is this place, and nothing else, lies at or below the other, in any spelling."""
    if not Place("", "", root.path).contains(Place("", "", place.path)):
        return False
    if family(place.scheme) == family(root.scheme):
        return place.authority == root.authority or (not place.authority and root.scheme in BY_DEFAULT)
    return text.startswith("/") and may_be_bare(root)


def may_be_bare(root: Place) -> bool:
    """Whether a path without scheme and authority may mean the place; one of a single name is too common a text."""
    return root.scheme in BY_DEFAULT and root.path.count("/") > 1


def family(scheme: str) -> str:
    return FAMILIES.get(scheme, scheme)


def anchor_of(root: Place) -> str:
    """What a text has that names the place plainly."""
    return root.path if root.path != "/" else root.authority


# Decoding


def decoded(text: str, shortest: int, anchors: Sequence[bytes], depth: int = NESTED) -> Iterator[str]:
    """The text, and whatever it may be an encoding of, as far as that has `shortest` characters."""
    if len(text) < shortest:
        return
    yield text
    if "//" in text:
        yield EXCESS_SLASHES.sub("/", text)
    if depth and len(text) <= LONGEST:
        for form in forms(text, shortest, anchors):
            yield from decoded(form, shortest, anchors, depth - 1)


def forms(text: str, shortest: int, anchors: Sequence[bytes]) -> Iterator[str]:
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
    """What a text of Base64 says, whose padding may be missing."""
    whole = run[:-1] if len(run) % 4 == 1 else run
    try:
        return a2b_base64(whole + "=" * (-len(whole) % 4))
    except Error:
        return b""


def as_text(content: bytes, anchors: Sequence[bytes]) -> Iterator[str]:
    """Bytes that are a text, or that have the place in them."""
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
    """Where the place stands in the text, without what follows below it: begin and end."""
    anchor, path = anchor_of(root), root.path if root.path != "/" else ""
    position = text.find(anchor) if anchor else -1
    while position >= 0:
        end = position + len(anchor)
        begin = beginning(text, end - len(path), root) if is_end(text, end) else None
        if begin is not None:
            yield begin, end
        position = text.find(anchor, position + 1)


def is_end(text: str, end: int) -> bool:
    """Whether a name ends there, and does not go on."""
    following = text[end : end + 1]
    if following == ".":
        return not text[end + 1 : end + 2].isalnum()
    return not following.isalnum() and following not in OF_NAMES


def beginning(text: str, at: int, root: Place) -> int | None:
    """Where a location begins whose path begins at `at`; None where it is that of another place."""
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
    """Where the place's scheme begins, with the colon that ends there."""
    if not end or text[end - 1] != ":":
        return None
    match = SCHEME.search(text, max(0, end - 33), end - 1)
    word = match[0].lower() if match else ""
    for spelling in SPELLINGS.get(family(root.scheme), (root.scheme,)):
        if word == spelling or (root.authority and word.endswith(spelling)):
            return end - 1 - len(spelling)
    return None


def may_begin(text: str, at: int) -> bool:
    """Whether a path without a scheme may begin there."""
    before = text[at - 1 : at] if at else ""
    if before == ":":
        match = SCHEME.search(text, max(0, at - 33), at - 1)
        word = match[0].lower() if match else ""
        return family(word) not in SPELLINGS and word not in BY_DEFAULT and word not in OTHER_SCHEMES
    return not before or before in BEFORE_PATHS or before.isspace() or before < " "
