"""The checks of single values: the types that the keys of `config.keys` are made of. A problem travels through pydantic
as a `WrongError`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BeforeValidator, Strict, ValidationInfo

from calque.config import places, units
from calque.config.pydantic_errors import WrongError, base_folder, with_pydantic_errors
from calque.config.secret_keys import secret_options
from calque.core.policy.patterns import parse_pattern
from calque.core.policy.subset import parse_where
from calque.errors import Refused, nearest
from calque.model.bounds import LONGEST_MESSAGE
from calque.model.names import OURS
from calque.model.secrets import Options

Item = TypeVar("Item")
SMALLEST, LARGEST = 10**6, 10**9
"""The smallest and the largest size of a file that small ones are combined into, in bytes."""
LEAST_LEASE = 1.0
"""The shortest lease on a target, in seconds."""
LOGIN = ("user", "password")
REGISTRY_OPTIONS = frozenset(
    {
        *LOGIN,
        "token",
        "bearer.auth.logical.cluster",
        "bearer.auth.identity.pool.id",
        "ssl.ca.location",
        "ssl.certificate.location",
        "ssl.key.location",
        "ssl.key.password",
    }
)
LOGIN_EXAMPLE = 'Write { user = "calque", password_env = "REGISTRY_PASSWORD" }'
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
OBJECT = re.compile(r"(\w+)(?:\.([\w/-]+))?", re.ASCII)
USER = re.compile(r"[^\s\x00-\x1f\x7f]{1,256}")
PRINCIPAL = re.compile(r"[^\s/@]{1,128}(/[^\s/@]{1,256})?(@[^\s/@]{1,256})?")
TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
ENDPOINT = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):([0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address at which a process listens. Port 0 stands for any free one."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def endpoint(text: str) -> Endpoint:
    """Return the endpoint that `text` names as `host:port`, an IPv6 address in brackets. Raises `Refused` for any other
    text."""
    match = ENDPOINT.fullmatch(text)
    if match is None or int(match[3]) > 65535:
        todo = f'Write "127.0.0.1:{text.lstrip(":")}"' if text.lstrip(":").isdigit() else 'Write e.g. "127.0.0.1:9400"'
        raise Refused(f'"{text}" is no address', "A host, a colon and a port up to 65535 make one", todo)
    return Endpoint(match[1] or match[2], int(match[3]))


def _positive(value: float) -> float:
    if value <= 0:
        raise Refused("it is zero", "It must be longer than that", 'Write "1s"')
    return value


def _lease(value: float) -> float:
    if value < LEAST_LEASE:
        why = "It is renewed after each third of it, and a metastore under load takes that long to answer"
        raise Refused(f"it is shorter than {LEAST_LEASE:.0f} s", why, f'Write "{LEAST_LEASE:.0f}s" or more')
    return value


def _scan(value: object) -> float | None:
    return None if value == "off" else _positive(units.seconds(value))


def _bandwidth(value: object) -> int:
    """Return bytes a second; 0 for no limit."""
    if value == "":
        return 0
    bytes_per_second = units.size(value)
    if not bytes_per_second:
        raise Refused("it is zero", "Nothing could be copied", 'Write e.g. "100MB", or "" for no limit')
    return bytes_per_second


def _scans(scans: object) -> Mapping[str, float | None]:
    """Return the seconds between scans by pattern; None for a pattern that switches scans off."""
    if not isinstance(scans, Mapping):
        raise WrongError(Refused("it must be a table", todo='Write { "sales.*" = "10s" }'))
    intervals: dict[str, float | None] = {}
    for pattern, value in scans.items():
        try:
            intervals[_pattern(pattern)] = _scan(value)
        except Refused as refused:
            raise WrongError(refused, pattern) from None
    return intervals


def require_mode(value: object, modes: Sequence[str]) -> str:
    """Return `value`, one of the words `modes`. Raises `Refused` for every other value."""
    if isinstance(value, str) and value in modes:
        return value
    shown = f'"{value}"' if isinstance(value, str) else str(value).lower()
    words = " or ".join(f'"{mode}"' for mode in modes)
    raise Refused(f"{shown} is neither {' nor '.join(modes)}", nearest(str(value), modes), f"Write {words}")


def _modes(*modes: str, others: bool = False) -> Callable[[object], str | Mapping[str, str]]:
    """Return a check of a key that is one of `modes` for every table, or one for each pattern. With `others` the check
    lets every word pass, because `conflicts` knows which ones there are."""

    def mode_of(value: object) -> str:
        return value if others and isinstance(value, str) else require_mode(value, modes)

    def by_table(value: object) -> str | Mapping[str, str]:
        if isinstance(value, str):
            return mode_of(value)
        if not isinstance(value, Mapping):
            either = ", ".join(f'"{mode}"' for mode in modes)
            todo = f'Write {either}, or by table: {{ "*.*" = "{modes[0]}", "tmp.*" = "{modes[1]}" }}'
            raise WrongError(Refused("it must be a string or a table", todo=todo))
        by_pattern: dict[str, str] = {}
        for pattern, mode in value.items():
            try:
                by_pattern[_pattern(pattern)] = mode_of(mode)
            except Refused as refused:
                raise WrongError(refused, pattern) from None
        return by_pattern

    return by_table


def _retentions(retentions: object) -> Mapping[str, float]:
    """Return seconds by pattern."""
    if not isinstance(retentions, Mapping):
        raise WrongError(Refused("it must be a table", todo='Write { "logs.*" = "7d" }'))
    seconds: dict[str, float] = {}
    for pattern, value in retentions.items():
        try:
            seconds[_pattern(pattern)] = _positive(units.seconds(value))
        except Refused as refused:
            raise WrongError(refused, pattern) from None
    return seconds


def by_patterns(table: Mapping[str, Item]) -> Mapping[str, Item]:
    """Return the table, if all its keys are patterns. Raises `WrongError`."""
    for pattern in table:
        try:
            _pattern(pattern)
        except Refused as refused:
            raise WrongError(refused, pattern) from None
    return table


def _subsets(table: Mapping[str, str]) -> Mapping[str, str]:
    """Return the table, if it has predicates over partition keys by pattern."""
    for pattern, predicate in by_patterns(table).items():
        from calque.core.policy.predicate_parser import parse_predicate

        try:
            parse_predicate(predicate)
        except Refused as refused:
            raise WrongError(refused, pattern) from None
    return table


def _where(text: str) -> str:
    parse_where(text)
    return text


def _compact_size(value: object) -> int:
    size = units.size(value)
    if not SMALLEST <= size <= LARGEST:
        why = "Files are made in memory, and smaller ones are not worth it"
        raise Refused(f'"{value}" is no size of files to make', why, 'Write "1MB" to "1GB"')
    return size


def _start(value: object) -> int | None:
    if value == "bootstrap":
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    shown = f'"{value}"' if isinstance(value, str) else str(value).lower()
    raise Refused(
        f"{shown} is no start", "It is an event id (a number without quotes)", 'Write "bootstrap" or e.g. 812'
    )


def _pattern(text: str) -> str:
    parse_pattern(text)
    return text


def source_name(text: str) -> str:
    """Return the text, if it is a name of a source. Raises `Refused` for any other text."""
    if not NAME.fullmatch(text):
        why = 'Letters, digits, "_", "-" and ".", at most 64, make a name'
        raise Refused(f'"{text}" is no name', why, 'Write e.g. "hq"')
    return text


def _optional_source_name(text: str) -> str:
    return source_name(text) if text else text


def _user(text: str) -> str:
    if text and not USER.fullmatch(text):
        why = "A name has no blanks, and at most 256 characters"
        raise Refused(f"{text!r} is no user", why, 'Write e.g. "calque", or "" for the operating system\'s user')
    return text


def _principal(text: str) -> str:
    if text and not PRINCIPAL.fullmatch(text):
        why = "It has one or two parts, and may have a realm"
        raise Refused(f"{text!r} is no principal", why, 'Write e.g. "calque@EXAMPLE.COM", or "hive/_HOST@EXAMPLE.COM"')
    return text


def _optional_endpoint(text: object) -> Endpoint | None:
    """Return the endpoint that the text names; None for an empty text."""
    if not isinstance(text, str):
        raise Refused("it has the wrong type", "It is text in quotes", 'Write e.g. "127.0.0.1:9400", or "" for none')
    return endpoint(text) if text else None


def _topic(text: str) -> str:
    if text and not TOPIC.fullmatch(text):
        raise Refused(f'"{text}" is no topic', 'Letters, digits, ".", "_" and "-" make one', 'Write e.g. "hq.events"')
    return text


def _brokers(text: str) -> str:
    return places.brokers(text) if text else ""


def _registry(text: str) -> str:
    return places.registries(text) if text else ""


def _registry_options(options: Options) -> Options:
    for key in options:
        if key not in REGISTRY_OPTIONS:
            raise WrongError(Refused(f'"{key}" is no option of a registry', nearest(key, REGISTRY_OPTIONS)), key)
    login = [key for key in LOGIN if key in options]
    if len(login) == 1:
        raise WrongError(Refused("a user or a password is missing", "A registry takes both or none", LOGIN_EXAMPLE))
    if login and "token" in options:
        raise WrongError(Refused("a user and a token are given", "A registry takes one of them", "Remove one"), "token")
    if "ssl.certificate.location" not in options and options.keys() & {"ssl.key.location", "ssl.key.password"}:
        why = "The key belongs to a client's certificate"
        raise WrongError(Refused('"ssl.certificate.location" is missing', why, "Name the certificate, too"))
    return options


def _location(text: str, info: ValidationInfo) -> str:
    return with_pydantic_errors(lambda value: places.location(value, base_folder(info)))(text)


def _optional_location(text: str, info: ValidationInfo) -> str:
    return _location(text, info) if text else ""


def _folder(text: str, info: ValidationInfo) -> str:
    return with_pydantic_errors(lambda value: places.folder(value, base_folder(info)))(text)


def _optional_file(text: str, info: ValidationInfo) -> str:
    """Return the absolute path; empty for an empty text. A relative path is relative to the configuration's folder."""
    return places.absolute(base_folder(info) / text) if text else ""


def _keytab(text: str, info: ValidationInfo) -> str:
    """Return the absolute path of a keytab, as `_optional_file` does, if the file can be read."""
    path = _optional_file(text, info)
    try:
        if path:
            Path(path).open("rb").close()
    except OSError as error:
        todo = "Export one there, readable by calque's user alone"
        raise WrongError(Refused(f"the keytab {path} can't be read", error.strerror or str(error), todo)) from None
    return path


def _renames(renames: Mapping[str, str]) -> Mapping[str, str]:
    """Return the renames in lower case, if each leads from database to database or from table to table, and none has a
    source or a target in common with another."""
    sources: dict[str, str] = {}
    by_target: dict[str, str] = {}
    for old, new in renames.items():
        _rename(old, new)
        source, target = old.lower(), new.lower()
        if source in sources:
            raise WrongError(Refused(f'"{source}" is renamed twice', "Case does not count in names", "Remove one"), old)
        if target in by_target:
            what = f'"{by_target[target]}" and "{old}" are both renamed to "{new}"'
            raise WrongError(Refused(what, "Two objects can't have one name", "Give one of them another name"), old)
        sources[source], by_target[target] = target, old
    return sources


def _rename(old: str, new: str) -> None:
    parts = [OBJECT.fullmatch(text) for text in (old, new)]
    for text, part in zip((old, new), parts, strict=True):
        if part is None:
            why = "A rename goes from a database to a database, or from database.table to database.table"
            todo = "Name one object without wildcards" if re.search(r"[*?\[]", text) else "Write e.g. sales or hr.staff"
            raise WrongError(Refused(f'"{text}" is no name', why, todo), old)
        if any(name and name.lower().startswith(OURS) for name in part.groups()):
            why = f"Names that begin with {OURS} are calque's own and never replicated"
            raise WrongError(Refused(f'"{text}" can\'t be renamed or taken as a name', why, "Use another name"), old)
    if parts[0] and parts[1] and bool(parts[0][2]) != bool(parts[1][2]):
        kinds = "a table to a database" if parts[0][2] else "a database to a table"
        todo = f'Write "{new}.{parts[0][2]}"' if parts[0][2] else f'Write "{parts[1][1]}"'
        raise WrongError(Refused(f'"{old}" = "{new}" renames {kinds}', "Both must be of one kind", todo), old)


def _properties(properties: Mapping[str, str]) -> Mapping[str, str]:
    for key in properties:
        if not key or key.lower().startswith("calque."):
            why = "Parameters that begin with calque. are marks that calque needs" if key else "It is empty"
            raise WrongError(Refused(f'"{key}" can\'t be set', why, "Remove it"), key)
    return dict(properties)


def _prefixes(prefixes: Mapping[str, str], info: ValidationInfo) -> Mapping[str, str]:
    """Return the prefixes at the source and at the target, both as URIs without a closing slash."""
    targets_by_source: dict[str, str] = {}
    for old, new in prefixes.items():
        try:
            if not (old.startswith("/") or places.SCHEME.match(old)):
                raise Refused(f'"{old}" is not absolute', "It is a place at the source", "Write the whole path or URI")
            source = places.location(old, base_folder(info))
            if source in targets_by_source:
                raise Refused(f'"{old}" stands twice', "A closing slash does not count", "Remove one")
            targets_by_source[source] = places.location(new, base_folder(info))
        except Refused as refused:
            raise WrongError(refused, old) from None
    return targets_by_source


def _options(options: object, info: ValidationInfo) -> Options:
    return secret_options(options, base_folder(info))


def _broker_options(options: Options, info: ValidationInfo) -> Options:
    """Return the options, if the client of Kafka's brokers takes them. The check is a plugin's, in the context of the
    validation; without one any option is taken."""
    refusal = (info.context or {}).get("broker_options", lambda _options: None)(options)
    if refusal is not None:
        key, refused = refusal
        raise WrongError(refused, key)
    return options


def _positive_size(value: int) -> int:
    if value < 1:
        raise Refused(f"{value} bytes are too few", "Nothing would be taken", 'Write e.g. "16MiB"')
    return value


def _message_size(value: int) -> int:
    if value > LONGEST_MESSAGE:
        raise Refused(f"{value} bytes are too many", "No metastore sends a longer message than 1GiB", 'Write "1GiB"')
    return value


Name = Annotated[str, AfterValidator(with_pydantic_errors(source_name))]
OptionalName = Annotated[str, AfterValidator(with_pydantic_errors(_optional_source_name))]
Principal = Annotated[str, AfterValidator(with_pydantic_errors(_principal))]
User = Annotated[str, AfterValidator(with_pydantic_errors(_user))]
Duration = Annotated[float, BeforeValidator(with_pydantic_errors(units.seconds))]
LeaseDuration = Annotated[Duration, AfterValidator(with_pydantic_errors(_lease))]
PositiveDuration = Annotated[Duration, AfterValidator(with_pydantic_errors(_positive))]
Scan = Annotated[float | None, BeforeValidator(with_pydantic_errors(_scan))]
Scans = Annotated[Mapping[str, float | None], BeforeValidator(_scans)]
Data = Annotated[str | Mapping[str, str], BeforeValidator(with_pydantic_errors(_modes("copy", "none")))]
TableFormat = Annotated[
    str | Mapping[str, str], BeforeValidator(with_pydantic_errors(_modes("plain", "delta", others=True)))
]
Acid = Annotated[
    str | Mapping[str, str],
    BeforeValidator(with_pydantic_errors(_modes("skip", "auto", "external", "native", "delta"))),
]
Retentions = Annotated[Mapping[str, float], BeforeValidator(_retentions)]
Subsets = Annotated[Mapping[str, str], AfterValidator(_subsets)]
Where = Annotated[str, AfterValidator(with_pydantic_errors(_where))]
Start = Annotated[int | None, BeforeValidator(with_pydantic_errors(_start))]
Bandwidth = Annotated[int, BeforeValidator(with_pydantic_errors(_bandwidth))]
Share = Annotated[float, BeforeValidator(with_pydantic_errors(units.share))]
CompactSize = Annotated[int, BeforeValidator(with_pydantic_errors(_compact_size))]
Size = Annotated[int, BeforeValidator(with_pydantic_errors(units.size))]
PositiveSize = Annotated[Size, AfterValidator(with_pydantic_errors(_positive_size))]
MessageSize = Annotated[PositiveSize, AfterValidator(with_pydantic_errors(_message_size))]
Metastores = Annotated[tuple[str, ...], BeforeValidator(with_pydantic_errors(places.metastores))]
OptionalEndpoint = Annotated[Endpoint | None, BeforeValidator(with_pydantic_errors(_optional_endpoint))]
Brokers = Annotated[str, AfterValidator(with_pydantic_errors(_brokers))]
Registry = Annotated[str, AfterValidator(with_pydantic_errors(_registry))]
Topic = Annotated[str, AfterValidator(with_pydantic_errors(_topic))]
Location = Annotated[str, AfterValidator(_location)]
OptionalLocation = Annotated[str, AfterValidator(_optional_location)]
Keytab = Annotated[str, AfterValidator(_keytab)]
OptionalFile = Annotated[str, AfterValidator(_optional_file)]
Folder = Annotated[str, AfterValidator(_folder)]
Patterns = Annotated[tuple[Annotated[str, AfterValidator(with_pydantic_errors(_pattern))], ...], Strict(False)]
Renames = Annotated[Mapping[str, str], AfterValidator(_renames)]
Prefixes = Annotated[Mapping[str, str], AfterValidator(_prefixes)]
Properties = Annotated[Mapping[str, str], AfterValidator(_properties)]
OptionTable = Annotated[Options, BeforeValidator(_options)]
KafkaOptions = Annotated[OptionTable, AfterValidator(_broker_options)]
RegistryOptions = Annotated[OptionTable, AfterValidator(_registry_options)]
