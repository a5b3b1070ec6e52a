"""The files that are made of the downloaded archives: the 3.1.3 server's jars, and one database template for each
version."""

import hashlib
import shutil
import tarfile
import tempfile
from pathlib import Path, PurePosixPath

from calque.adapters.spark.delta_jars import delta_folder
from calque.sandbox import manifest
from calque.sandbox.postgres import build_template

_SCHEMAS = {
    "3.1.3": (manifest.HIVE_3_DISTRIBUTION, "hive-schema-3.1.0.postgres.sql"),
    "4.2.0": (manifest.HIVE_4_SCHEMAS, "hive-schema-4.0.0.postgres.sql"),
}
# 3.1's schema lacks indexes that Hive 4 adds. Without the one each read of the log scans all of it; without the other,
# which 3.1 has for other databases than PostgreSQL, each change of a table or partition scans all storage descriptors.
# 4.2.0 has one table more than the newest published schema (HIVE-29178).
_ADDITIONS = {
    "3.1.3": """
        CREATE INDEX "SDS_N50" ON "SDS" USING btree ("CD_ID");
        CREATE INDEX "NOTIFICATION_LOG_EVENT_ID" ON "NOTIFICATION_LOG" USING btree ("EVENT_ID")
    """,
    "4.2.0": """
        CREATE TABLE "CATALOG_PARAMS" (
            "CTLG_ID" bigint NOT NULL REFERENCES "CTLGS" ("CTLG_ID") ON DELETE CASCADE,
            "PARAM_KEY" varchar(180) NOT NULL,
            "PARAM_VALUE" varchar(4000),
            PRIMARY KEY ("CTLG_ID", "PARAM_KEY")
        )
    """,
}


def hive_3_jars(cache: Path) -> Path:
    """Return the folder of the 3.1.3 server's own jars."""
    return cache / "hive-3.1.3"


def template(version: str, cache: Path) -> Path:
    """Return the folder of a metastore version's database template. It is another folder when the additions to its
    schema change."""
    return cache / "templates" / f"{version}-{hashlib.blake2b(_ADDITIONS[version].encode(), digest_size=4).hexdigest()}"


def unpack_delta(cache: Path) -> None:
    """Make the folder of Delta's jars anew, out of artifacts that are in the cache."""
    with tempfile.TemporaryDirectory(prefix="unpack-", dir=cache) as scratch:
        folder = Path(scratch) / "jars"
        folder.mkdir()
        for artifact in manifest.DELTA_JARS:
            shutil.copy2(artifact.path(cache), folder)
        shutil.rmtree(delta_folder(cache), ignore_errors=True)
        folder.replace(delta_folder(cache))


def unpack_demo(cache: Path) -> None:
    """Make what the demo lacks, out of artifacts that are in the cache."""
    if not hive_3_jars(cache).is_dir():
        _unpack_hive_3_jars(cache)
    _build_template("3.1.3", cache)


def unpack_tests(cache: Path) -> None:
    """Make what only tests need and the cache lacks, out of artifacts that are in the cache: the template of 4.2.0."""
    _build_template("4.2.0", cache)


def _build_template(version: str, cache: Path) -> None:
    if not template(version, cache).is_dir():
        archive, schema = _SCHEMAS[version]
        build_template(_member(archive.path(cache), schema) + _ADDITIONS[version], template(version, cache))


def _unpack_hive_3_jars(cache: Path) -> None:
    """Unpack all jars of the distribution except its Derby, which is never used and older than the one Java 17
    wants."""
    with tempfile.TemporaryDirectory(prefix="unpack-", dir=cache) as scratch:
        folder = Path(scratch) / "jars"
        folder.mkdir()
        with tarfile.open(manifest.HIVE_3_DISTRIBUTION.path(cache)) as archive:
            for member in archive:
                path = PurePosixPath(member.name)
                if path.parent.name == "lib" and path.suffix == ".jar" and not path.name.startswith("derby"):
                    content = archive.extractfile(member)
                    assert content is not None
                    with (folder / path.name).open("wb") as file:
                        shutil.copyfileobj(content, file)
        folder.replace(hive_3_jars(cache))


def _member(archive: Path, name: str) -> str:
    with tarfile.open(archive) as opened:
        for member in opened:
            if PurePosixPath(member.name).name == name:
                content = opened.extractfile(member)
                assert content is not None
                return content.read().decode()
    raise FileNotFoundError(f"{name} in {archive}")
