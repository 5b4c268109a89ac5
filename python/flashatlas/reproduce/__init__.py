"""Published results, computed again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from flashatlas._core import InputError
from flashatlas.reproduce.amplification import Point, hot_cold, theory
from flashatlas.reproduce.protocol import Experiment, Made, Progress
from flashatlas.reproduce.registry import EXPERIMENTS

__all__ = ["EXPERIMENTS", "Experiment", "Made", "Point", "carry_out", "hot_cold", "theory"]


def carry_out(
    name: str,
    traces: str | os.PathLike[str] | None = None,
    *,
    stand_ins: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
    store: str | os.PathLike[str] | None = None,
    cluster: str = "local",
    **options: Any,
) -> Any:
    """Carry out an experiment.

    Args:
        name: ``mast``, ``nvm-map``, ``demand-map``, ``lpmt``, ``hard``, ``hpb``, ``drives`` or
            ``today``.
        traces: Folder of recorded traces; by default the folder in ``FLASHATLAS_TRACES``. A
            generated workload replaces a missing trace.
        stand_ins: Use generated workloads only.
        jobs: Number of runs at the same time.
        progress: As for :func:`flashatlas.compare`.
        store: A folder that keeps the runs as a study with the experiment's name
            (:mod:`flashatlas.sweep`); runs that are there are not run again.
        cluster: With a store, the place of the runs: as for :meth:`flashatlas.Study.run`.
        options: The experiment's own options, which ``flashatlas reproduce NAME --help`` lists.

    Returns:
        The outcome; its type is in ``flashatlas/reproduce/NAME/plan.py``.

    Raises:
        InputError: The experiment does not exist, or a folder or trace that it needs is missing.

    """
    for experiment in EXPERIMENTS:
        if experiment.name == name:
            planned = experiment.plan(traces=traces, stand_ins=stand_ins, **options)
            kept = None if store is None else experiment.kept(Path(store), cluster)
            return planned.carry_out(jobs=jobs, progress=progress, kept=kept)
    names = ", ".join(experiment.name for experiment in EXPERIMENTS)
    raise InputError(f"experiment `{name}` is not known (allowed: {names})")
