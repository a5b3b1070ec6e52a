"""The Java that Spark runs on: where its program is, and which version it says to be."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

NEEDED = 17
"""The oldest version that Spark runs on."""
VERSION = re.compile(r'version "([^"]+)"')
LEADING_NUMBER = re.compile(r"\d+")
SECONDS = 30
SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""The environment variable that is there when spark-submit started this process: the JVM runs already."""
DOES_NOT_START, TO_INSTALL = "Spark's JVM does not start", "Install Java 17 and set JAVA_HOME"
"""The words of errors for a Java that is missing, or of no use."""


def java_program(environment: Mapping[str, str]) -> Path | None:
    """Return the program that Spark's scripts start, which may be missing where `JAVA_HOME` names it; None where
    `JAVA_HOME` is not set and no Java is on the path."""
    if home := environment.get("JAVA_HOME"):
        return Path(home, "bin", "java")
    program = shutil.which("java", path=environment.get("PATH"))
    return None if program is None else Path(program)


def java_version(program: Path) -> str:
    """Return the version that the program says, such as `17.0.15`; empty where it says none. Raises `OSError` for a
    program that can't be started, and `subprocess.TimeoutExpired`."""
    done = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=SECONDS, check=False)
    found = VERSION.search(done.stderr)
    return found[1] if found else ""


def is_new_enough(version: str) -> bool:
    """Tell whether Spark runs on that version. Versions before 9 begin with `1.`, so they are not new enough."""
    number = LEADING_NUMBER.match(version)
    return number is not None and int(number[0]) >= NEEDED
