"""The errors of HDFS as `OSError`. The client hdfs-native says most of them only by texts."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

_ANSWERED = re.compile(r'(?:Fatal)?RPCError\("([\w.$]+)", "(.*)"\)', re.DOTALL)
_ERRORS = {
    "AccessControlException": errno.EACCES,
    "AuthorizationException": errno.EACCES,
    "InvalidToken": errno.EACCES,
    "DSQuotaExceededException": errno.EDQUOT,
    "NSQuotaExceededException": errno.EDQUOT,
    "QuotaByStorageTypeExceededException": errno.EDQUOT,
    "MaxDirectoryItemsExceededException": errno.EDQUOT,
    "PathComponentTooLongException": errno.ENAMETOOLONG,
    "FileNotFoundException": errno.ENOENT,
    "PathNotFoundException": errno.ENOENT,
    "FileAlreadyExistsException": errno.EEXIST,
    "ParentNotDirectoryException": errno.ENOTDIR,
    "PathIsNotDirectoryException": errno.ENOTDIR,
    "PathIsNotEmptyDirectoryException": errno.ENOTEMPTY,
    "InvalidPathException": errno.EINVAL,
    "HadoopIllegalArgumentException": errno.EINVAL,
    "AclException": errno.EOPNOTSUPP,
}
"""The error number by the name of the Java exception. All others become `ConnectionError`, because they pass by
themselves: safe mode, a stand-by, a NameNode that has just begun. A DataNode's answers say little but a failure."""
_NO_ACCESS_TIMES = "Access time for hdfs is not configured"
_NO_CREDENTIALS = ("GSSAPIError", "SASLError", "NoSASLMechanism")


@contextmanager
def as_os_errors(path: str) -> Iterator[None]:
    """Turn the errors of hdfs-native that the block raises about `path`, panics among them, into `OSError` and its
    kinds. A time-out passes as it is."""
    try:
        yield
    except TimeoutError:
        raise
    except (FileNotFoundError, FileExistsError, IsADirectoryError) as error:
        number = {FileNotFoundError: errno.ENOENT, FileExistsError: errno.EEXIST}.get(type(error), errno.EISDIR)
        raise OSError(number, os.strerror(number), path) from error
    except NotImplementedError as error:
        raise OSError(errno.EINVAL, f"{error} is not supported", path) from error
    except (OSError, RuntimeError, ValueError) as error:
        raise os_error_of(str(error), path) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise ConnectionError(f"The client failed: {error}") from error


def os_error_of(text: str, path: str) -> OSError:
    """Return the `OSError` that a text of the client's error means."""
    answer = _ANSWERED.match(text)
    if answer is None:
        refused = text.startswith(_NO_CREDENTIALS)
        return PermissionError(errno.EACCES, text, path) if refused else ConnectionError(text)
    kind, message = re.split(r"[.$]", answer[1])[-1], answer[2].split("\\n", 1)[0]
    if "could only be written to 0" in message and "There are 0 datanode" not in message:
        return OSError(errno.ENOSPC, message, path)
    if message.startswith(_NO_ACCESS_TIMES):
        return PermissionError(errno.EPERM, message, path)
    if kind in _ERRORS:
        return OSError(_ERRORS[kind], message, path)
    return ConnectionError(f"{kind}: {message}")
