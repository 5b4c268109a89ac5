"""Studies on a real Slurm: one node, from Debian's packages, started here.

The test needs root, `slurmctld`, `slurmd` and `munged` (Debian: `apt install slurm-wlm munge`), and
starts daemons. `make test-slurm` and `make test-full` run it, `make test` does not.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from conftest import ONE_IN
from flashatlas.sweep.store import Store

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "sinfo", "scancel", "squeue")
MISSING = [name for name in PROGRAMS if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")
           is None]  # fmt: skip
ASKED_FOR = ONE_IN == 1 or "FLASHATLAS_SLURM" in os.environ
pytestmark = [
    pytest.mark.skipif(not ASKED_FOR, reason="make test-slurm runs it"),
    pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"),
    pytest.mark.skipif(os.geteuid() != 0, reason="Slurm's daemons are started as root"),
]

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
NodeName={host} NodeAddr=127.0.0.1 CPUs={cores} RealMemory=4000 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""

STUDY = """
[run]
drive = "tiny"
workload = "uniform:requests=3000,size=2KiB"
precondition = "fill"
[axes]
ftl.victim = ["greedy", "fifo"]
seed = [1, 2, 3]
"""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture(scope="module")
def slurm():
    """Yield the environment in which `sbatch` and `flashatlas` find a cluster on this machine."""
    folder = Path(tempfile.mkdtemp(prefix="slurm"))  # paths of sockets are short
    for name in ("state", "spool", "munge"):
        (folder / name).mkdir(mode=0o755)
    folder.chmod(0o755)
    key = folder / "munge/key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    host = socket.gethostname().partition(".")[0]
    configuration = folder / "slurm.conf"
    configuration.write_text(
        CONFIGURATION.format(
            host=host, folder=folder, ports=(free_port(), free_port()), cores=os.cpu_count()
        )
    )
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin"
    environment = {**os.environ, "SLURM_CONF": str(configuration), "PATH": path}
    munge = [f"--{what}={folder}/munge/{name}" for what, name in (
        ("socket", "socket"), ("key-file", "key"), ("pid-file", "pid"), ("log-file", "log"),
        ("seed-file", "seed"),
    )]  # fmt: skip
    try:
        for command in (["munged", "--force", *munge], ["slurmctld"], ["slurmd"]):
            subprocess.run(command, env=environment, check=True, capture_output=True, timeout=60)
        until(lambda: "idle" in told(["sinfo", "--noheader", "-o", "%t"], environment))
        yield environment
    finally:
        subprocess.run(["scancel", "--me"], env=environment, check=False, capture_output=True)
        for name in ("slurmd.pid", "slurmctld.pid", "munge/pid"):
            if (folder / name).exists():
                os.kill(int((folder / name).read_text()), 15)
        shutil.rmtree(folder, ignore_errors=True)


def told(command: list[str], environment: dict[str, str]) -> str:
    return subprocess.run(
        command, env=environment, check=False, capture_output=True, text=True
    ).stdout


def until(holds, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.5)


def flashatlas(arguments: list[str], folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["flashatlas", *arguments], cwd=folder, env=environment, capture_output=True, text=True,
        check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_job_array_carries_a_study_out_and_may_be_submitted_again(slurm, tmp_path):
    (tmp_path / "s.toml").write_text(STUDY)
    script = flashatlas(["sweep", "s.toml", "--emit", "slurm", "--shards", "3"], tmp_path, slurm)
    (tmp_path / "s.sbatch").write_text(script)
    for attempt in range(2):
        subprocess.run(
            ["sbatch", "--wait", "s.sbatch"], cwd=tmp_path, env=slurm, check=True, timeout=100
        )
        logs = [file.read_text() for file in sorted(tmp_path.glob("s-*.log"))]
        assert len(logs) == 3 * (attempt + 1)
        assert len(list(Store.open(tmp_path / "flashatlas-results").all_keys())) == 6
    assert sum("2 runs carried out" in log for log in logs) == 3
    assert sum("0 runs carried out, 2 there before" in log for log in logs) == 3
    shown = flashatlas(["results", "ls", "flashatlas-results"], tmp_path, slurm)
    assert "6 runs" in shown


def test_workers_are_jobs_that_come_and_go(slurm, tmp_path):
    pytest.importorskip("dask_jobqueue", reason="the extra [slurm] is not installed")
    (tmp_path / "s.toml").write_text(STUDY)
    printed = flashatlas(
        ["sweep", "s.toml", "--cluster", "slurm", "--jobs", "2", "--cluster-option", "cores=1",
         "--cluster-option", "memory=1GB", "--quiet"],
        tmp_path, slurm,
    )  # fmt: skip
    assert "6 runs carried out" in printed
    until(lambda: not told(["squeue", "--noheader"], slurm).strip())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["core=1"], "core"),
        (["cores=1", "memory=1GB", "queue=nowhere"], "artition"),
        (["cores=1", "memory=900GB"], "refuses the workers' job"),
    ],
)
def test_what_slurm_refuses_is_said_at_once(slurm, tmp_path, options, message):
    pytest.importorskip("dask_jobqueue", reason="the extra [slurm] is not installed")
    (tmp_path / "s.toml").write_text(STUDY)
    given = [argument for option in options for argument in ("--cluster-option", option)]
    done = subprocess.run(
        ["flashatlas", "sweep", "s.toml", "--cluster", "slurm", *given],
        cwd=tmp_path, env=slurm, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2 and "cluster slurm" in done.stderr, done.stderr
    assert message in done.stderr and "Traceback" not in done.stderr
