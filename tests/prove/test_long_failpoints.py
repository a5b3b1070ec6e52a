"""Every failpoint, before and after, twice in a row, with real processes on real metastores."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from calque.engine.failpoints import EFFECT_NAMES
from calque.sandbox import Metastore, MetastoreSettings
from support.faults.deaths import NOT_REACHED, REACHES, Site
from support.runs.seeds import seed
from support.services.deployments import Deployment

SECONDS = float(os.environ.get("CALQUE_SECONDS", "60"))
"""So long a failpoint is waited for."""
VERSIONS = ("3.1.3", "4.2.0")
SERVERS = {"source": "3.1.3", **{version: version for version in VERSIONS}}
MORE = 'pin = "hardlink"\nscan = "1s"\n[journal]\nretention = "1s"\n[done]\nmetastore = true\n'
PART = 8
"""Effects of one deployment: what is dropped has to be there before."""
PARTS = [tuple(REACHES)[start : start + PART] for start in range(0, len(REACHES), PART)]
NUMBERS = count(1)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Metastore]]:
    root = tmp_path_factory.mktemp("servers")
    with ThreadPoolExecutor(len(SERVERS)) as pool:
        started = pool.map(
            lambda item: Metastore.start(MetastoreSettings(version=item[1]), root / item[0]), SERVERS.items()
        )
        found = dict(zip(SERVERS, started, strict=True))
    yield found
    for server in found.values():
        server.stop()


def test_every_effect_is_reached_here_or_it_is_said_why_not() -> None:
    assert {*REACHES, *NOT_REACHED} == {*EFFECT_NAMES}


@pytest.mark.timeout(0)
@pytest.mark.parametrize("part", range(len(PARTS)))
def test_whoever_is_killed_twice_at_any_failpoint_goes_on(
    part: int, servers: Mapping[str, Metastore], tmp_path: Path
) -> None:
    """At a target of one version; the seed says of which."""
    version = VERSIONS[(part + seed()) % len(VERSIONS)]
    print(f"CALQUE_SEED={seed()}: {version}")
    deployment = Deployment(tmp_path, next(NUMBERS), servers["source"], {"dr": servers[version]}, seed=1)
    site = Site(deployment, servers["source"], MORE)
    site.begin()
    found = {f"{name}.{side}": 0 for name in PARTS[part] for side in ("before", "after")}
    try:
        if part:
            site.calque("run", "--until", "head")
        for name in found:
            found[name] = site.twice(name, SECONDS)
            print(f"{name}: killed {found[name]} times", flush=True)
        site.check()
    finally:
        deployment.close()
    assert [name for name, times in found.items() if not times] == []
