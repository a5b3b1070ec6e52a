"""Requests to an S3 store, by s3fs and `small_objects`: the time that each is waited for, and the errors after which a
request is tried again.

A request is tried again after an error that passes in a moment: a store that is busy, a connection that is cut. It is
not tried again where the store does not answer: the caller gets an error within `SILENT_SECONDS`, and may ask again
later.
"""

from __future__ import annotations

import asyncio
import errno
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any, ParamSpec, TypeVar

from fsspec.asyn import sync
from fsspec.spec import AbstractFileSystem
from tenacity import Retrying, retry_if_exception, stop_after_attempt, stop_after_delay, wait_random_exponential

from calque.adapters.files.stores import as_os_errors
from calque.plugins.s3.adapters.small_objects import SmallObjects

P = ParamSpec("P")
T = TypeVar("T")
SILENT_SECONDS = 10.0
"""Seconds without a byte of an answer, once all is sent, after which the store counts as not answering."""
WORK, WORK_SECONDS = 64 << 20, 300.0
"""A store that copies or joins more than `WORK` bytes may take `WORK_SECONDS` until it answers."""
LOOK_SECONDS = 1.0
ATTEMPTS, PASSING_SECONDS = 5, 5.0
PAUSE, LONGEST_PAUSE = 0.1, 1.0
BUSY = frozenset(
    {
        "429",
        "500",
        "502",
        "503",
        "504",
        "InternalError",
        "OperationAborted",
        "RequestLimitExceeded",
        "RequestTimeout",
        "ServiceUnavailable",
        "SlowDown",
        "SlowDownRead",
        "SlowDownWrite",
        "Throttling",
        "ThrottlingException",
        "TooManyRequests",
    }
)
"""The error codes of a store that can't answer at the moment."""
CUT = frozenset(
    {
        "ClientPayloadError",
        "ConnectionClosedError",
        "EndpointConnectionError",
        "HTTPClientError",
        "ResponseParserError",
        "StoreCut",
    }
)
"""The errors of botocore, aiohttp and `small_objects` for a connection that was cut; no time-out is among them."""
FULL = frozenset({"507", "InsufficientStorage", "QuotaExceeded", "XMinioAdminBucketQuotaExceeded", "XMinioStorageFull"})
"""The error codes of a store that has no room, or whose quota is used up."""


class S3Requests:
    """The requests to one store, by s3fs and `small_objects`. Every method raises `OSError` and nothing else."""

    def __init__(self, filesystem: AbstractFileSystem) -> None:
        self._files = _waiting(filesystem, SILENT_SECONDS)
        self._small = SmallObjects(filesystem, SILENT_SECONDS)

    def ask(self, call: str, bucket: str, work: int = 0, /, **arguments: Any) -> Any:
        """Return the store's answer to the S3 call of this name, with `arguments` as botocore takes them. `work` is the
        number of bytes that the store has to go through before it answers: it may take longer then. A request is tried
        again after errors that pass. Raises `OSError`, as every method here."""
        files = _waiting(self._files, WORK_SECONDS) if work > WORK else self._files
        with _errors(bucket):
            return _while_it_passes(sync, files.loop, _asked, files, call, Bucket=bucket, **arguments)

    def put(self, bucket: str, key: str, content: bytes, *, new: bool = False) -> str:
        """Write an object in one request, and return its ETag. With `new`, raises `FileExistsError` where there is an
        object of the name, if the store knows conditions."""
        with _errors(bucket):
            if self._small.takes(bucket, key, len(content)):
                tag = _while_it_passes(self._small.put, bucket, key, content, new=new)
                if tag is not None:
                    return tag
        condition = {"IfNoneMatch": "*"} if new else {}
        return str(self.ask("put_object", bucket, Key=key, Body=content, **condition).get("ETag") or "")

    def read(self, bucket: str, key: str, size: int, **arguments: str) -> bytes:
        """Return an object's content, or with `arguments` (`Range`) a range of it. `size` is the size that the caller
        expects; it only chooses the client, and an object of another size is returned as it is."""
        with _errors(bucket):
            if not arguments and self._small.takes(bucket, key, size):
                whole = _while_it_passes(self._small.get, bucket, key)
                if whole is not None:
                    return whole

        async def read() -> bytes:
            answer = await self._files._call_s3("get_object", Bucket=bucket, Key=key, **arguments)
            async with answer["Body"] as body:
                content: bytes = await body.read()
                return content

        with _errors(bucket):
            content: bytes = _while_it_passes(sync, self._files.loop, read)
            return content


class _ObservedBody(BytesIO):
    """A request's body that knows when the connection last took bytes of it."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.size, self.taken = len(content), time.monotonic()

    def read(self, size: int | None = -1, /) -> bytes:
        self.taken = time.monotonic()
        return super().read(size)

    def is_stuck(self) -> bool:
        """Tell whether the store has taken no more bytes for `SILENT_SECONDS`, or, once all are taken, has not answered
        for twice as long."""
        silent = time.monotonic() - self.taken
        return silent > (SILENT_SECONDS if self.tell() < self.size else 2 * SILENT_SECONDS)


async def _asked(files: AbstractFileSystem, call: str, **arguments: Any) -> Any:
    """Return the store's answer to the call, and end a call whose body gets stuck. aiohttp by itself would wait without
    end for the store to let the body be sent, and for room to send it, because its time limit begins only when all is
    sent."""
    if "Body" not in arguments:
        return await files._call_s3(call, **arguments)
    content = _ObservedBody(arguments.pop("Body"))
    asking = asyncio.ensure_future(files._call_s3(call, Body=content, **arguments))
    try:
        while not (await asyncio.wait((asking,), timeout=LOOK_SECONDS))[0]:
            if content.is_stuck():
                raise ConnectionError(f"The store took nothing more for {SILENT_SECONDS:.0f} s, or did not answer")
        return asking.result()
    finally:
        asking.cancel()


def code_of(error: BaseException) -> str:
    """Return the protocol's name of the error, such as `SlowDown`; empty where it has none."""
    response = getattr(error.__cause__, "response", None)
    return str(response["Error"].get("Code", "")) if isinstance(response, dict) and "Error" in response else ""


def _waiting(files: AbstractFileSystem, silent: float) -> AbstractFileSystem:
    """Return a copy of the file system that waits for an answer for `silent` seconds and tries nothing again. fsspec
    keeps the copy, and returns the same one for the same settings."""
    config = {**files.config_kwargs, "read_timeout": silent, "retries": {"max_attempts": 0}}
    waiting_files = type(files)(*files.storage_args, **{**files.storage_options, "config_kwargs": config})
    waiting_files.retries = 1
    return waiting_files


def _while_it_passes(ask: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Return the result of `ask`, which is tried again after errors that pass, for at most `ATTEMPTS` attempts and
    `PASSING_SECONDS`. The first attempt goes without tenacity, because for small objects its book-keeping would take a
    third of the processor time."""
    began = time.monotonic()
    try:
        return ask(*arguments, **named)
    except Exception as error:
        remaining = PASSING_SECONDS - (time.monotonic() - began)
        if not _passes(error) or remaining <= 0:
            raise
    again = Retrying(
        retry=retry_if_exception(_passes),
        stop=stop_after_attempt(ATTEMPTS - 1) | stop_after_delay(remaining),
        wait=wait_random_exponential(PAUSE, LONGEST_PAUSE),
        reraise=True,
    )
    time.sleep(PAUSE * random.random())
    return again(ask, *arguments, **named)


def _passes(error: BaseException) -> bool:
    """Tell whether the same request may be answered in a moment."""
    return type(error).__name__ in CUT or code_of(error) in BUSY


@contextmanager
def _errors(bucket: str) -> Iterator[None]:
    try:
        with as_os_errors():
            yield
    except OSError as error:
        code = code_of(error)
        if code == "NoSuchBucket":
            raise OSError(errno.ENXIO, "There is no such bucket", bucket) from error
        if code in BUSY:
            raise ConnectionError(f"{code}: {error.strerror or error}") from error
        if code in FULL:
            raise OSError(errno.ENOSPC, f"{code}: {error.strerror or error}", bucket) from error
        raise
