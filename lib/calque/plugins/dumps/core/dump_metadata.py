"""`_dumpmetadata`: what a dump, or one event of it, is.

One line of fields between tabs, and in the root of a dump of Hive 4 a second one with the policy. Source:
`DumpMetaData`.
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
"""How absent fields are written; Hive 4.0 reads both, and writes the second."""
FIELDS = {DumpLayout.HIVE_4: 7, DumpLayout.HIVE_3: 5}


@dataclass(frozen=True, slots=True)
class PolicyLine:
    """The policy as Hive 4 compares it: texts of regular expressions, None where there is none."""

    database: str
    include: str | None = None
    exclude: str | None = None


@dataclass(frozen=True, slots=True)
class DumpMetadata:
    """`kind` is `BOOTSTRAP`, `INCREMENTAL` or that of an event (`event_types`). Of a dump: what it holds begins after
    `from_event` and ends with `to_event`; an increment on it begins after `to_event`, on a bootstrap of Hive's after
    its `from_event`. Of an event: both are its id, and `payload` is its message as plain JSON, where it has one."""

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
        """The file. A payload has no tab: JSON escapes it."""
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
    """Of either layout, by the number of fields. Raises `Undecodable`."""
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
    """The execution's number, the payload, and whether the scope changed: the first and the last came with Hive 4."""
    match fields:
        case [] | [None]:
            return 0, None, False
        case [payload]:
            return 0, payload, False
        case [execution, payload, *rest]:
            return number(execution), payload, rest == ["true"]
    raise AssertionError(fields)


def policy_text(policy: PolicyLine | None) -> str:
    """The second line, or nothing."""
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
