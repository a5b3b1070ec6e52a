"""Claims as the small files that carry them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, fields

from calque.core.formats.bounded import parse_json
from calque.core.formats.layout import join
from calque.model.claims import Claim
from calque.model.names import OURS

CLAIM = f"{OURS}_claim."
"""How the name of the file begins; its generation follows."""
OLD_MARK = f"{OURS}_owner."
"""How the name of the hidden directory begins by which versions before marked a directory as calque's."""
ASIDE = f"{OURS}_removed."
"""How the name of a directory begins that is being removed; the number of the claim on it follows."""
_NAME = re.compile(re.escape(CLAIM) + r"([1-9][0-9]*)")
_FIELDS = tuple(field.name for field in fields(Claim))


def generations(names: Iterable[str]) -> list[int]:
    """Of the claims among the names of what lies in a directory, ascending."""
    return sorted(int(match[1]) for name in names if (match := _NAME.fullmatch(name)))


def claim_file(location: str, generation: int) -> str:
    return join(location, f"{CLAIM}{generation}")


def is_mark(name: str) -> bool:
    """Whether a name in a directory says that calque made it."""
    return _NAME.fullmatch(name) is not None or name.startswith(OLD_MARK)


def written(claim: Claim) -> bytes:
    return (json.dumps(asdict(claim), sort_keys=True) + "\n").encode()


def read(content: bytes) -> Claim | None:
    """None where it is no claim: what can't be read says nothing. Fields of later versions are passed over."""
    try:
        values = parse_json(content)
        claim = Claim(**{name: values[name] for name in _FIELDS if name in values})
    except (ValueError, TypeError):
        return None
    texts = (claim.number, claim.ledger, claim.writer, claim.deployment, claim.table, claim.partition)
    is_sound = all(isinstance(text, str) for text in (*texts, claim.incarnation)) and isinstance(claim.removal, bool)
    return claim if is_sound and isinstance(claim.epoch, int) else None
