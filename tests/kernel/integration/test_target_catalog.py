"""A plugin brings a target that is no Hive metastore: a folder, and no line of the kernel."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from calque.sandbox import Metastore
from calque.sandbox.writer import HiveClient
from support.services.deployments import NUMBERS, Deployment


def test_a_target_whose_catalog_a_plugin_opens_is_filled_and_equals_the_source(
    servers: Mapping[str, Metastore], tmp_path: Path
) -> None:
    """First a bootstrap, then windows. The metastore that the file names for the target is asked nothing."""
    deployment = Deployment(tmp_path, next(NUMBERS), servers["source"], {"three": servers["target"]}, seed=2)
    deployment.write(40)
    command = [sys.executable, "-m", "support.memory.target_plugin", str(deployment.config)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdout is not None
        before = ""
        for line in process.stdout:
            if line == "filled\n":
                break
            before += line
        deployment.write(15)
        after, _ = process.communicate("\n", timeout=300)
    assert process.returncode == 0, before + after
    assert "three equals the source" in after
    at_metastore = HiveClient(servers["target"].uri).catalog.databases()
    assert {*deployment.databases, *(f"{name}_dr" for name in deployment.databases)}.isdisjoint(at_metastore)
