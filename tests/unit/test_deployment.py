"""What `deploy/` has is valid, and fits what calque is."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from calque.cli import commands
from calque.config import load

ROOT = Path(__file__).parents[2]
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
    config = load(file)
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
    extras = re.search(r"calque\[(.*?)\]", text)
    assert extras is not None
    assert set(extras[1].split(",")) <= set(known_extras())


def known_extras() -> set[str]:
    return set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_the_unit_passes_systemd(tmp_path: Path) -> None:
    unit = tmp_path / "calque.service"
    text = (DEPLOY / "calque.service").read_text().replace("/opt/calque/bin/calque", sys.executable)
    unit.write_text(text.replace("User=calque", "User=root"))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
