"""Programs with one of the planners of `WRONG`: `wrong PLANNER MODULE ARGUMENT…` runs the module so."""

from __future__ import annotations

import runpy
import sys

from support.faults.mutation import ROOT, Alteration, Mutant

ADVANCE, PREPARE = "engine/window/advance.py", "engine/window/prepare.py"
WRONG = {
    "sorted": Mutant(
        PREPARE,
        "a window is sorted into creates, adds, alters and drops",
        "from calque.core.plan.search import Solution, solve",
        "from calque.core.plan.search import Solution\nfrom support.faults.planners import sorted_into_kinds as solve",
    ),
    "files": Mutant(
        PREPARE,
        "files are copied as they are by now",
        "evidence = evidence_of(source, chain, lost, moves, with_bases=with_bases)",
        "from support.faults.planners import files_of_now\n"
        "        evidence = files_of_now(source, evidence_of(source, chain, lost, moves, with_bases=with_bases))",
    ),
    "definitions": Mutant(
        ADVANCE,
        "definitions are copied as they are by now",
        "    perform(side, ready, EventImages(source.journal, ready.plan, moves=ready.moves), changes, applied)",
        "    from support.faults.planners import ImagesOfNow\n"
        "    perform(side, ready, ImagesOfNow(source, ready.plan), changes, applied)",
    ),
}


def main(planner: str, module: str, *arguments: str) -> None:
    sys.path[:0] = [str(ROOT / "lib")]
    sys.meta_path.insert(0, Alteration(WRONG[planner]))
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
