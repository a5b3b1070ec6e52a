"""What `deploy/` has is valid, and fits what calque is."""

from __future__ import annotations

import re
import shlex
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
from calque.errors import Refused
from calque.model.secrets import VariableSecret
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


def test_the_pod_writes_to_its_volumes_alone() -> None:
    pod = documents()["StatefulSet"]["spec"]
    [container] = pod["template"]["spec"]["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
    assert mounts == {"/var/lib/calque": "state", "/tmp": "tmp"}
    [of_tmp] = [volume for volume in pod["template"]["spec"]["volumes"] if volume["name"] == "tmp"]
    assert "emptyDir" in of_tmp
    assert [claim["metadata"]["name"] for claim in pod["volumeClaimTemplates"]] == ["state"]
    home = re.findall(r"--home-dir (\S+)", (DEPLOY / "Containerfile").read_text())
    assert home == ["/var/lib/calque"]


def test_the_commented_key_of_the_store_is_a_configuration_with_a_secret_that_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (DEPLOY / "kubernetes.yaml").read_text()
    whole, count = re.subn(r"^( +)# (storage = |S3_\w+: )", r"\1\2", text, flags=re.MULTILINE)
    assert count == 3
    found = {one["kind"]: one for one in yaml.safe_load_all(whole)}
    for document in found.values():
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
    for name, value in found["Secret"]["stringData"].items():
        monkeypatch.setenv(name, value)
    file = tmp_path / "calque.toml"
    file.write_text(found["ConfigMap"]["data"]["calque.toml"])
    assert APP.load(file).targets["dr"].keys.storage["secret"] == VariableSecret("S3_SECRET")
    monkeypatch.delenv("S3_SECRET")
    with pytest.raises(Refused, match="S3_SECRET"):
        APP.load(file)


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


def unit() -> dict[str, list[str]]:
    """The settings of the unit, each with all its values."""
    found: dict[str, list[str]] = {}
    for line in (DEPLOY / "calque.service").read_text().splitlines():
        if "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
    return found


def recipe() -> list[list[str]]:
    """The words of each line by which docs/deployment.md installs calque on a host."""
    page = (ROOT / "docs" / "deployment.md").read_text()
    [block] = [text for text in re.findall(r"```sh\n(.*?)```", page, re.DOTALL) if "useradd" in text]
    return [shlex.split(line) for line in block.splitlines()]


def folders_of_recipe() -> dict[str, str]:
    """The folders that the recipe makes, each with its owner."""
    found = {}
    for words in recipe():
        if words[:2] == ["install", "--directory"]:
            options = dict(word.removeprefix("--").split("=") for word in words[2:-1])
            found[words[-1]] = options.get("owner", "root")
    return found


def test_the_unit_gives_the_process_no_more_than_it_needs() -> None:
    settings = unit()
    assert settings["CapabilityBoundingSet"] == [""]
    assert settings["LimitNOFILE"] == ["65536"]
    assert settings["StateDirectoryMode"] == settings["RuntimeDirectoryMode"] == ["0700"]
    protected = ("NoNewPrivileges", "PrivateTmp", "PrivateDevices", "ProtectKernelModules", "ProtectKernelTunables")
    assert {value for name in protected for value in settings[name]} == {"true"}
    hardening = ("ProtectSystem", "ProtectHome", "UMask")
    assert [settings[name] for name in hardening] == [["strict"], ["read-only"], ["0022"]]


def test_the_recipe_makes_the_user_and_the_folders_that_the_unit_names() -> None:
    settings, folders = unit(), folders_of_recipe()
    [user], [state] = settings["User"], settings["StateDirectory"]
    [useradd] = [words for words in recipe() if words[0] == "useradd"]
    assert useradd[-1] == user
    assert {"--system", "--user-group"} < set(useradd)
    assert useradd[useradd.index("--home-dir") + 1] == f"/var/lib/{state}"
    written = [f"/var/lib/{state}", *(path.removeprefix("-") for path in settings["ReadWritePaths"])]
    assert {path: folders[path] for path in written} == dict.fromkeys(written, user)
    assert settings["WorkingDirectory"] == written[:1]
    read = {settings["EnvironmentFile"][0].removeprefix("-"), config_of_unit()}
    assert read < {words[-1] for words in recipe() if words[0] == "install"}
    assert all(folders[str(Path(path).parent)] == "root" for path in read)
    [program] = settings["ExecStart"]
    assert ["python3", "-m", "venv", str(Path(program.split()[0]).parents[1])] in recipe()
    assert commands.get_command(None, program.split()[1]) is not None  # type: ignore[arg-type]


def config_of_unit() -> str:
    [config] = [value for value in unit()["Environment"] if value.startswith("CALQUE_CONFIG=")]
    return config.partition("=")[2]


def test_the_recipe_s_configuration_writes_only_where_the_unit_lets_it() -> None:
    page = (ROOT / "docs" / "deployment.md").read_text()
    [example] = [tomllib.loads(text) for text in re.findall(r"```toml\n(.*?)```", page, re.DOTALL)]
    warehouse = example["targets"]["dr"]["warehouse"].removeprefix("file://")
    state = Path("/var/lib", unit()["StateDirectory"][0])
    assert all(state in Path(example["state"][key]).parents for key in ("path", "checkpoints"))
    assert any(Path(path.removeprefix("-")) in Path(warehouse).parents for path in unit()["ReadWritePaths"])


def test_commands_of_the_unit_s_user_reach_the_process_at_its_socket() -> None:
    """In the unit's own /tmp they would not find it."""
    settings = unit()
    assert f"XDG_RUNTIME_DIR=/run/{settings['RuntimeDirectory'][0]}" in settings["Environment"]
    assert settings["PrivateTmp"] == ["true"]


def test_the_recipe_copies_the_unit_from_where_calque_has_it() -> None:
    [copied] = [words for words in recipe() if words[-1] == "/etc/systemd/system/"]
    assert copied[-2] == "$(/opt/calque/bin/python -m calque.resources deploy)/calque.service"
    said = [sys.executable, "-m", "calque.resources", "deploy"]
    done = subprocess.run(said, capture_output=True, text=True, check=True, timeout=60)
    assert (Path(done.stdout.strip()) / "calque.service").is_file()
    assert subprocess.run(said[:-1], capture_output=True, check=False, timeout=60).returncode == 64


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed")
def test_the_unit_passes_systemd(tmp_path: Path) -> None:
    unit = tmp_path / "calque.service"
    text = (DEPLOY / "calque.service").read_text().replace("/opt/calque/bin/calque", sys.executable)
    unit.write_text(text.replace("User=calque", "User=root"))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
