"""The download into the cache of files that are published under Maven coordinates.

The resolver is the Ivy that pyspark ships, driven through py4j, with its own default repository, so no Maven is needed.
Each artifact is resolved by itself and never with what it depends on; `manifest` names all that is needed.
`checksums.txt` says what each file is, because a repository's own checksums say only that it sent what it has.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache as cached
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyspark
from py4j.java_gateway import JavaGateway
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from calque.errors import Refused, Unavailable
from calque.resources import TO_INSTALL

_PARALLEL = 4
CHECKSUMS = Path(__file__).with_name("checksums.txt")
"""The file with a line for each artifact: its SHA-256, and its coordinates. `make checksums` writes it anew."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A published file, by its coordinates."""

    group: str
    name: str
    version: str
    extension: str = "jar"
    classifier: str = ""

    @classmethod
    def parse(cls, coordinates: str) -> "Artifact":
        """Return the artifact of `group:name:version[:extension[:classifier]]`."""
        return cls(*coordinates.split(":"))

    def __str__(self) -> str:
        parts = (self.group, self.name, self.version, self.extension, self.classifier)
        return ":".join(part for part in parts if part)

    def path(self, cache: Path) -> Path:
        """Return the path at which the cache keeps the file once it was fetched."""
        suffix = f"-{self.classifier}" if self.classifier else ""
        file_name = f"{self.name}-{self.version}{suffix}.{self.extension}"
        return cache / "artifacts" / self.group / self.name / self.version / file_name


Require = Callable[[Artifact, Path], None]
"""A check of a file, which raises where the file is not the artifact's."""


def fetch(artifacts: Iterable[Artifact], cache: Path, report: Callable[[str], None], checksums: Path) -> int:
    """Download the artifacts that the cache lacks, and return the number of bytes downloaded. Files that the cache has
    are checked as well.

    Raises `Unavailable`, which names the artifact that could not be had, and `Refused` for a file that is not what the
    file of checksums says.
    """
    return download(artifacts, cache, report, partial(require_known, checksums))


def download(artifacts: Iterable[Artifact], cache: Path, report: Callable[[str], None], require: Require) -> int:
    """Download the artifacts that the cache lacks, and return the number of bytes downloaded. `require` checks every
    file, also those that the cache has. Raises `Unavailable` and what `require` raises."""
    missing = []
    for artifact in dict.fromkeys(artifacts):
        if artifact.path(cache).exists():
            require(artifact, artifact.path(cache))
        else:
            missing.append(artifact)
    if not missing:
        return 0
    cache.mkdir(parents=True, exist_ok=True)
    gateway = _ivy_gateway()
    try:
        with TemporaryDirectory(prefix="download-", dir=cache) as scratch, ThreadPoolExecutor(_PARALLEL) as pool:
            sizes = pool.map(partial(_fetch_one, gateway, Path(scratch), cache, require), missing)
            total = 0
            try:
                for artifact, size in zip(missing, sizes, strict=True):
                    report(f"{artifact} ({size / 1e6:.1f} MB)")
                    total += size
            except BaseException:
                # Without a network each of the others would be tried three times before the error is told.
                pool.shutdown(cancel_futures=True)
                raise
            return total
    finally:
        gateway.shutdown()
        gateway.java_process.stdin.close()
        gateway.java_process.wait()


@cached
def checksums(file: Path) -> Mapping[str, str]:
    """Return the SHA-256 of each artifact in the file of checksums, by coordinates."""
    lines = (line.split() for line in file.read_text(encoding="ascii").splitlines())
    return {coordinates: checksum for checksum, coordinates in lines}


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def require_known(known: Path, artifact: Artifact, path: Path) -> None:
    """Check that the file at `path` is the artifact that the file of checksums knows. Raises `Refused` where it is
    not."""
    expected, found = checksums(known).get(str(artifact)), sha256(path)
    if found != expected:
        why = f"Its SHA-256 is {found}, and not {expected}" if expected else f"{known.name} has no line for it"
        todo = f"Nothing of it is run: find out who sent it, then remove {path} and install again"
        raise Refused(f"{artifact} is not what calque was tried with", why, todo)


def installed(artifacts: Iterable[Artifact], cache: Path) -> list[Path]:
    """Return the paths of the artifacts' files. Raises `Unavailable` where one was not fetched."""
    paths = [artifact.path(cache) for artifact in artifacts]
    for path in paths:
        if not path.exists():
            raise Unavailable(
                "The sandbox is not installed completely",
                f"{path} is missing",
                TO_INSTALL,
            )
    return paths


def _fetch_one(gateway: JavaGateway, scratch: Path, cache: Path, require: Require, artifact: Artifact) -> int:
    attempts = Retrying(
        retry=retry_if_exception_type(Unavailable), stop=stop_after_attempt(3), wait=wait_exponential(), reraise=True
    )
    downloaded = attempts(_resolve, gateway, artifact, scratch / str(artifact).replace(":", "_"))
    require(artifact, downloaded)
    kept = artifact.path(cache)
    kept.parent.mkdir(parents=True, exist_ok=True)
    downloaded.replace(kept)
    return kept.stat().st_size


def _ivy_gateway() -> JavaGateway:
    jars = Path(pyspark.__file__).parent / "jars"
    (ivy,) = jars.glob("ivy-*.jar")
    (py4j,) = jars.glob("py4j-*.jar")
    return JavaGateway.launch_gateway(
        jarpath=str(py4j), classpath=str(ivy), java_path=None, die_on_exit=True, enable_auth=True
    )


def _resolve(gateway: JavaGateway, artifact: Artifact, scratch: Path) -> Path:
    jvm: Any = gateway.jvm
    ivy: Any = jvm.org.apache.ivy
    # The local Maven repository is deliberately no resolver here: a `.pom` without its jar there makes Ivy fail.
    repository = ivy.plugins.resolver.IBiblioResolver()
    repository.setName("public")
    repository.setM2compatible(True)
    repository.setUsepoms(False)
    settings = ivy.core.settings.IvySettings()
    settings.setDefaultCache(jvm.java.io.File(str(scratch)))
    settings.addResolver(repository)
    settings.setDefaultResolver("public")

    revision = ivy.core.module.id.ModuleRevisionId.newInstance
    module = ivy.core.module.descriptor.DefaultModuleDescriptor.newDefaultInstance(revision("calque", "sandbox", "1"))
    dependency = ivy.core.module.descriptor.DefaultDependencyDescriptor(
        module, revision(artifact.group, artifact.name, artifact.version), True, False, False
    )
    dependency.addDependencyConfiguration("default", "*")
    attributes = jvm.java.util.HashMap()
    if artifact.classifier:
        attributes.put("m:classifier", artifact.classifier)
    file = ivy.core.module.descriptor.DefaultDependencyArtifactDescriptor(
        dependency, artifact.name, artifact.extension, artifact.extension, None, attributes
    )
    dependency.addDependencyArtifact("default", file)
    module.addDependency(dependency)
    options = ivy.core.resolve.ResolveOptions()
    options.setTransitive(False)
    options.setOutputReport(False)
    options.setLog("quiet")
    resolved = ivy.Ivy.newInstance(settings).resolve(module, options)
    if resolved.hasError():
        problems = "; ".join(str(problem) for problem in resolved.getAllProblemMessages())
        raise Unavailable(f"{artifact} can't be downloaded", problems, "Check the network, and run this again")
    (report,) = resolved.getAllArtifactsReports()
    return Path(report.getLocalFile().getPath())
