"""HDFS, by the client hdfs-native: files, listings, renames and times of one NameNode or name service."""

from __future__ import annotations

import errno
from asyncio import run_coroutine_threadsafe, wait_for
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from fsspec.asyn import get_loop

from calque.adapters.files.hadoop import name_nodes, settings_of
from calque.adapters.files.hdfs_errors import as_os_errors
from calque.adapters.files.system import Facts
from calque.core.layout import is_data
from calque.errors import Refused
from calque.model.files import File
from calque.ports import Found

if TYPE_CHECKING:
    from fsspec.spec import AbstractFileSystem
    from hdfs_native import AsyncClient, AsyncFileWriter, FileStatus

CHUNK = 4 << 20
SILENT_SECONDS = 10.0
"""Without an answer to a call, when it needs no time: the NameNode or a DataNode does not answer."""
REMOVING_SECONDS = 50.0
"""A NameNode goes through all that lies below."""
CLOSING_SECONDS = 10.0
"""The DataNodes tell the NameNode of a file's last block."""
SLOWEST = 1e6
"""Bytes a second that a DataNode moves at least."""
UNCHANGED = (1 << 64) - 1
"""As an access time: it stays."""
FAR_MS = 32_503_680_000_000
"""The year 3000. No read moves an access time that lies in the future, so the part of a file's time that is finer than
HDFS's own milliseconds stands there."""
MS = 1_000_000

Result = TypeVar("Result")


def open_hdfs(authority: str, options: Mapping[str, str], silent: float = SILENT_SECONDS) -> HdfsSystem:
    """The HDFS of an authority: `host:port`, a host, a name service, or empty for `fs.defaultFS`. `options`:
    `config_dir`, where Hadoop's configuration lies (else `HADOOP_CONF_DIR` says), and settings of Hadoop's by their
    names. An answer is waited for `silent` seconds. Nothing is connected to yet. Raises `Refused`."""
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

    def opened(again: bool) -> AsyncClient:
        # One that did not answer is not always asked first again.
        order = {f"dfs.client.failover.random.order.{address}": "true"} if again else {}
        client: AsyncClient = hdfs_native.AsyncClient(f"hdfs://{address}", {**config, **order})
        return client

    try:
        return HdfsSystem(opened, silent)
    except (RuntimeError, OSError) as error:
        what, todo = f"hdfs://{address}/ can't be opened", "Correct the location, or the options of its storage"
        raise Refused(what, str(error), todo) from error


def open_for_readers(authority: str, options: Mapping[str, str]) -> AbstractFileSystem:
    """The same as a file system of fsspec's, for programs that read data by one. It knows no limits of time, and takes
    `?` and `#` in names for parts of a URL."""
    _client()
    from hdfs_native.fsspec import HdfsFileSystem

    settings = settings_of(options)
    address, _ = name_nodes(authority, settings)
    host, _, port = address.partition(":")
    return HdfsFileSystem(host, int(port) if port else None, **settings)


class HdfsSystem:
    """`System` over `opened()`, which is asked for another client, with True, after one that did not answer: what the
    old one still waits for ends with it."""

    def __init__(self, opened: Callable[[bool], AsyncClient], silent: float = SILENT_SECONDS) -> None:
        self._opened, self._silent, self._lock = opened, silent, Lock()
        self._client = opened(False)

    def facts(self, path: str) -> Facts | None:
        try:
            return _facts(self._ask(path, lambda client: client.get_file_info(path)))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def below(self, path: str) -> Sequence[File] | None:
        """A directory that vanishes meanwhile has nothing below."""
        top = self._listed(path)
        if top is None:
            return None
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
        return [found.name for found in self.entries(path)]

    def entries(self, path: str) -> Sequence[Found]:
        """What `children` names, from the same calls."""
        try:
            listed = self._listed(path) or ()
        except NotADirectoryError:
            return ()
        found = [(status.path.rsplit("/", 1)[1], _facts(status)) for status in listed]
        return sorted(
            (Found(name, facts.size, facts.modified_ns, facts.directory) for name, facts in found),
            key=lambda entry: entry.name,
        )

    def chunks(self, path: str, size: int) -> Iterator[memoryview]:
        client = self._client
        reader = self._ask(path, lambda client: client.read(path), client=client)
        # One byte more than expected, so that a file that grew shows it.
        most = min(CHUNK, size + 1)
        while chunk := self._ask(path, lambda _: reader.read(most), most, client=client):
            yield memoryview(chunk)

    def create(self, path: str, chunks: Iterable[memoryview]) -> None:
        client = self._client
        writer = self._ask(path, lambda client: client.create(path), client=client)
        for content in map(bytes, chunks):
            self._ask(path, partial(_write, writer, content), len(content), client=client)
        self._ask(path, lambda _: writer.close(), seconds=CLOSING_SECONDS, client=client)

    def date(self, path: str, modified_ns: int) -> None:
        time, finer = divmod(modified_ns, MS)
        access = FAR_MS + finer if finer else UNCHANGED
        self._ask(path, lambda client: client.set_times(path, time, access))

    def rename(self, path: str, target: str) -> None:
        """`FileExistsError` when something lies at the target."""
        self._renamed(path, target, over=False)

    def replace(self, path: str, target: str) -> None:
        self._renamed(path, target, over=True)

    def make_directory(self, path: str) -> None:
        self._ask(path, lambda client: client.mkdirs(path, create_parent=True))

    def remove(self, path: str) -> None:
        # A NameNode that does not answer at all is not given the time that a removal may take.
        facts = self.facts(path)
        if facts is not None:
            seconds = REMOVING_SECONDS if facts.directory else 0.0
            self._ask(path, lambda client: client.delete(path, recursive=True), seconds=seconds)

    def _renamed(self, path: str, target: str, over: bool) -> None:
        def rename(client: AsyncClient) -> Awaitable[None]:
            return client.rename(path, target, overwrite=over)

        try:
            self._ask(target, rename)
        except FileNotFoundError:
            self.make_directory(target.rsplit("/", 1)[0])
            self._ask(target, rename)

    def _listed(self, path: str) -> Sequence[FileStatus] | None:
        """What is directly below; None when there is nothing. `NotADirectoryError` for a file."""

        async def listed(client: AsyncClient) -> list[FileStatus]:
            return [status async for status in client.list_status(path)]

        try:
            found = self._ask(path, listed)
        except FileNotFoundError:
            return None
        if len(found) == 1 and found[0].path == path and not found[0].isdir:
            raise NotADirectoryError(errno.ENOTDIR, "a file", path)
        return found

    def _ask(
        self,
        path: str,
        call: Callable[[AsyncClient], Awaitable[Result]],
        size: int = 0,
        seconds: float = 0.0,
        client: AsyncClient | None = None,
    ) -> Result:
        """The answer to a call that moves `size` bytes, or works for so many seconds. A client has to live for as long
        as its readers and writers: whoever has one names it."""
        client = client or self._client
        limit = self._silent + seconds + size / SLOWEST

        async def asked() -> Result:
            with as_os_errors(path):
                return await call(client)

        try:
            return run_coroutine_threadsafe(wait_for(asked(), limit), get_loop()).result()
        except TimeoutError as error:
            self._leave(client)
            raise TimeoutError(errno.ETIMEDOUT, f"no answer for {limit:.0f} s", path) from error

    def _leave(self, client: AsyncClient) -> None:
        with self._lock:
            if self._client is client:
                self._client = self._opened(True)


def _client() -> ModuleType:
    try:
        import hdfs_native
    except ImportError as error:
        what, todo = "Locations on HDFS can't be opened", "Run `pip install 'calque[hdfs]'`"
        raise Refused(what, f"the package hdfs-native is missing: {error}", todo) from error
    return hdfs_native


async def _write(writer: AsyncFileWriter, content: bytes, _: AsyncClient) -> None:
    await writer.write(content)


def _facts(status: FileStatus) -> Facts:
    if status.isdir:
        return Facts(0, status.modification_time * MS, directory=True)
    finer = status.access_time - FAR_MS
    time = status.modification_time * MS + (finer if 0 < finer < MS else 0)
    return Facts(status.length, time)
