"""Dumps that Hive itself wrote (tests/golden/dumps/README.md)."""

from __future__ import annotations

import tarfile
from collections.abc import Mapping

from support.places import GOLDEN

DUMPS = GOLDEN / "dumps"
BOOTSTRAP = "c3Jj/0ad279d8-f9de-408c-9ff3-c4f1d453ad88"
INCREMENT = "c3Jj/be0b1b41-afe7-4bf6-9bfd-1d722aead069"
"""Their directories below the root of dumps."""


def recorded_files(archive: str) -> Mapping[str, bytes]:
    """The files of an archive by their paths: "bootstrap", "incremental" or "source-files"."""
    with tarfile.open(DUMPS / f"hive-4.0.1-{archive}.tgz") as tar:
        members = [member for member in tar.getmembers() if member.isfile()]
        return {member.name.removeprefix("./"): content(tar, member) for member in members}


def content(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    stream = tar.extractfile(member)
    assert stream is not None
    return stream.read()
