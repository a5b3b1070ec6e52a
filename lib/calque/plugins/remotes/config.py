"""The keys of `[remotes]`: the local metastore whose links are followed, the addresses that engines may link to, and
logins."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field, Strict

from calque.config.checks import (
    Keytab,
    LeaseDuration,
    OptionalFile,
    OptionalLocation,
    OptionTable,
    PositiveDuration,
    Principal,
    User,
)
from calque.config.keys import Journal, MetastoreSection, Section, Source, Target, TlsSection
from calque.config.login_misfits import misfits
from calque.config.places import metastores
from calque.config.pydantic_errors import WrongError, with_pydantic_errors
from calque.config.secret_keys import SecretFile, SecretVariable, one_secret
from calque.config.sections import KeyPath, SectionKind
from calque.errors import Refused
from calque.plugins.remotes.core.permission import require_pattern
from calque.plugins.remotes.model import LentLogin
from calque.plugins.remotes.ports import RemoteAccess

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")


Pattern = Annotated[str, AfterValidator(with_pydantic_errors(require_pattern))]


class Credentials(Section):
    """The login to remote catalogs for the links that name this section. `endpoints` are the addresses at which links
    may use it whose addresses only an engine's parameters name."""

    endpoints: Annotated[tuple[Pattern, ...], Strict(False)] = ()
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
    private_keys: Annotated[tuple[OptionalFile, ...], Strict(False)] = ()
    known_hosts: OptionalFile = ""
    passphrase_env: SecretVariable = None
    passphrase_file: SecretFile = None

    def lent(self) -> LentLogin:
        secrets = (self.password_env, self.password_file, self.token_env, self.token_file)
        is_sent = any(secret is not None for secret in secrets)
        return LentLogin(self.endpoints, is_sent, bool(self.tls.model_fields_set))


LOGIN = tuple(key for key in MetastoreSection.model_fields if key != "metastore")
"""The keys of the login to a metastore."""


def _named(credentials: Mapping[str, Credentials]) -> Mapping[str, Credentials]:
    for name, section in credentials.items():
        if not NAME.fullmatch(name):
            why = 'Letters, digits, "_" and "-", at most 64, make a name'
            raise WrongError(Refused(f'"{name}" is no name', why, "Write e.g. [remotes.credentials.far]"), name)
        one_secret("password", section.password_env, section.password_file)
        one_secret("token", section.token_env, section.token_file)
        one_secret("passphrase", section.passphrase_env, section.passphrase_file)
    return credentials


class Remotes(MetastoreSection):
    """`metastore` is the local one. `interval` is how often a catalog without a log is looked at."""

    warehouse: OptionalLocation = ""
    allow: Annotated[tuple[Pattern, ...], Strict(False)] = ()
    interval: PositiveDuration = 10.0
    lease: LeaseDuration = 30.0
    storage: OptionTable = {}  # noqa: RUF012 - pydantic copies it
    credentials: Annotated[Mapping[str, Credentials], AfterValidator(_named)] = {}

    def lent(self) -> Mapping[str, LentLogin]:
        """Return the login that each section of credentials lends, by the section's name."""
        return {name: section.lent() for name, section in self.credentials.items()}


NOBODY = Credentials()


def remote_source(name: str, uris: str, credentials: Credentials) -> Source:
    """Return the section `[source]` that a remote metastore at the addresses `uris` would have. `uris` is empty for a
    catalog that is no metastore. Files of the source are never kept, and its log is taken as it is, because the user of
    a link can't configure the remote metastore. Raises `Refused` for a login that does not fit."""
    source = Source.model_construct(
        name=name,
        metastore=metastores(uris) if uris else (),
        pin="none",
        allow_weak_log=True,
        **{key: getattr(credentials, key) for key in LOGIN},
    )
    if uris:
        for _, refused in misfits(source):
            raise refused
    return source


def remote_access(credentials: Credentials, *, far_only: bool) -> RemoteAccess:
    """Return the login for a remote catalog that is no metastore."""
    return RemoteAccess(
        credentials.user,
        one_secret("password", credentials.password_env, credentials.password_file),
        one_secret("token", credentials.token_env, credentials.token_file),
        credentials.tls.tls() if credentials.tls.model_fields_set else None,
        far_only,
    )


def projection(
    remotes: Remotes,
    warehouse: str,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    rename: Mapping[str, str],
    data: Mapping[str, str],
) -> Target:
    """Return the section of `[targets]` that the local metastore would have as the target of links. Files are copied
    only for the tables in `data`."""
    login = {key: getattr(remotes, key) for key in (*LOGIN, "metastore", "lease", "storage")}
    return Target.model_construct(
        warehouse=warehouse,
        include=include,
        exclude=exclude,
        rename=rename,
        data={"*.*": "none", **data} if data else "none",
        max_drop=1.0,
        **login,
    )


def journal() -> Journal:
    """Return the section of the journal of a remote catalog."""
    return Journal()


def sections_in(remotes: Remotes | None) -> Iterator[BaseModel]:
    if remotes is not None:
        yield from (remotes, *remotes.credentials.values())


def model_at(path: KeyPath) -> type[Credentials] | type[Remotes]:
    return Credentials if len(path) > 1 else Remotes


def fixed(remotes: Remotes | None) -> Mapping[str, object]:
    return {"[remotes] metastore": remotes.metastore if remotes is not None else None}


def no_remotes() -> Remotes | None:
    return None


TEMPLATE = """\
# Links to tables of other catalogs: CREATE REMOTE TABLE in `calque sql`; no section, no links. A file may have this
# section without [source] and [targets.NAME].
# [remotes]
# metastore = "thrift://127.0.0.1:9084"     # the local one, with keys as in a target: user, auth, tls …
# warehouse = ""                            # where calque's own hidden database lies; "" for that of `default`
# allow = ["thrift://hms-*.corp:9083"]      # what links may lead to that engines make; statements may name any
# interval = "10s"                          # how often a catalog without a log is looked at
# lease = "30s"                             # as in a target
# storage = {}                              # for files of the local catalog
# [remotes.credentials.far]                 # for links with 'calque.remote.credentials' = 'far'
# endpoints = ["thrift://hms-*.corp:9083"]  # where links of engines may use it; links of statements may anywhere
# user = "calque"                           # and auth, password_env, token_env, principal, keytab, tls …
"""
REMOTES = SectionKind(
    name="remotes",
    annotation=Remotes,
    default=no_remotes,
    models={"remotes": Remotes},
    model_at=model_at,
    brings_sources=True,
    models_in=sections_in,
    fixed=fixed,
    template=TEMPLATE,
)
