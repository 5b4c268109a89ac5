"""Independent parts of a study: shards, and a Slurm job array that runs them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from flashatlas._core import InputError
from flashatlas.sweep.plan import Plan

SHARD = re.compile(r"(\d+)/(\d+)")


def shard_of(text: str) -> tuple[int, int]:
    """Return the number (from 0) and the count of shards in a text such as ``3/16``.

    Raises:
        InputError: The text is not a shard.

    """
    found = SHARD.fullmatch(text.strip())
    if not found or int(found[1]) >= int(found[2]):
        raise InputError(f"`{text}` is not a shard: write I/N with I from 0 to N-1, such as 0/16")
    return int(found[1]), int(found[2])


def shard(plan: Plan, number: int, count: int) -> Plan:
    """Return every ``count``-th run, so that long and short runs are spread over all shards."""
    return replace(plan, runs=plan.runs[number::count])


def slurm_script(
    study: Path,
    name: str,
    shards: int,
    *,
    cores: int,
    memory_bytes: int,
    store: Path,
    more: Sequence[str] = (),
    container: str | None = None,
) -> str:
    """Return a batch script whose array job carries out a study, one shard in each task.

    Each task may be killed and submitted again: it goes on with the missing runs.

    Args:
        study: The study file.
        name: The name of the job.
        shards: Number of tasks in the array.
        cores: Number of cores of each task.
        memory_bytes: Memory of each task.
        store: The store, on a file system that all nodes share.
        more: Further arguments of ``flashatlas sweep``.
        container: An image that Apptainer runs, instead of the installed program.

    """
    command = ["flashatlas", "sweep", str(study.resolve()), "--store", str(store.resolve())]
    if container:
        root = Path(container).resolve() if Path(container).suffix == ".sif" else container
        command = ["apptainer", "exec", "--bind", str(study.resolve().parent), "--bind",
                   str(store.resolve().parent), str(root), *command]  # fmt: skip
    said = " ".join(map(shlex.quote, [*command, *more]))
    megabytes = -(-memory_bytes // (1 << 20))
    return f"""#!/bin/sh
#SBATCH --job-name={name}
#SBATCH --array=0-{shards - 1}
#SBATCH --cpus-per-task={cores}
#SBATCH --mem={megabytes}M
#SBATCH --output={name}-%A-%a.log
#SBATCH --requeue

# Shard SLURM_ARRAY_TASK_ID of {shards}. Runs in the store are not run again: submit this as often
# as you like. Afterwards: flashatlas results show {shlex.quote(str(store.resolve()))}:{name}
exec {said} \\
  --shard "$SLURM_ARRAY_TASK_ID/{shards}" --jobs "$SLURM_CPUS_PER_TASK" --quiet
"""
