"""What `deploy/` has is valid, and fits what calque is."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from calque.app import APP
from calque.cli import commands
from calque.config.extras import DISTRIBUTION
from support.places import ROOT

DEPLOY = ROOT / "deploy"


def documents() -> dict[str, Any]:
    return {one["kind"]: one for one in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())}


def test_the_container_file_passes_hadolint() -> None:
    program = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([program, DEPLOY / "Containerfile"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_manifests_are_those_of_kubernetes() -> None:
    found = documents()
    assert found.keys() == {"ConfigMap", "Secret", "Service", "StatefulSet"}
    for document in found.values():
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


def test_the_manifests_fit_together_and_fit_calque(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = documents()
    for name, value in found["Secret"]["stringData"].items():
        monkeypatch.setenv(name, value)
    file = tmp_path / "calque.toml"
    file.write_text(found["ConfigMap"]["data"]["calque.toml"])
    config = APP.load(file)
    pod = found["StatefulSet"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert found["StatefulSet"]["spec"]["replicas"] == 1
    assert config.serve.address is not None
    assert [port["containerPort"] for port in container["ports"]] == [config.serve.address.port]
    assert commands.get_command(None, container["args"][0]) is not None  # type: ignore[arg-type]
    mounts = {mount["name"]: Path(mount["mountPath"]) for mount in container["volumeMounts"]}
    assert mounts["state"] in Path(config.state.path).parents
    text = (DEPLOY / "Containerfile").read_text()
    assert f"ENV CALQUE_CONFIG={mounts['config']}/calque.toml" in text
    user = pod["securityContext"]["runAsUser"]
    assert f"--uid {user} " in text
    assert f"\nUSER {user}\n" in text
    for copied in re.findall(r"^COPY (?!--)(.*) \S+$", text, re.MULTILINE):
        assert all((ROOT / name).exists() for name in copied.split())
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["path"] in ("/healthz", "/readyz")
    assert extras_of_image() <= set(known_extras())


def locked(name: str) -> dict[str, tuple[str, int]]:
    """Version and number of hashes of each package in a file of `deploy/`."""
    found: dict[str, tuple[str, int]] = {}
    for entry in re.split(r"\n(?=\S)", (DEPLOY / name).read_text().strip()):
        head, *hashes = [line.strip(" \\") for line in entry.splitlines()]
        package, _, version = head.partition("==")
        assert all(one.startswith("--hash=sha256:") for one in hashes)
        found[canonicalize_name(package)] = version, len(hashes)
    return found


def test_the_image_installs_pinned_versions_with_hashes_and_nothing_else() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()[1:]
    pinned = {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}
    found = locked("requirements.txt")
    assert {name: version for name, (version, _) in found.items()} == {name: pinned[name] for name in found}
    assert all(hashes for _, hashes in (found | locked("build-requirements.txt")).values())
    needed, waiting = set(), [(DISTRIBUTION, frozenset(extras_of_image()))]
    while waiting:
        package, extras = waiting.pop()
        for text in requires(package) or ():
            one = Requirement(text)
            environments = [{"extra": extra, "platform_system": "Linux"} for extra in ("", *extras)]
            wanted = canonicalize_name(one.name), frozenset(one.extras)
            is_wanted = one.marker is None or any(one.marker.evaluate(each) for each in environments)
            if is_wanted and wanted not in needed:
                needed.add(wanted)
                waiting.append(wanted)
    assert found.keys() == {name for name, _ in needed}


def test_the_image_takes_nothing_from_an_index_without_a_hash() -> None:
    text = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ")
    calls = re.findall(r"pip (?:install|wheel) [^&\n]*", text)
    assert len(calls) == 4
    assert all("--require-hashes" in call or "--no-index" in call for call in calls)
    assert all("--no-build-isolation" in call for call in calls if call.startswith("pip wheel"))


def extras_of_image() -> set[str]:
    [extras] = re.findall(rf"{DISTRIBUTION}\[(.*?)\]", (DEPLOY / "Containerfile").read_text())
    return set(extras.split(","))


def known_extras() -> set[str]:
    return set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


def test_the_unit_gives_the_process_no_more_than_it_needs() -> None:
    lines = (DEPLOY / "calque.service").read_text().splitlines()
    settings = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    assert {
        name: settings[name] for name in ("User", "StateDirectoryMode", "CapabilityBoundingSet", "LimitNOFILE")
    } == {
        "User": "calque",
        "StateDirectoryMode": "0700",
        "CapabilityBoundingSet": "",
        "LimitNOFILE": "65536",
    }
    protected = ("NoNewPrivileges", "PrivateTmp", "PrivateDevices", "ProtectKernelModules", "ProtectKernelTunables")
    assert {settings[name] for name in protected} == {"true"}
    assert (settings["ProtectSystem"], settings["ProtectHome"], settings["UMask"]) == ("full", "read-only", "0022")
    assert (
        f"useradd --system --user-group --home-dir /var/lib/{settings['StateDirectory']}"
        in (ROOT / "docs" / "deployment.md").read_text()
    )


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_the_unit_passes_systemd(tmp_path: Path) -> None:
    unit = tmp_path / "calque.service"
    text = (DEPLOY / "calque.service").read_text().replace("/opt/calque/bin/calque", sys.executable)
    unit.write_text(text.replace("User=calque", "User=root"))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
