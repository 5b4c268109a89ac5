"""Places where runs are carried out: this machine, a Dask cluster by its address, or Slurm."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from flashatlas._core import InputError
from flashatlas.running import cost

LOCAL, SLURM = "local", "slurm"

MISSING = "sweeps need Dask: pip install 'flashatlas[study]'"

SHARE_OF_MEMORY = 0.8
"""Share of this machine's free memory that all runs together may take."""


@dataclass(frozen=True)
class Reached:
    """A cluster that answers."""

    client: Any
    """A ``distributed.Client``."""
    memory: int | None
    """Bytes that all runs may take together."""
    workers_end: Callable[[], bool] = lambda: False
    """A function that returns ``True`` if the program that starts workers has ended."""

    def is_gone(self) -> bool:
        """Return ``True`` if submitted work will never finish."""
        return self.workers_end() or self.client.status not in ("running", "connecting")


def library() -> Any:
    """Return the module ``distributed``.

    Raises:
        InputError: The module is not installed.

    """
    try:
        import distributed  # noqa: PLC0415
    except ImportError as error:
        raise InputError(MISSING) from error
    return distributed


@contextmanager
def client(
    cluster: str, jobs: int | None, runs: int, options: Mapping[str, Any]
) -> Iterator[Reached]:
    """Yield a Dask cluster, for as long as it is needed.

    Args:
        cluster: ``local`` (processes on this machine), ``slurm`` (jobs that dask-jobqueue submits),
            or the address of a scheduler.
        jobs: Number of workers; on this machine one for each core by default.
        runs: Number of runs: at most this number of workers is started on this machine.
        options: For ``slurm``: arguments of ``dask_jobqueue.SLURMCluster``.

    Raises:
        InputError: The cluster does not exist, or does not answer.

    """
    distributed = library()
    if cluster == LOCAL:
        workers = min(jobs or os.cpu_count() or 1, runs)
        with _local(distributed, workers) as (found, program):
            free = cost.free_memory()
            memory = None if free is None else int(free * SHARE_OF_MEMORY)
            yield Reached(found, memory, lambda: program.poll() is not None)
        return
    if cluster == SLURM:
        with (
            _slurm(jobs or 1, options) as made,
            distributed.Client(made, set_as_default=False) as found,
        ):
            yield Reached(found, None)
        return
    if "://" not in cluster:
        raise InputError(
            f"cluster `{cluster}` is not known: give local, slurm, or the address of a Dask "
            "scheduler such "
            "as tcp://node17:8786"
        )
    try:
        found = distributed.Client(cluster, timeout=10, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(f"cluster {cluster}: no Dask scheduler answers there: {error}") from error
    with found:
        yield Reached(found, _memory_of(found))


def _memory_of(client: Any) -> int | None:
    """Return the memory of all workers; ``None`` if one has no limit."""
    workers = client.scheduler_info(n_workers=-1)["workers"].values()
    limits = [worker["memory_limit"] for worker in workers]
    return sum(limits) if limits and all(limits) else None


@contextmanager
def _local(distributed: Any, workers: int) -> Iterator[tuple[Any, subprocess.Popen[bytes]]]:
    """Yield a client of worker processes on this machine, and the program that starts them.

    The scheduler is a thread of this process.

    A separate program starts the workers, so that a script which calls this needs no ``if __name__
    == "__main__"``. The program replaces a killed worker, and has its own process group, so that
    Ctrl-C reaches this process alone.
    """
    options = {
        "host": "127.0.0.1",
        "nthreads": 1,
        # the study itself counts memory, and a single run may take all of it
        "memory_limit": 0,
        "silence_logs": 50,
    }
    specification = {
        name: {"cls": "distributed.Nanny", "opts": {**options, "name": name}}
        for name in range(workers)
    }
    with distributed.LocalCluster(
        n_workers=0,
        protocol="tcp://",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
    ) as cluster:
        program = subprocess.Popen(
            [sys.executable, "-m", "dask", "spec", cluster.scheduler_address,
             "--spec", json.dumps(specification)],
            env={**os.environ, "DASK_LOGGING__DISTRIBUTED": "critical"},
            start_new_session=True,
        )  # fmt: skip
        try:
            with distributed.Client(cluster, set_as_default=False) as found:
                while len(found.nthreads()) < workers:
                    if (code := program.poll()) is not None:
                        raise InputError(
                            f"the workers on this machine (python -m dask spec) ended with {code}"
                        )
                    time.sleep(0.02)
                yield found, program
        finally:
            cluster.close()
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
            program.wait()


@contextmanager
def _slurm(jobs: int, options: Mapping[str, Any]) -> Iterator[Any]:
    try:
        from dask_jobqueue import SLURMCluster  # noqa: PLC0415
    except ImportError as error:
        raise InputError(
            "cluster slurm needs dask-jobqueue: pip install 'flashatlas[slurm]'"
        ) from error
    try:
        cluster = SLURMCluster(**options)
    except (TypeError, ValueError, OSError, RuntimeError) as error:
        raise InputError(f"cluster slurm: {error}") from error
    with cluster:
        _must_be_taken(cluster.job_script())
        cluster.scale(jobs=jobs)
        yield cluster


def _must_be_taken(script: str) -> None:
    """Ask Slurm if it would accept a job; after a refusal, dask-jobqueue would wait for ever.

    Raises:
        InputError: Slurm would refuse it, or there is no ``sbatch``.

    """
    try:
        done = subprocess.run(
            ["sbatch", "--test-only"], input=script, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise InputError(f"cluster slurm: sbatch cannot be run: {error.strerror}") from error
    if done.returncode:
        lines = [line.removeprefix("sbatch: ") for line in done.stderr.splitlines() if line.strip()]
        raise InputError(f"cluster slurm: sbatch refuses the workers' job: {'; '.join(lines)}")
