"""The sections of the configuration, and what each of their keys takes. The models are frozen; durations are seconds,
and places absolute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, model_validator

from calque.config.checks import (
    Acid,
    Bandwidth,
    Brokers,
    CompactSize,
    Data,
    Duration,
    Folder,
    KafkaOptions,
    Keytab,
    LeaseDuration,
    Location,
    MessageSize,
    Metastores,
    Name,
    OptionalFile,
    OptionalLocation,
    OptionTable,
    Patterns,
    PositiveDuration,
    PositiveSize,
    Prefixes,
    Principal,
    Properties,
    Registry,
    RegistryOptions,
    Renames,
    Scan,
    Scans,
    Share,
    Size,
    Start,
    Subsets,
    TableFormat,
    Topic,
    User,
    Where,
    by_patterns,
)
from calque.config.login_misfits import misfits
from calque.config.pydantic_errors import WrongError, with_pydantic_errors
from calque.config.secret_keys import SecretFile, SecretVariable, one_secret
from calque.core.policy.patterns import matches, parse_pattern
from calque.errors import Refused
from calque.model.access import HIVE_SERVICE, KerberosLogin, Login, MetastoreAccess, NoLogin, PasswordLogin, TokenLogin
from calque.model.bounds import MESSAGE, RESOURCE, SCHEMA, Bounds
from calque.model.files import CopyProof
from calque.model.names import TableName
from calque.model.policy import SmallFilesRule
from calque.model.secrets import Secret
from calque.model.tls import Tls


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class TlsSection(Section):
    """The keys for TLS to a metastore. Any key in the section asks for TLS."""

    ca: OptionalFile = ""
    certificate: OptionalFile = ""
    key: OptionalFile = ""
    verify: bool = True

    @model_validator(mode="after")
    def _is_usable(self) -> TlsSection:
        if bool(self.certificate) != bool(self.key):
            given, missing = ("certificate", "key") if self.certificate else ("key", "certificate")
            todo = f"Write {missing} beside it, or remove it"
            raise WrongError(Refused(f"{missing} is missing", f"{given} is of no use alone", todo), given)
        if self.ca and not self.verify:
            raise WrongError(
                Refused("verify is false", "It is of no use to name a ca then", "Remove one of them"), "verify"
            )
        if self.ca or self.certificate:
            with_pydantic_errors(Tls.context)(self.tls())
        return self

    def tls(self) -> Tls:
        return Tls(self.ca, self.certificate, self.key, self.verify)


class MetastoreSection(Section):
    """The keys that every section has that names a metastore."""

    metastore: Metastores
    user: User = ""
    auth: Literal["none", "plain", "kerberos"] = "none"
    password_env: SecretVariable = None
    password_file: SecretFile = None
    token_env: SecretVariable = None
    token_file: SecretFile = None
    principal: Principal = ""
    keytab: Keytab = ""
    service_principal: Principal = ""
    tls: TlsSection = Field(default_factory=dict, validate_default=True)

    @model_validator(mode="after")
    def _login_fits(self) -> MetastoreSection:
        for key, refused in misfits(self):
            raise WrongError(refused, key)
        return self

    def password(self) -> Secret | None:
        return one_secret("password", self.password_env, self.password_file)

    def token(self) -> Secret | None:
        return one_secret("token", self.token_env, self.token_file)

    def access(self) -> MetastoreAccess:
        """Return the user and the login with which the metastore is called, and TLS where the section asks for it."""
        return MetastoreAccess(self.user, self._login(), self.tls.tls() if self.tls.model_fields_set else None)

    def _login(self) -> Login:
        if self.auth == "kerberos":
            return KerberosLogin(self.principal, self.keytab, self.service_principal or HIVE_SERVICE)
        if password := self.password():
            return PasswordLogin(password)
        return TokenLogin(token) if (token := self.token()) else NoLogin()


class Source(MetastoreSection):
    name: Name
    poll: PositiveDuration = 0.25
    early: bool = True
    connections: Annotated[int, Field(ge=1, le=256)] = 4
    pin: Literal["auto", "none", "hardlink", "copy"] = "auto"
    pins: OptionalLocation = ""
    pin_bytes: Size = 10 * 10**9
    pin_age: PositiveDuration = 86400.0
    scan: Scan = None
    scans: Scans = {}
    gap: Literal["when_needed", "stop"] = "when_needed"
    allow_weak_log: bool = False
    roots: Annotated[tuple[Location, ...], Strict(False)] = ()
    max_message: MessageSize = MESSAGE
    max_schema: PositiveSize = SCHEMA
    max_resource: PositiveSize = RESOURCE
    storage: OptionTable = {}

    def bounds(self) -> Bounds:
        """Return the most bytes that are taken of one message, schema or resource of the source."""
        return Bounds(self.max_message, self.max_schema, self.max_resource)

    def scans_some(self) -> bool:
        """Tell whether any table of the source may be scanned."""
        return self.scan is not None or any(interval is not None for interval in self.scans.values())

    def intervals(self) -> Callable[[TableName], float | None]:
        """Return a function from a table's name to the seconds between two scans of it; it returns None for a table
        that is not scanned. Of the patterns that match, the longest decides."""
        rules = [(parse_pattern(text), self.scans[text]) for text in sorted(self.scans, key=len, reverse=True)]

        def interval(name: TableName) -> float | None:
            return next((seconds for pattern, seconds in rules if matches(pattern, name)), self.scan)

        return interval


class State(Section):
    path: Folder = Field(default="state", validate_default=True)
    checkpoints: Folder = Field(default="checkpoints", validate_default=True)
    tables: OptionalLocation = ""
    storage: OptionTable = {}
    history: Duration = 0.0

    def table_folder(self) -> str:
        """Return the folder of journals, evidence and ledgers, as a path or URI."""
        return self.tables or self.path


class Journal(Section):
    """The keys of the journal. In a file with `format = "delta"` the keys `brokers`, `topic` and `options` name the
    topic that `calque journal move` copies from."""

    format: Literal["delta", "kafka"] = "delta"
    retention: PositiveDuration = 7 * 86400.0
    brokers: Brokers = ""
    topic: Topic = ""
    options: KafkaOptions = {}
    registry: Registry = ""
    registry_options: RegistryOptions = {}

    @model_validator(mode="after")
    def _kafka_has_brokers(self) -> Journal:
        if self.format == "kafka" and not self.brokers:
            todo = 'Write brokers = "host:9092" below [journal]'
            raise WrongError(Refused("brokers is missing", 'format = "kafka" needs it', todo), "format")
        if self.registry_options and not self.registry:
            todo = 'Write registry = "http://host:8081" below [journal]'
            raise WrongError(Refused("registry is missing", "registry_options are for it", todo), "registry_options")
        return self


class Window(Section):
    max_events: Annotated[int, Field(ge=1)] = 100_000
    max_delay: Duration = 1.0


class Log(Section):
    format: Literal["text", "json"] = "text"
    level: Literal["debug", "info", "warning", "error"] = "info"


class Compact(Section):
    """The rule by which small files of a new partition are combined: from so many `files` smaller than `below` bytes
    on."""

    files: Annotated[int, Field(ge=2)] = 100
    below: CompactSize = 128 * 10**6

    def rule(self) -> SmallFilesRule:
        return SmallFilesRule(self.files, self.below)


class Target(MetastoreSection):
    warehouse: Location
    include: Patterns = ("*.*",)
    exclude: Patterns = ()
    rename: Renames = {}
    start: Start = None
    consistency: Literal["table", "database"] = "table"
    atomicity: Literal["listing", "rows"] = "listing"
    appends: Literal["in_place", "new_directory"] = "in_place"
    data: Data = "copy"
    format: TableFormat = "plain"
    acid: Acid = "skip"
    transactions: Literal["together", "apart"] = "together"
    drops: Literal["follow", "keep"] = "follow"
    grace: Duration = 3600.0
    max_drop: Share = 0.1
    lease: LeaseDuration = 30.0
    bandwidth: Bandwidth = 0
    parallel_copies: Annotated[int, Field(ge=0)] = 0
    verify_copies: CopyProof = "auto"
    external_base: OptionalLocation = ""
    locations: Prefixes = {}
    partitions: Subsets = {}
    where: Where = ""
    strict_locations: bool = False
    properties: Properties = {}
    permissions: Literal["target", "keep"] = "target"
    grants: Literal["ignore", "follow"] = "ignore"
    compact: Annotated[Mapping[str, Compact], AfterValidator(by_patterns)] = {}
    storage: OptionTable = {}

    def small_files(self) -> Mapping[str, SmallFilesRule]:
        return {pattern: compact.rule() for pattern, compact in self.compact.items()}
