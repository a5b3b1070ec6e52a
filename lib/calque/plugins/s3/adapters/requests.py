"""Requests to an S3 store, by s3fs and `small_objects`: how long each is waited for, and what is tried again.

What passes in a moment (a store that is busy, a connection that is cut) is tried again. A store that says nothing is
not: whoever asked is to know within `SILENT_SECONDS`, and asks again when he likes.
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
"""Without a byte of an answer, when all is sent: the store does not answer."""
WORK, WORK_SECONDS = 64 << 20, 300.0
"""A store that copies or joins more than so many bytes may say nothing for so long."""
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
"""What a store answers that can't answer just now."""
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
"""Errors of botocore, aiohttp and `small_objects`; no time-out is among them."""
FULL = frozenset({"507", "InsufficientStorage", "QuotaExceeded", "XMinioAdminBucketQuotaExceeded", "XMinioStorageFull"})
"""What stores answer that have no room, or a quota that is used up."""


class S3Requests:
    """Every method raises `OSError` and nothing else."""

    def __init__(self, filesystem: AbstractFileSystem) -> None:
        self._files = _waiting(filesystem, SILENT_SECONDS)
        self._small = SmallObjects(filesystem, SILENT_SECONDS)

    def ask(self, call: str, bucket: str, work: int = 0, /, **arguments: Any) -> Any:
        """What the store answers. Before it does it has to go through `work` bytes."""
        files = _waiting(self._files, WORK_SECONDS) if work > WORK else self._files
        with _errors(bucket):
            return _while_it_passes(sync, files.loop, _asked, files, call, Bucket=bucket, **arguments)

    def put(self, bucket: str, key: str, content: bytes, *, new: bool = False) -> str:
        """Write an object in one request; its ETag. With `new`, `FileExistsError` where there is one, if the store
        knows conditions."""
        with _errors(bucket):
            if self._small.takes(bucket, key, len(content)):
                tag = _while_it_passes(self._small.put, bucket, key, content, new=new)
                if tag is not None:
                    return tag
        condition = {"IfNoneMatch": "*"} if new else {}
        return str(self.ask("put_object", bucket, Key=key, Body=content, **condition).get("ETag") or "")

    def read(self, bucket: str, key: str, size: int, **arguments: str) -> bytes:
        """An object's content, or a range of it, which is expected to be `size` bytes."""
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
    """Knows when some of it was last taken."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.size, self.taken = len(content), time.monotonic()

    def read(self, size: int | None = -1, /) -> bytes:
        self.taken = time.monotonic()
        return super().read(size)

    def is_stuck(self) -> bool:
        """Whether the store takes no more of it, or has taken all without a word: it has a time for both."""
        silent = time.monotonic() - self.taken
        return silent > (SILENT_SECONDS if self.tell() < self.size else 2 * SILENT_SECONDS)


async def _asked(files: AbstractFileSystem, call: str, **arguments: Any) -> Any:
    """aiohttp waits for answers only when all is sent: as long as a store likes for the leave to send, and for room."""
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
    """The protocol's name of an error; empty where it has none."""
    response = getattr(error.__cause__, "response", None)
    return str(response["Error"].get("Code", "")) if isinstance(response, dict) and "Error" in response else ""


def _waiting(files: AbstractFileSystem, silent: float) -> AbstractFileSystem:
    """The same, but that an answer is waited for so many seconds, and nothing is tried again. fsspec keeps it."""
    config = {**files.config_kwargs, "read_timeout": silent, "retries": {"max_attempts": 0}}
    waiting_files = type(files)(*files.storage_args, **{**files.storage_options, "config_kwargs": config})
    waiting_files.retries = 1
    return waiting_files


def _while_it_passes(ask: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """What is asked for, also where it takes several attempts. The first one is tenacity's business only when it fails:
    for small objects its book-keeping would take a third of the processor time."""
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
    """Whether the same request may be answered in a moment."""
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
