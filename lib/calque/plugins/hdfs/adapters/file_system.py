"""The file system HDFS by the client hdfs-native: files, listings, renames and times of one NameNode or name
service."""

from __future__ import annotations

import errno
import os
from asyncio import run_coroutine_threadsafe, wait_for
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from fsspec.asyn import get_loop

from calque.adapters.files.system import FileFacts, entry
from calque.core.formats.deltalog import LOG
from calque.core.formats.layout import is_data
from calque.errors import Refused
from calque.model.files import File
from calque.model.permissions import Permissions
from calque.plugins.hdfs.adapters import permissions as hdfs_permissions
from calque.plugins.hdfs.adapters.clients import Clients
from calque.plugins.hdfs.adapters.errors import as_os_errors
from calque.plugins.hdfs.adapters.hadoop_configuration import name_nodes, settings_of, web_addresses
from calque.plugins.hdfs.adapters.webhdfs import WebHdfs
from calque.ports import StorageEntry

if TYPE_CHECKING:
    from fsspec.spec import AbstractFileSystem
    from hdfs_native import AsyncClient, FileStatus

CHUNK = 4 << 20
SILENT_SECONDS = 10.0
"""Seconds without an answer to a call that needs no time, after which the NameNode or a DataNode counts as silent."""
THREADS = 16
PAGE = 1000
"""The entries of a directory that are waited for together: as many as come in one answer."""
REMOVING_SECONDS = 50.0
"""Seconds that the removal of a directory may take beyond the time of any other call (`SILENT_SECONDS`), because the
NameNode goes through all that lies below."""
CLOSING_SECONDS = 10.0
"""Seconds that the end of a file may take beyond the time of any other call (`SILENT_SECONDS`), because the DataNodes
report its last block to the NameNode."""
SLOWEST = 1e6
"""Bytes a second that a DataNode moves at least."""
UNCHANGED = (1 << 64) - 1
"""The access time that leaves a file's access time as it is."""
FAR_MS = 32_503_680_000_000
"""The year 3000, in milliseconds since the epoch. The access time of a file holds, from this point on, the part of its
modification time that is finer than HDFS's own milliseconds: no read moves an access time that lies in the future."""
MS = 1_000_000

Result = TypeVar("Result")


def open_hdfs(authority: str, options: Mapping[str, str], silent: float = SILENT_SECONDS) -> HdfsSystem:
    """Return the HDFS of an authority: `host:port`, a host, a name service, or empty for `fs.defaultFS`.

    `options` are `config_dir`, the directory of Hadoop's configuration (else that of `HADOOP_CONF_DIR`); `principal`
    and `keytab`, by which Kerberos tickets are got (else the process has one); and settings of Hadoop's by their names.
    Each answer is waited for `silent` seconds. The call connects to nothing yet. Equal settings and an equal user give
    the same object. Raises `Refused` where hdfs-native is not installed, for options that it does not take, and for an
    empty authority without a configured default.
    """
    hdfs_native = _client()
    settings = settings_of(options)
    address, nodes = name_nodes(authority, settings)
    config = {
        # Of several DataNodes the next one is asked before the caller gives up.
        "dfs.client.socket-timeout": str(round(silent * 1000 / 2)),
        # Each NameNode is asked once. Further attempts need a pause, and the client panics when it makes one.
        "dfs.client.failover.max.attempts": str(nodes - 1),
        **settings,
    }
    user = {f"kerberos_{key}": options[key] for key in ("principal", "keytab") if options.get(key)}
    if user:
        config["hadoop.security.authentication"] = "kerberos"
    process = (os.getpid(), *(os.environ.get(name) for name in ("HADOOP_USER_NAME", "HADOOP_PROXY_USER")))
    try:
        new_client = hdfs_native.AsyncClient
        return _opened(new_client, address, tuple(sorted(config.items())), tuple(user.items()), silent, process)
    except (RuntimeError, OSError) as error:
        problem, todo = f"hdfs://{address}/ can't be opened", "Correct the location, or the options of its storage"
        raise Refused(problem, str(error), todo) from error


def open_for_readers(authority: str, options: Mapping[str, str]) -> AbstractFileSystem:
    """Return the HDFS of an authority as one of fsspec's file systems, for programs that read data by it. It has no
    time limits, and takes `?` and `#` in names for parts of a URL. Raises `Refused` where hdfs-native is not installed,
    and for an empty authority without a configured default."""
    _client()
    from hdfs_native.fsspec import HdfsFileSystem

    settings = settings_of(options)
    address, _ = name_nodes(authority, settings)
    host, _, port = address.partition(":")
    return HdfsFileSystem(host, int(port) if port else None, **settings)


class HdfsSystem:
    """HDFS as `System`. A client that gives no answer for `silent` seconds is given up. `web` has the calls that the
    clients lack."""

    def __init__(self, clients: Clients, silent: float, web: WebHdfs) -> None:
        self._clients, self._silent, self._web = clients, silent, web

    def facts(self, path: str) -> FileFacts | None:
        try:
            return _facts(self._ask(path, lambda client: client.get_file_info(path)))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def below(self, path: str) -> Sequence[File] | None:
        """Return the data files below a directory, sorted; None when it is missing. A directory that vanishes meanwhile
        counts as empty. Raises `NotADirectoryError` for a file."""
        top = self._listed(path)
        return None if top is None else self._files(path, top)

    def below_each(self, paths: Sequence[str]) -> Mapping[str, Sequence[File] | None]:
        """Return `below` of each directory, by path. A file, and a Delta table, are None as a missing directory is. The
        first call for a directory shows whether it has a Delta log, so that no further call asks for it."""

        def one(path: str) -> Sequence[File] | None:
            try:
                top = self._listed(path)
            except NotADirectoryError:
                return None
            return self._files(path, top) if top is not None and not _has_log(top) else None

        with ThreadPoolExecutor(THREADS, thread_name_prefix="hdfs") as pool:
            return dict(zip(paths, pool.map(one, paths), strict=True))

    def _files(self, path: str, top: Sequence[FileStatus]) -> Sequence[File]:
        start = len(path.rstrip("/")) + 1
        files, pending = [], list(top)
        while pending:
            status = pending.pop()
            if not is_data(status.path.rsplit("/", 1)[1]):
                continue
            if status.isdir:
                pending += self._listed(status.path) or ()
            else:
                facts = _facts(status)
                files.append(File(status.path[start:], facts.size, facts.modified_ns))
        return sorted(files, key=lambda file: file.path)

    def children(self, path: str) -> Sequence[str]:
        return [entry.name for entry in self.entries(path)]

    def entries(self, path: str) -> Sequence[StorageEntry]:
        """Return the entries directly below a directory, by name. It costs the same calls as `children`."""
        try:
            statuses = self._listed(path) or ()
        except NotADirectoryError:
            return ()
        entries = (entry(status.path.rsplit("/", 1)[1], _facts(status)) for status in statuses)
        return sorted(entries, key=lambda each: each.name)

    def chunks(self, path: str, size: int) -> Iterator[memoryview]:
        # One byte more than expected, so that a file that grew shows it.
        chunk_size = min(CHUNK, size + 1)
        limit = 2 * self._silent + chunk_size / SLOWEST
        with self._clients.one() as client:
            reader = self._answer(client, path, client.read(path), self._silent)
            while chunk := self._answer(client, path, reader.read(chunk_size), limit):
                yield memoryview(chunk)

    def system_checksum(self, path: str) -> str:
        return self._web.checksum(path)

    def create(self, path: str, chunks: Iterable[memoryview]) -> None:
        with self._clients.one() as client:
            writer = self._answer(client, path, client.create(path), self._silent)
            for content in map(bytes, chunks):
                self._answer(client, path, writer.write(content), self._silent + len(content) / SLOWEST)
            self._answer(client, path, writer.close(), self._silent + CLOSING_SECONDS)

    def create_new(self, path: str, content: bytes) -> bool:
        """Write a small new file, and return True; False where the name is taken. Nothing is written before the
        NameNode has the new name. A process that dies half-way leaves the file with less content, or with none."""
        try:
            self.create(path, [memoryview(content)])
        except FileExistsError:
            return False
        return True

    def set_aside(self, path: str, target: str) -> bool:
        try:
            self._ask(path, lambda client: client.rename(path, target, overwrite=False))
        except FileNotFoundError:
            return False
        return True

    def date(self, path: str, modified_ns: int) -> None:
        time, finer = divmod(modified_ns, MS)
        access = FAR_MS + finer if finer else UNCHANGED
        self._ask(path, lambda client: client.set_times(path, time, access))

    def rename(self, path: str, target: str) -> None:
        """Rename a file, and make the target's parents. Raises `FileExistsError` where the target exists."""
        self._renamed(path, target, over=False)

    def replace(self, path: str, target: str) -> None:
        self._renamed(path, target, over=True)

    def make_directory(self, path: str) -> None:
        self._ask(path, lambda client: client.mkdirs(path, create_parent=True))

    def remove(self, path: str) -> None:
        # A NameNode that does not answer at all is not given the time that a removal may take.
        facts = self.facts(path)
        if facts is not None:
            extra_seconds = REMOVING_SECONDS if facts.directory else 0.0
            self._ask(path, lambda client: client.delete(path, recursive=True), extra_seconds)

    def permissions(self, path: str) -> Permissions | None:
        try:
            return hdfs_permissions.read(self._ask, path)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def set_permissions(self, path: str, permissions: Permissions) -> str:
        return hdfs_permissions.write(self._ask, path, permissions)

    def _renamed(self, path: str, target: str, over: bool) -> None:
        def rename(client: AsyncClient) -> Awaitable[None]:
            return client.rename(path, target, overwrite=over)

        try:
            self._ask(target, rename)
        except FileNotFoundError:
            self.make_directory(target.rsplit("/", 1)[0])
            self._ask(target, rename)

    def _listed(self, path: str) -> Sequence[FileStatus] | None:
        """Return the entries directly below a directory; None when it is missing. Raises `NotADirectoryError` for a
        file."""
        statuses: list[FileStatus] = []
        try:
            with self._clients.one() as client:
                entries = client.list_status(path)
                while page := self._answer(client, path, _some(entries), self._silent):
                    statuses += page
                    if len(page) < PAGE:
                        break
        except FileNotFoundError:
            return None
        if len(statuses) == 1 and statuses[0].path == path and not statuses[0].isdir:
            raise NotADirectoryError(errno.ENOTDIR, "A file", path)
        return statuses

    def _ask(self, path: str, call: Callable[[AsyncClient], Awaitable[Result]], extra_seconds: float = 0.0) -> Result:
        """Return the client's answer to one call, which may take `extra_seconds` more than `silent` seconds."""
        with self._clients.one() as client:
            return self._answer(client, path, call(client), self._silent + extra_seconds)

    def _answer(self, client: AsyncClient, path: str, asking: Awaitable[Result], limit: float) -> Result:
        async def answer() -> Result:
            with as_os_errors(path):
                return await asking

        try:
            return run_coroutine_threadsafe(wait_for(answer(), limit), get_loop()).result()
        except TimeoutError as error:
            self._clients.leave(client)
            raise TimeoutError(errno.ETIMEDOUT, f"No answer for {limit:.0f} s", path) from error


@cache
def _opened(
    new_client: Callable[..., AsyncClient],
    address: str,
    config: tuple[tuple[str, str], ...],
    user: tuple[tuple[str, str], ...],
    silent: float,
    _process: tuple[object, ...],
) -> HdfsSystem:
    """Return the system for these settings, kept for as long as the process lives (see `clients`)."""

    def client(is_retry: bool) -> AsyncClient:
        # One that did not answer is not always asked first again.
        order = {f"dfs.client.failover.random.order.{address}": "true"} if is_retry else {}
        return new_client(f"hdfs://{address}", {**dict(config), **order}, **dict(user))

    return HdfsSystem(Clients(client), silent, WebHdfs(web_addresses(address, dict(config)), silent))


def _client() -> ModuleType:
    try:
        import hdfs_native
    except ImportError as error:
        problem, todo = "Locations on HDFS can't be opened", "Run `pip install 'calque-replicator[hdfs]'`"
        raise Refused(problem, f"The package hdfs-native is missing: {error}", todo) from error
    return hdfs_native


async def _some(entries: AsyncIterator[FileStatus]) -> list[FileStatus]:
    """Return the next entries of the listing, at most `PAGE`."""
    statuses: list[FileStatus] = []
    async for status in entries:
        statuses.append(status)
        if len(statuses) == PAGE:
            break
    return statuses


def _has_log(statuses: Sequence[FileStatus]) -> bool:
    return any(status.path.endswith(f"/{LOG}") for status in statuses)


def _facts(status: FileStatus) -> FileFacts:
    if status.isdir:
        return FileFacts(0, status.modification_time * MS, directory=True)
    finer = status.access_time - FAR_MS
    time = status.modification_time * MS + (finer if 0 < finer < MS else 0)
    return FileFacts(status.length, time)
