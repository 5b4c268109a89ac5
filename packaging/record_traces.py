"""Record the traces of real programs that come with the package (``python/flashatlas/data``).

Each program works on ext4 of the running kernel, on a served drive (a blank `tlc-small`, which
replies after its simulated latencies). The trace begins with mkfs, so it determines the whole
content of the drive. The page cache is dropped before reads. Run this as root on Linux with nbdkit,
nbdfuse, PostgreSQL, gcc, Chromium and a network (for pip), at a quiet moment:

    .venv/bin/python packaging/record_traces.py [NAME …]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from flashatlas import serve
from flashatlas.plug import Mounted
from flashatlas.plug.postgres import programs

PROGRAMS = Path(__file__).resolve().parent / "programs"
DATA = Path(__file__).resolve().parents[1] / "python/flashatlas/data"

START = "pg_ctl -D data -w -l log -o \"-k $PWD -h ''\" start > start.log"
FILL = f"""
set -e
initdb -D data > init.log
{START}
createdb -h "$PWD" bench
pgbench -h "$PWD" -i -q -s 10 bench
pg_ctl -D data -w stop
"""
BENCH = f"""
set -e
{START}
pgbench -h "$PWD" -c 4 -T 30 --random-seed=1 bench
pg_ctl -D data -w stop
"""


def _postgres(folder: Path) -> None:
    """Run PostgreSQL, which refuses root, and restart it between filling and benchmark."""
    if not programs():
        sys.exit("postgres: PostgreSQL is not installed")
    subprocess.run(["chown", "postgres", folder], check=True)
    path = {**os.environ, "PATH": f"{programs()}:{os.environ['PATH']}"}
    for script in (FILL, BENCH):
        command = ["runuser", "-u", "postgres", "--", "sh", "-c", script]
        subprocess.run(command, cwd=folder, check=True, env=path)
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3")


def _runs(*command: str) -> Callable[[Path], None]:
    return lambda folder: subprocess.run(command, cwd=folder, check=True) and None


WORK: dict[str, Callable[[Path], None]] = {"postgres": _postgres}
for program in sorted(PROGRAMS.iterdir()):
    WORK[program.stem] = _runs(sys.executable if program.suffix == ".py" else "sh", str(program))


def main() -> None:
    """Record the named traces; record all traces if none is named."""
    if os.geteuid() != 0:
        sys.exit("a file system is mounted here: run this as root")
    for name in sys.argv[1:] or WORK:
        with tempfile.TemporaryDirectory(prefix="flashatlas-record-") as scratch:
            at = Path(scratch)
            at.chmod(0o755)
            record = DATA / f"{name}.fatr"
            with (
                serve("tlc-small", record=record, time="real") as drive,
                Mounted(drive, at, make=True),
            ):
                WORK[name](at)
        print(f"{name}: {record.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
