"""What the client of HDFS tells by texts, as errors that say what to do."""

from __future__ import annotations

import errno

import pytest

from calque.adapters.files.system import trouble
from calque.errors import Refused, Unavailable
from calque.plugins.hdfs.adapters.errors import as_os_errors, os_error_of

HADOOP = "org.apache.hadoop"
FULL = "File /t/f could only be written to 0 of the 1 minReplication nodes. There are"


def rpc(kind: str, message: str) -> str:
    return f'RPCError("{kind}", "{message}\\n\\tat {HADOOP}.hdfs.Some.method(Some.java:1)")'


@pytest.mark.parametrize(
    ("text", "number", "kind"),
    [
        (rpc(f"{HADOOP}.security.AccessControlException", "Permission denied: user=a"), errno.EACCES, Refused),
        (
            f"Fatal{rpc(f'{HADOOP}.security.authorize.AuthorizationException', 'User: a is not allowed')}",
            errno.EACCES,
            Refused,
        ),
        ('GSSAPIError({GSS_S_NO_CRED}, 0, "No credentials")', errno.EACCES, Refused),
        (rpc(f"{HADOOP}.hdfs.protocol.NSQuotaExceededException", "quota"), errno.EDQUOT, Unavailable),
        (rpc(f"{HADOOP}.hdfs.protocol.DSQuotaExceededException", "quota"), errno.EDQUOT, Unavailable),
        (rpc("java.io.IOException", f"{FULL} 1 datanode(s) running"), errno.ENOSPC, Unavailable),
        (rpc("java.io.IOException", f"{FULL} 0 datanode(s) running"), None, Unavailable),
        (
            rpc(f"{HADOOP}.hdfs.protocol.FSLimitException$PathComponentTooLongException", "limit"),
            errno.ENAMETOOLONG,
            Refused,
        ),
        (rpc("java.io.IOException", "Access time for hdfs is not configured.  Please set"), errno.EPERM, Refused),
        (rpc(f"{HADOOP}.fs.InvalidPathException", "Invalid path name"), errno.EINVAL, Refused),
        (rpc(f"{HADOOP}.fs.ParentNotDirectoryException", "/f (is not a directory)"), errno.ENOTDIR, Refused),
        (rpc(f"{HADOOP}.hdfs.server.namenode.SafeModeException", "Name node is in safe mode."), None, Unavailable),
        (rpc(f"{HADOOP}.ipc.StandbyException", "Operation category READ is not supported"), None, Unavailable),
        ('DataTransferError("All DataNodes failed")', None, Unavailable),
    ],
)
def test_each_text_says_whom_to_turn_to(text: str, number: int | None, kind: type[Exception]) -> None:
    error = os_error_of(text, "/t/f")
    assert error.errno == number
    found = trouble("write", "hdfs://nn/t/f", error)
    assert isinstance(found, kind)
    assert "\\n" not in str(found)


@pytest.mark.parametrize(
    ("raised", "becomes"),
    [
        (FileNotFoundError("/t/f"), FileNotFoundError(errno.ENOENT, "No such file or directory", "/t/f")),
        (FileExistsError("x"), FileExistsError(errno.EEXIST, "File exists", "/t/f")),
        (IsADirectoryError("x"), IsADirectoryError(errno.EISDIR, "Is a directory", "/t/f")),
        (OSError("Connection refused (os error 111)"), ConnectionError("Connection refused (os error 111)")),
        (NotImplementedError("File encryption"), OSError(errno.EINVAL, "File encryption is not supported", "/t/f")),
    ],
)
def test_what_the_client_raises_becomes_what_python_has_for_it(raised: Exception, becomes: OSError) -> None:
    with pytest.raises(type(becomes)) as found, as_os_errors("/t/f"):
        raise raised
    assert (found.value.errno, str(found.value)) == (becomes.errno, str(becomes))


def test_a_panic_of_the_client_ends_nothing_but_the_call() -> None:
    panic = type("PanicException", (BaseException,), {})
    with pytest.raises(ConnectionError, match="boom"), as_os_errors("/t/f"):
        raise panic("boom")
