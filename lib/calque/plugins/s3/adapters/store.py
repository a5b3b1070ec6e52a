"""An S3 store as an object store (`stores.Store`), by the calls of the protocol.

Requests are s3fs's, and obstore's for small objects (see `requests`). The file interface of s3fs is not used, because
it makes more requests for each object than needed. A single PUT and a part of a multipart upload return the MD5 of the
bytes that the server received as their ETag (not so with some encryptions). Where it equals the MD5 of the bytes that
were sent, nothing has to be read back.
"""

from __future__ import annotations

import errno
import hashlib
import threading
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from io import BytesIO
from secrets import token_hex
from typing import Any

from fsspec.spec import AbstractFileSystem

from calque.adapters.files.stores import FsspecStore, StoredObject, each_below, joined, nanoseconds
from calque.core.formats.layout import COPYING
from calque.plugins.s3.adapters.requests import S3Requests, code_of

PART = 8 << 20
"""Bytes that one request carries; a file up to this size is one PUT."""
MOST_PARTS = 9_000
AT_ONCE = 4
"""Parts of one file that are on the way at a time."""
MOST_COPY = 5 << 30
"""Bytes of the largest copy that the protocol allows in one request."""
PAGE = 1_000
NEIGHBOURS = 8
SCANS = 8
"""Listing requests on the way at a time, and the number of directories that are worth one page of 1,000 objects."""


class S3Store:
    """An S3 store as `Store`, over s3fs.

    A listing has times of whole seconds. So an object that is overwritten by one of its size within a second would look
    the same. Therefore `modified_ns` has the second from the listing, and below it digits that are computed from the
    ETag.
    """

    def __init__(self, filesystem: AbstractFileSystem) -> None:
        self.files = filesystem
        self._requests = S3Requests(filesystem)
        self._lock = threading.Lock()
        self._conditional: dict[str, Future[bool]] = {}

    @property
    def identity(self) -> object:
        files = self.files
        return (files.endpoint_url, files.key, files.secret, files.token, files.anon)

    def find(self, name: str) -> StoredObject | None:
        bucket, _, key = name.partition("/")
        if not key:
            return None
        try:
            answer = self._requests.ask("head_object", bucket, Key=key)
        except FileNotFoundError:
            return None
        return _stored(name, {**answer, "Size": answer["ContentLength"]})

    def holds(self, directory: str) -> bool:
        bucket, _, key = directory.partition("/")
        answer = self._requests.ask("list_objects_v2", bucket, Prefix=f"{key}/" if key else "", MaxKeys=1)
        return bool(answer.get("Contents")) or not key

    def below(self, directory: str) -> Iterator[StoredObject]:
        token = ""
        while True:
            page, token = self._page(directory, token)
            yield from page
            if not token:
                return

    def below_each(self, directories: Sequence[str]) -> Mapping[str, Sequence[StoredObject]]:
        """Return the objects below each directory, by directory. Neighbours are listed together, unless so many other
        objects lie between them that a request for each is cheaper."""
        names = set(directories)
        above = Counter(name.rpartition("/")[0] for name in names)
        parents = [name for name, count in above.items() if count >= NEIGHBOURS]
        with ThreadPoolExecutor(SCANS, thread_name_prefix="list") as pool:
            scanned = pool.map(lambda parent: self._scanned(parent, names, 1 + above[parent] // SCANS), parents)
            objects_by_name = {name: objects for part in scanned for name, objects in part.items()}
        return {**objects_by_name, **each_below(self, [name for name in names if name not in objects_by_name])}

    def level(self, directory: str) -> tuple[Sequence[str], Sequence[StoredObject]]:
        bucket, _, key = directory.partition("/")
        prefix = f"{key}/" if key else ""
        directories: list[str] = []
        objects: list[StoredObject] = []
        token: dict[str, str] = {}
        while True:
            answer = self._requests.ask("list_objects_v2", bucket, Prefix=prefix, Delimiter="/", **token)
            directories += [each["Prefix"][len(prefix) : -1] for each in answer.get("CommonPrefixes", ())]
            objects += [
                _stored(f"{bucket}/{each['Key']}", each) for each in answer.get("Contents", ()) if each["Key"] != prefix
            ]
            if not answer.get("IsTruncated"):
                return directories, objects
            token = {"ContinuationToken": answer["NextContinuationToken"]}

    def chunks(self, name: str, size: int) -> Iterator[memoryview]:
        """Give an object's content. A big object comes in ranges, of which `AT_ONCE` are fetched ahead."""
        if size <= PART:
            yield memoryview(self._range(name, size, ""))
            return
        starts = range(0, size, PART)
        futures = [
            _pool().submit(self._range, name, PART, f"bytes={start}-{start + PART - 1}") for start in starts[:AT_ONCE]
        ]
        for number in range(len(starts)):
            content = futures[number].result()
            if number + AT_ONCE < len(starts):
                start = starts[number + AT_ONCE]
                futures.append(_pool().submit(self._range, name, PART, f"bytes={start}-{start + PART - 1}"))
            futures[number] = _NOTHING
            yield memoryview(content)

    def put(self, name: str, chunks: Iterable[memoryview], size: int, *, new: bool) -> bool:
        if size <= PART:
            return self._put_whole(name, joined(chunks), new=new)
        if new and self.find(name) is not None:
            raise _exists(name)
        return self._put_parts(name, chunks, max(PART, -(-size // MOST_PARTS)))

    def copy(self, source: StoredObject, target: str) -> bool:
        if source.size > MOST_COPY:
            return FsspecStore(self.files).copy(source, target)
        bucket, _, key = source.name.partition("/")
        to_bucket, _, to_key = target.partition("/")
        condition = {"CopySourceIfMatch": source.version} if source.version else {}
        try:
            origin = {"Bucket": bucket, "Key": key}
            answer = self._requests.ask(
                "copy_object", to_bucket, source.size, Key=to_key, CopySource=origin, **condition
            )
        except OSError as error:
            if code_of(error) in _REFUSED_CONDITIONS:
                raise FileNotFoundError(errno.ENOENT, "It was replaced", source.name) from error
            raise
        return bool(source.version) and _tag(answer["CopyObjectResult"]) == source.version.strip('"')

    def delete(self, names: Sequence[str]) -> None:
        for start in range(0, len(names), PAGE):
            page = names[start : start + PAGE]
            bucket = page[0].partition("/")[0]
            keys = [{"Key": name.partition("/")[2]} for name in page]
            if len(keys) == 1:
                self._requests.ask("delete_object", bucket, Key=keys[0]["Key"])
                continue
            answer = self._requests.ask("delete_objects", bucket, Delete={"Objects": keys, "Quiet": True})
            for error in answer.get("Errors", ()):
                raise OSError(errno.EIO, f"{error.get('Code')}: {error.get('Message')}", f"{bucket}/{error.get('Key')}")

    def keeps_conditions(self, directory: str) -> bool:
        """Tell whether the store refuses a PUT for a new object where there is one already. This is tried once for each
        bucket, with an object that is removed again; callers that ask meanwhile wait for the result. Raises
        `OSError`."""
        bucket = directory.partition("/")[0]
        with self._lock:
            future = self._conditional.get(bucket)
            if future is None:
                own_future = self._conditional[bucket] = Future()
        if future is not None:
            return future.result()
        try:
            own_future.set_result(self._tries_conditions(directory))
        except BaseException as error:
            del self._conditional[bucket]
            own_future.set_exception(error)
            raise
        return own_future.result()

    def _tries_conditions(self, directory: str) -> bool:
        name = f"{directory}/{COPYING}{token_hex(8)}"
        try:
            self._put_once(name, b"1")
        except OSError as error:
            if code_of(error) not in ("NotImplemented", "InvalidArgument", "501"):
                raise
            return False
        try:
            self._put_once(name, b"2")
        except FileExistsError:
            return True
        finally:
            with suppress(OSError):
                self.delete([name])
        return False

    def _put_whole(self, name: str, content: bytes, *, new: bool) -> bool:
        if new and self.keeps_conditions(name.rpartition("/")[0]):
            return self._put_once(name, content)
        if new and self.find(name) is not None:
            raise _exists(name)
        return self._put(name, content)

    def _put_once(self, name: str, content: bytes) -> bool:
        try:
            return self._put(name, content, new=True)
        except FileExistsError:
            raise
        except OSError as error:
            if code_of(error) in _REFUSED_CONDITIONS:
                raise _exists(name) from error
            raise

    def _put(self, name: str, content: bytes, *, new: bool = False) -> bool:
        bucket, _, key = name.partition("/")
        tag = self._requests.put(bucket, key, content, new=new)
        return bool(tag.strip('"') == _md5(content).hexdigest())

    def _put_parts(self, name: str, chunks: Iterable[memoryview], size: int) -> bool:
        bucket, _, key = name.partition("/")
        upload = self._requests.ask("create_multipart_upload", bucket, Key=key)["UploadId"]
        futures: list[Future[tuple[str, bytes]]] = []
        try:
            written_bytes = 0
            for number, content in enumerate(_parts(chunks, size), start=1):
                written_bytes += len(content)
                if number > AT_ONCE:
                    futures[number - AT_ONCE - 1].result()
                _room().acquire()
                futures.append(_pool().submit(self._put_part, bucket, key, upload, number, content))
                futures[-1].add_done_callback(lambda _: _room().release())
            parts = [future.result() for future in futures]
            tags = [{"PartNumber": number, "ETag": f'"{tag}"'} for number, (tag, _) in enumerate(parts, start=1)]
            completion = {"Parts": tags}
            answer = self._requests.ask(
                "complete_multipart_upload", bucket, written_bytes, Key=key, UploadId=upload, MultipartUpload=completion
            )
        except BaseException:
            for future in futures:
                future.cancel()
            with suppress(OSError):
                self._requests.ask("abort_multipart_upload", bucket, Key=key, UploadId=upload)
            raise
        combined_md5 = _md5(b"".join(md5 for _, md5 in parts)).hexdigest()
        return _tag(answer) == f"{combined_md5}-{len(parts)}" and all(tag == md5.hex() for tag, md5 in parts)

    def _put_part(self, bucket: str, key: str, upload: str, number: int, content: bytes) -> tuple[str, bytes]:
        """Write one part of an upload, and return its ETag and its MD5."""
        answer = self._requests.ask("upload_part", bucket, Key=key, UploadId=upload, PartNumber=number, Body=content)
        return _tag(answer), _md5(content).digest()

    def _range(self, name: str, size: int, byte_range: str) -> bytes:
        bucket, _, key = name.partition("/")
        return self._requests.read(bucket, key, size, **({"Range": byte_range} if byte_range else {}))

    def _page(self, directory: str, token: str) -> tuple[Sequence[StoredObject], str]:
        """Return some of the objects below the directory, and the token for the next ones; the token is empty where
        there are no more."""
        bucket, _, key = directory.partition("/")
        continuation = {"ContinuationToken": token} if token else {}
        answer = self._requests.ask("list_objects_v2", bucket, Prefix=f"{key}/" if key else "", **continuation)
        page = [_stored(f"{bucket}/{each['Key']}", each) for each in answer.get("Contents", ())]
        return page, answer["NextContinuationToken"] if answer.get("IsTruncated") else ""

    def _scanned(self, parent: str, names: Set[str], pages: int) -> Mapping[str, Sequence[StoredObject]]:
        """Return the objects below each of the wanted directories directly below `parent`; an empty map where `parent`
        has more than `pages` pages. Stores do not agree on the order of names (with and without a slash after them), so
        all of `parent` is read."""
        objects_by_name: dict[str, list[StoredObject]] = {
            name: [] for name in names if name.rpartition("/")[0] == parent
        }
        token = ""
        for _ in range(pages):
            page, token = self._page(parent, token)
            for each in page:
                name, slash, _ = each.name[len(parent) + 1 :].partition("/")
                if slash and (objects := objects_by_name.get(f"{parent}/{name}")) is not None:
                    objects.append(each)
            if not token:
                return objects_by_name
        return {}


_NOTHING: Future[bytes] = Future()
_REFUSED_CONDITIONS = ("PreconditionFailed", "412", "ConditionalRequestConflict", "409")


@cache
def _room() -> threading.Semaphore:
    """Return the semaphore that bounds the number of parts that all uploads of this process hold in memory."""
    return threading.Semaphore(3 * AT_ONCE)


@cache
def _pool() -> ThreadPoolExecutor:
    """Return the threads that send and fetch the parts of all files of this process."""
    return ThreadPoolExecutor(2 * AT_ONCE, thread_name_prefix="part")


def _stored(name: str, info: Mapping[str, Any]) -> StoredObject:
    tag = str(info.get("ETag") or "")
    second = nanoseconds(info.get("LastModified")) // 1_000_000_000
    return StoredObject(name, info["Size"], second * 1_000_000_000 + zlib.crc32(tag.encode()) % 1_000_000, tag)


def _parts(chunks: Iterable[memoryview], size: int) -> Iterator[bytes]:
    part = BytesIO()
    for chunk in chunks:
        remaining = chunk
        while remaining:
            remaining = remaining[part.write(remaining[: size - part.tell()]) :]
            if part.tell() == size:
                yield part.getvalue()
                part = BytesIO()
    if part.tell():
        yield part.getvalue()


def _md5(content: bytes) -> Any:
    return hashlib.md5(content, usedforsecurity=False)


def _tag(answer: Mapping[str, Any]) -> str:
    return str(answer.get("ETag") or "").strip('"')


def _exists(name: str) -> FileExistsError:
    return FileExistsError(errno.EEXIST, "There is an object already", name)
