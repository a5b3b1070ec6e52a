"""The client `iceberg` of remote tables: a catalog over REST or in a SQL database, or one table by its path.

The version of a table is the path of its current metadata file, because every change of a table writes a new such file.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, TypeAlias, TypeVar
from urllib.parse import urlsplit

from calque.errors import AccessRefused, CalqueError, Refused, Unavailable
from calque.model.hive import Database, Partition, Table
from calque.model.names import TableName
from calque.plugins.remotes.adapters.catalogs.iceberg_definitions import table_of
from calque.plugins.remotes.adapters.catalogs.near import require_far
from calque.plugins.remotes.core.definitions import CREDENTIALS, last_word
from calque.plugins.remotes.model import ClientForm
from calque.plugins.remotes.ports import RemoteAccess, RemoteCatalog

KIND, URI, WAREHOUSE, PATH = (
    "iceberg.catalog.type",
    "iceberg.catalog.uri",
    "iceberg.catalog.warehouse",
    "iceberg.table.path",
)
CATALOG = "iceberg.catalog.name"
"""The setting that names the catalog in a SQL database, which may have several."""
FORM = ClientForm(
    "iceberg",
    frozenset({"IcebergTableHiveClientFactory"}),
    frozenset({KIND, CATALOG, URI, WAREHOUSE, PATH, CREDENTIALS}),
    frozenset(),
    URI,
    key_files=frozenset({PATH}),
    path=PATH,
    schemes=frozenset({"http", "https"}),
)
REST, SQL = "rest", "sql"
ONE = "default"
"""The database of a table that is named by its path."""
LIBRARIES = frozenset({"aiohttp", "botocore", "fsspec", "pyiceberg", "requests", "sqlalchemy", "urllib3"})
"""Packages whose own errors mean that a catalog, or a storage, does not answer. `ValueError` and `ImportError` mean
invalid settings, or a missing package. Every other error is a defect."""
Identifier: TypeAlias = tuple[str, ...]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class IcebergClient:
    """The client of Iceberg's catalogs, as `plugins.remotes.ports.RemoteClient`."""

    @property
    def form(self) -> ClientForm:
        return FORM

    def require(self, settings: Mapping[str, str]) -> None:
        uri, path = settings.get(URI, ""), settings.get(PATH, "")
        if bool(uri) == bool(path):
            what = f"'{URI}' and '{PATH}' exclude each other" if uri else f"'{URI}' or '{PATH}' is missing"
            raise Refused(what, "The one names a catalog, the other a single table", "Write one of them")
        if uri and kind_of(settings) is None:
            todo = f"Write '{KIND}' = 'rest' or 'sql', with an address such as https://… or sqlite:///…"
            raise Refused(f"'{URI}' = '{uri}' is no catalog that calque knows", "It is rest or sql", todo)

    def connect(self, settings: Mapping[str, str], access: RemoteAccess) -> RemoteCatalog:
        if settings.get(PATH):
            return TableAtPath(settings[PATH].rstrip("/"))
        return IcebergCatalog(settings, access)


ICEBERG = IcebergClient()


def kind_of(settings: Mapping[str, str]) -> str | None:
    """Return `rest` or `sql`, the kind of the catalog at the settings' address. Return None where the address is of
    neither kind, or the settings name another kind."""
    scheme = urlsplit(settings[URI]).scheme
    known = REST if scheme in ("http", "https") else SQL if scheme else None
    kind = settings.get(KIND, known)
    return kind if kind == known else None


@dataclass(slots=True)
class IcebergCatalog:
    """A catalog that pyiceberg reaches, as `plugins.remotes.ports.RemoteCatalog`. Namespaces of one level are
    databases, all others are left out. Names may differ by case alone in such a catalog, but never in Hive. A
    lower-case name stands for the equal name of the catalog, else for the one that differs from it by case, if there is
    only one such name."""

    settings: Mapping[str, str]
    access: RemoteAccess
    _catalog: Any = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def identity(self) -> str:
        return ""

    def databases(self) -> Sequence[str]:
        return sorted(self._namespaces())

    def database(self, name: str) -> Database | None:
        namespace = self._namespaces().get(name)
        properties = self._found(lambda catalog: catalog.load_namespace_properties(namespace)) if namespace else None
        if properties is None:
            return None
        return Database(name, properties.get("comment"), properties.get("location"), dict(properties))

    def versions(self, database: str) -> Mapping[str, str]:
        tables = {name: self._loaded(identifier) for name, identifier in self._tables(database).items()}
        return {name: table.metadata_location for name, table in tables.items() if table is not None}

    def table(self, name: TableName) -> Table | None:
        table = self._loaded(tuple(name))
        if table is None and (identifier := self._tables(name.database).get(name.table)) is not None:
            table = self._loaded(identifier)
        return None if table is None else table_of(name, table.metadata, table.metadata_location)

    def partitions(self, table: Table) -> Mapping[str, Partition]:  # noqa: ARG002
        return {}

    def close(self) -> None:
        with self._lock:
            if self._catalog is not None:
                self._catalog.close()
                self._catalog = None

    def _namespaces(self) -> Mapping[str, Identifier]:
        """Return the namespaces of one level by their names in Hive, each spelled as in the catalog."""
        return by_hive_name(one for one in self._asked(lambda catalog: catalog.list_namespaces()) if len(one) == 1)

    def _tables(self, database: str) -> Mapping[str, Identifier]:
        """Return the identifiers of the database's tables by their names in Hive, each spelled as in the catalog."""
        namespace = self._namespaces().get(database)
        return by_hive_name(self._found(lambda catalog: catalog.list_tables(namespace)) or () if namespace else ())

    def _loaded(self, name: Identifier) -> Any:
        return self._found(lambda catalog: catalog.load_table(name))

    def _found(self, ask: Callable[[Any], T]) -> T | None:
        """Return the answer of `ask`, or None where the namespace, table or view is missing."""
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError, NoSuchViewError

        try:
            return self._asked(ask, NoSuchNamespaceError, NoSuchTableError, NoSuchViewError)
        except (NoSuchNamespaceError, NoSuchTableError, NoSuchViewError):
            return None

    def _asked(self, ask: Callable[[Any], T], *expected: type[Exception]) -> T:
        with own_errors(self.settings[URI], *expected):
            return ask(self._connected())

    def _connected(self) -> Any:
        with self._lock:
            if self._catalog is None:
                self._catalog = self._opened()
            return self._catalog

    def _opened(self) -> Any:
        catalogs = pyiceberg_catalogs()
        uri, access = self.settings[URI], self.access
        if access.far_only:
            require_far(uri)
        login = {}
        if access.token is not None:
            login["token"] = access.token.read()
        if access.password is not None:
            login["credential"] = f"{access.user}:{access.password.read()}"
            login["oauth2-server-uri"] = f"{uri.rstrip('/')}/v1/oauth/tokens"
        place = {"warehouse": self.settings[WAREHOUSE]} if self.settings.get(WAREHOUSE) else {}
        name = self.settings.get(CATALOG, ONE)
        if kind_of(self.settings) == SQL:
            return catalogs.OwnFilesSqlCatalog(name, uri=uri, **place, **login)
        return catalogs.FarRestCatalog(name, far_only=access.far_only, uri=uri, **place, **login)


def by_hive_name(identifiers: Iterable[Identifier]) -> Mapping[str, Identifier]:
    """Return the identifiers by the lower-case form of their last words. Of several identifiers that differ by case
    alone the one in lower case is returned. Where none of these is in lower case, all are left out."""
    found: dict[str, list[Identifier]] = {}
    for identifier in identifiers:
        found.setdefault(identifier[-1].lower(), []).append(identifier)
    exact = {name: [one for one in ones if one[-1] == name] or ones for name, ones in found.items()}
    return {name: ones[0] for name, ones in exact.items() if len(ones) == 1}


@dataclass(frozen=True, slots=True)
class TableAtPath:
    """A catalog with one table, which lies at `path`. Its current metadata file is the one that `version-hint.text`
    names, else the newest."""

    path: str

    def identity(self) -> str:
        return ""

    def databases(self) -> Sequence[str]:
        return (ONE,)

    def database(self, name: str) -> Database | None:
        return Database(name, parameters={}) if name == ONE else None

    def versions(self, database: str) -> Mapping[str, str]:
        if database != ONE:
            return {}
        location = self._newest()
        return {last_word(self.path): location} if location is not None else {}

    def table(self, name: TableName) -> Table | None:
        if name != TableName(ONE, last_word(self.path)):
            return None
        location = self._newest()
        if location is None:
            return None
        catalogs = pyiceberg_catalogs()
        with own_errors(self.path):
            return table_of(name, catalogs.metadata_at(location), location)

    def partitions(self, table: Table) -> Mapping[str, Partition]:  # noqa: ARG002
        return {}

    def close(self) -> None:
        """Do nothing, because nothing is held open."""

    def _newest(self) -> str | None:
        """Return the path of the current metadata file, or None where there is no table."""
        from fsspec.core import url_to_fs

        with own_errors(self.path):
            files, folder = url_to_fs(f"{self.path}/metadata")
            files.invalidate_cache()
            try:
                names = {str(path).rpartition("/")[2] for path in files.ls(folder, detail=False)}
            except FileNotFoundError:
                return None
            named = [name for name in names if name.endswith(".metadata.json")]
            if "version-hint.text" in names:
                hint = files.cat_file(f"{folder}/version-hint.text").decode().strip()
                named = [name for name in named if name in (f"v{hint}.metadata.json", f"{hint}.metadata.json", hint)]
        newest = max(named, key=number_of, default=None)
        return f"{self.path}/metadata/{newest}" if newest is not None else None


def number_of(name: str) -> tuple[int, str]:
    """Return the number in the name of a metadata file (`v3.metadata.json`, or `00003-….metadata.json`) and the name,
    by which such files are ordered. The number is -1 where the name has none."""
    digits = name.removeprefix("v").partition("-")[0].partition(".")[0]
    return (int(digits) if digits.isdecimal() else -1), name


def pyiceberg_catalogs() -> ModuleType:
    """Return the module `iceberg_catalogs`. Raises `Refused` where pyiceberg is not installed."""
    try:
        from calque.plugins.remotes.adapters.catalogs import iceberg_catalogs
    except ImportError as error:
        why = f"It is read with pyiceberg: {error}"
        raise Refused(
            "Iceberg's catalogs can't be read", why, "Say pip install 'calque-replicator[iceberg]'"
        ) from error
    return iceberg_catalogs


@contextmanager
def own_errors(where: str, *expected: type[Exception]) -> Iterator[None]:
    """Turn the errors of libraries that the block raises into errors of calque. Errors of the types `expected` and
    defects pass as they are."""
    try:
        yield
    except Exception as error:
        library = type(error).__module__.partition(".")[0]
        is_setting = isinstance(error, (ValueError, ImportError))
        is_known = is_setting or isinstance(error, OSError) or library in LIBRARIES
        if isinstance(error, (CalqueError, *expected)) or not is_known:
            raise
        kind, words = type(error).__name__, " ".join(str(error).split())
        if kind in ("UnauthorizedError", "ForbiddenError", "AuthorizationExpiredError", "OAuthError"):
            todo = f"Name [remotes.credentials.NAME] by '{CREDENTIALS}', with a token, or user and password"
            raise AccessRefused(f"{where} refuses calque", words, todo) from error
        if is_setting:
            raise Refused(f"{where} can't be read", words, "Check the link's settings, and what is there") from error
        raise Unavailable(f"{where} can't be read", f"{kind}: {words}", "It is tried again") from error
