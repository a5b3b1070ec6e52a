"""The file `_dumpmetadata`, which says what a dump is, or what one event of a dump is.

The file has one line of fields that tabs separate. In the root of a dump of Hive 4 a second line has the policy.
Source: `DumpMetaData`.
"""

from __future__ import annotations

from dataclasses import dataclass

from calque.core.events.decode import Undecodable
from calque.core.formats.bounded import number_of
from calque.model.names import EventId
from calque.plugins.dumps.core.layout import DumpLayout

BOOTSTRAP = "BOOTSTRAP"
INCREMENTAL = "INCREMENTAL"
NULLS = ("\\N", "NULL")
"""The two spellings of an absent field; Hive 4.0 reads both, and writes the second."""
FIELDS = {DumpLayout.HIVE_4: 7, DumpLayout.HIVE_3: 5}


@dataclass(frozen=True, slots=True)
class PolicyLine:
    """A replication policy in the form in which Hive 4 compares policies. `include` and `exclude` are the texts of
    regular expressions, or None where the policy has no such expression."""

    database: str
    include: str | None = None
    exclude: str | None = None


@dataclass(frozen=True, slots=True)
class DumpMetadata:
    """The content of a `_dumpmetadata`. `kind` is `BOOTSTRAP`, `INCREMENTAL` or the kind of an event (see
    `event_types`). For a dump, its contents begin after event `from_event` and end with event `to_event`. The next
    increment begins after `to_event`, but on a bootstrap by Hive after its `from_event`. For an event, both are the
    event's id, and `payload` is its message as plain JSON, or None where the dump has no message."""

    kind: str
    from_event: EventId
    to_event: EventId
    change_root: str | None = None
    execution: int = 0
    payload: str | None = None
    scope_changed: bool = False
    policy: PolicyLine | None = None

    @property
    def is_bootstrap(self) -> bool:
        return self.kind == BOOTSTRAP

    def text(self, layout: DumpLayout) -> str:
        """Return the text of the file in this layout. A payload can't break the line, because JSON escapes tabs and
        line ends."""
        begin = [self.kind, str(self.from_event), str(self.to_event), self.change_root or NULLS[1]]
        payload = self.payload if self.payload is not None else NULLS[1]
        match layout:
            case DumpLayout.HIVE_3:
                return "\t".join([*begin, payload]) + "\n"
            case DumpLayout.HIVE_4:
                changed = "true" if self.scope_changed else "false"
                first = "\t".join([*begin, str(self.execution), payload, changed])
                return f"{first}\n{policy_text(self.policy)}"


def read_dump_metadata(text: str) -> DumpMetadata:
    """Return the content of a `_dumpmetadata`; the number of fields says which layout the file has. Raises
    `Undecodable`."""
    first, _, second = text.partition("\n")
    fields: list[str | None] = [None if field in NULLS else field for field in first.split("\t", 6)]
    if len(fields) < 4 or not fields[0]:
        raise Undecodable("a dump's metadata has too few fields")
    execution, payload, changed = later_fields(fields[4:])
    return DumpMetadata(
        fields[0],
        event_id(fields[1]),
        event_id(fields[2]),
        fields[3],
        execution,
        payload,
        changed,
        policy_of(second.split("\n", 1)[0]),
    )


def later_fields(fields: list[str | None]) -> tuple[int, str | None, bool]:
    """Return the execution's number, the payload, and whether the scope changed, from the fields behind the first four.
    Only Hive 4 writes the first and the last of the three."""
    match fields:
        case [] | [None]:
            return 0, None, False
        case [payload]:
            return 0, payload, False
        case [execution, payload, *rest]:
            return number(execution), payload, rest == ["true"]
    raise AssertionError(fields)


def policy_text(policy: PolicyLine | None) -> str:
    """Return the file's second line, or an empty text where there is no policy."""
    if policy is None:
        return ""
    parts = [policy.database, policy.include, policy.exclude]
    while parts[-1] is None:
        parts.pop()
    return "\t".join(part if part is not None else NULLS[0] for part in parts) + "\n"


def policy_of(line: str) -> PolicyLine | None:
    database, *rest = (None if part in NULLS else part for part in line.rstrip("\r").split("\t"))
    return PolicyLine(database, *rest[:2]) if database else None


def event_id(text: str | None) -> EventId:
    if (found := number_of(text or "", -1)) < 0:
        raise Undecodable(f"{text!r} is no event id")
    return found


def number(text: str | None) -> int:
    sign = -1 if (text or "").startswith("-") else 1
    return sign * number_of((text or "").lstrip("-"))
