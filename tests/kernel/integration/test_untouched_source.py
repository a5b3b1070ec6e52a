"""With `data = "none"` nothing below the source's warehouse is changed but by the source, on real metastores."""

from __future__ import annotations

import os
import signal
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support.services.deployments import NUMBERS, Deployment
from support.services.servers import Shared

Tree = dict[str, tuple[int, ...]]
BEFORE, BESIDE, BEHIND = 20, 40, 30
"""How much the writer does before calque comes, beside it, and while it is held up."""


def deployed(shared: Shared, root: Path) -> Deployment:
    """A writer whose random choices are those of every other deployment's."""
    servers = shared("source-3", "target-3", "target-4")
    targets = {"three": servers["target-3"], "four": servers["target-4"]}
    root.mkdir()
    deployment = Deployment(root, next(NUMBERS), servers["source-3"], targets, seed=5)
    deployment.writer.source = deployment.source
    text = deployment.config.read_text()
    text = text.replace("\npoll", '\npin = "none"\npoll')
    deployment.config.write_text(text.replace("\nwarehouse", '\ndata = "none"\nwarehouse'))
    return deployment


def tree(shared: Shared, deployment: Deployment) -> Tree:
    """Size, time, owner, group, mode and number of links of all that the deployment's source has."""
    warehouse = shared("source-3")["source-3"].warehouse
    tops = [path for path in warehouse.iterdir() if path.stem in deployment.databases]
    paths = [*tops, *(path for top in (*tops, deployment.root / "outside") for path in top.rglob("*"))]
    return {str(path): seen(path.stat()) for path in paths}


def seen(status: os.stat_result) -> tuple[int, ...]:
    size = 0 if stat.S_ISDIR(status.st_mode) else status.st_size
    return (size, status.st_mtime_ns, status.st_uid, status.st_gid, status.st_mode, status.st_nlink)


def without_times(rows: Tree, deployment: Deployment) -> Tree:
    """As any deployment has it."""
    number = str(deployment.number)
    return {
        path.replace(f"x{number}.db", "x.db").replace(str(deployment.root), ""): (row[0], *row[2:])
        for path, row in rows.items()
    }


def test_a_source_has_what_its_writer_left_there_and_nothing_else(shared: Shared, tmp_path: Path) -> None:
    followed, alone = deployed(shared, tmp_path / "followed"), deployed(shared, tmp_path / "alone")
    with ThreadPoolExecutor(1) as pool:
        try:
            nobody_beside = pool.submit(alone.write, BEFORE + BESIDE + BEHIND)
            followed.write(BEFORE)
            followed.start()
            followed.wait_for(lambda status: status["position"] is not None)
            followed.write(BESIDE)
            assert followed.process is not None
            followed.process.send_signal(signal.SIGSTOP)
            followed.write(BEHIND)
            left = tree(shared, followed)
            nobody_beside.result()
            assert without_times(left, followed) == without_times(tree(shared, alone), alone)
            followed.process.send_signal(signal.SIGCONT)
            followed.settle()
            assert tree(shared, followed) == left
            followed.check_equal()
        finally:
            followed.close()
            alone.close()
