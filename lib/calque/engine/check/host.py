"""The check of this host, before a process takes anything: what Spark needs to start, room on the disks of the state,
and the limit of open files."""

from __future__ import annotations

import logging
import os
import resource
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from subprocess import TimeoutExpired

from calque.engine.check.findings import Findings, Severity
from calque.errors import CalqueError, Refused
from calque.java import DOES_NOT_START, SUBMITTED, TO_INSTALL, is_new_enough, java_program, java_version
from calque.state_files import reaching, require_room

LOG = logging.getLogger(__name__)
HOST = "host"
"""The text for this host in findings (`Finding.where`)."""
LEAST_FREE = 2**30
"""The bytes below which free space counts as little."""
LEAST_OPEN_FILES = 4096
"""The limit of open files below which it counts as low."""
Concern = tuple[str, str, str]
"""What is doubtful, why that matters, and what to do."""


def free_bytes(folder: Path) -> int:
    """Return the bytes that this user can still write to the disk of an existing folder. Raises `OSError`."""
    return shutil.disk_usage(folder).free


def most_open_files() -> int:
    """Return the number of files that this process may have open at most, once it has raised its limit."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return LEAST_OPEN_FILES if hard == resource.RLIM_INFINITY else hard


@dataclass(frozen=True, slots=True)
class Host:
    """The host of this process. `folders` are those of the state on its file systems; they may not be there
    yet."""

    folders: Sequence[Path] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    free_bytes: Callable[[Path], int] = free_bytes
    most_open_files: Callable[[], int] = most_open_files


def check_host(host: Host, findings: Findings) -> None:
    """Add what keeps `calque run` from starting on this host, and what it would start with and may end by. Each folder
    is tried with a hidden file that is removed again."""
    for error in obstacles(host):
        findings.refused(HOST, error)
    for folder in host.folders:
        try:
            with reaching(f"{folder} can't be used", folder):
                require_room(existing(folder))
        except CalqueError as error:
            findings.refused(HOST, error)
    for what, why, todo in concerns(host):
        findings.add(HOST, Severity.WARNING, what, why, todo)


def require_host(host: Host) -> None:
    """Raise the first error that keeps Spark from starting on this host, and log what is doubtful about the host."""
    for error in obstacles(host):
        raise error
    for what, why, todo in concerns(host):
        LOG.warning("%s: %s. %s", what, why, todo)


def obstacles(host: Host) -> Iterator[Refused]:
    """Yield what keeps Spark's JVM from starting. Where it runs already nothing does."""
    if SUBMITTED in host.environment:
        return
    if shutil.which("bash", path=host.environment.get("PATH")) is None:
        yield Refused(DOES_NOT_START, "Spark's scripts need bash, and none is on the PATH", "Install bash")
    if not spark_sets_environment(host) and (why := java_misfit(host)):
        yield Refused(DOES_NOT_START, why, TO_INSTALL)


def spark_sets_environment(host: Host) -> bool:
    """Tell whether Spark's scripts read a file first that may set `JAVA_HOME` and `PATH`."""
    spec = find_spec("pyspark")
    own_folder = Path(spec.origin).with_name("conf") if spec is not None and spec.origin else Path()
    return Path(host.environment.get("SPARK_CONF_DIR") or own_folder, "spark-env.sh").is_file()


def java_misfit(host: Host) -> str:
    """Return why Spark can't run on the Java that its scripts find; empty where it can, or where Java does not say its
    version in time."""
    program = java_program(host.environment)
    if program is None:
        return "JAVA_HOME is not set, and no java is on the PATH"
    if not program.exists():
        return f"JAVA_HOME is {host.environment['JAVA_HOME']}, and there is no program {program}"
    try:
        version = java_version(program)
    except OSError as error:
        return f"{program} can't be run: {error.strerror or error}"
    except TimeoutExpired:
        return ""
    return "" if is_new_enough(version) else f"{program} is Java {version or 'of an unknown version'}"


def concerns(host: Host) -> Iterator[Concern]:
    """Yield what may end a process that starts."""
    disks: dict[int, Path] = {}
    for folder in host.folders:
        with suppress(OSError):
            disks.setdefault(existing(folder).stat().st_dev, folder)
    for folder in disks.values():
        with suppress(OSError):
            free = host.free_bytes(existing(folder))
            if free < LEAST_FREE:
                yield (
                    f"{free / 2**20:.0f} MiB are free on the disk of {folder}",
                    "On a full disk nothing is captured and no target goes on",
                    "Free or add space there",
                )
    limit = host.most_open_files()
    if limit < LEAST_OPEN_FILES:
        yield (
            f"This process may open {limit} files at most",
            "Its connections, files and those of Spark may need more",
            f"Raise the hard limit (`ulimit -Hn`, or LimitNOFILE= of the unit) to {LEAST_OPEN_FILES} or more",
        )


def existing(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that exists."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder
