"""Record the traces of real programs that come with the package (``python/flashatlas/data``).

Each program works on an ext4 of the running kernel, on a served drive (`tlc-small`, blank, replies
as late as the drive's): its trace begins with the making of the file system, so that it says itself
what the drive holds. The page cache is dropped before what is to be read. As root on Linux with
nbdkit, nbdfuse, PostgreSQL, gcc and a network (for pip), at a quiet moment:

    .venv/bin/python packaging/record_traces.py [NAME …]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from flashatlas.plug import Mounted
from flashatlas.plug.postgres import programs
from flashatlas.serve import serve

DATA = Path(__file__).resolve().parents[1] / "python/flashatlas/data"

SQLITE = """
import os, random, sqlite3
draw = random.Random(1)
db = sqlite3.connect("shop.db", isolation_level=None)
db.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, stock INTEGER)")
db.execute("CREATE INDEX by_name ON item (name)")
db.execute("BEGIN")
for n in range(60000):
    db.execute("INSERT INTO item VALUES (?, ?, 100)", (n, f"{draw.random():.12f}" * 4))
db.execute("COMMIT")
os.sync()
open("/proc/sys/vm/drop_caches", "w").write("3")
for mode in ("DELETE", "WAL"):
    db.execute(f"PRAGMA journal_mode={mode}")
    for _ in range(1200):
        db.execute("BEGIN")
        for _ in range(draw.randrange(1, 5)):
            item = (draw.randrange(60000),)
            db.execute("SELECT name FROM item WHERE id = ?", item).fetchone()
            db.execute("UPDATE item SET stock = stock - 1 WHERE id = ?", item)
        db.execute("COMMIT")
db.execute("VACUUM")
"""

MAIL = """
import os, random
draw = random.Random(1)
for name in ("tmp", "new", "cur"):
    os.mkdir(name)
def synced(folder):
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
for n in range(2000):
    with open(f"tmp/{n}", "wb") as mail:
        mail.write(draw.randbytes(int(draw.lognormvariate(8.5, 1))))
        mail.flush()
        os.fsync(mail.fileno())
    os.rename(f"tmp/{n}", f"new/{n}")
    synced("new")
    if n > 50 and draw.random() < 0.6:
        read = draw.choice(os.listdir("new"))
        open(f"new/{read}", "rb").read()
        os.rename(f"new/{read}", f"cur/{read}")
    if n > 200 and draw.random() < 0.4 and os.listdir("cur"):
        os.remove(f"cur/{draw.choice(os.listdir('cur'))}")
    if n % 500 == 499:
        os.sync()
        open("/proc/sys/vm/drop_caches", "w").write("3")
"""

COMPILE = """
set -e
source=$(ls -d ~/.cargo/registry/src/*/zstd-sys-*/zstd/lib | tail -1)
cp -r "$source" lib && sync
echo 3 > /proc/sys/vm/drop_caches
find lib -name '*.c' | sort | xargs -P 2 -n 1 sh -c 'gcc -O1 -c -o "$0.o" "$0"'
sync
find lib -name '*.o' | xargs ar rcs libzstd.a
sync
find lib -name '*.o' -delete
"""

PACKAGES = """
set -e
python3 -m venv there
there/bin/pip install --quiet --no-cache-dir --disable-pip-version-check numpy rich pillow
sync
echo 3 > /proc/sys/vm/drop_caches
there/bin/python -c 'import numpy, rich.console, PIL.Image'
there/bin/pip uninstall --quiet --yes --disable-pip-version-check pillow
"""

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
    """It does not run as root: what it does between two of its lives is done here."""
    if not programs():
        sys.exit("postgres: PostgreSQL is not installed")
    subprocess.run(["chown", "postgres", folder], check=True)
    path = {**os.environ, "PATH": f"{programs()}:{os.environ['PATH']}"}
    for script in (FILL, BENCH):
        command = ["runuser", "-u", "postgres", "--", "sh", "-c", script]
        subprocess.run(command, cwd=folder, check=True, env=path)
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3")


def _python(script: str) -> Callable[[Path], None]:
    return lambda folder: _run([sys.executable, "-c", script], folder)


def _shell(script: str) -> Callable[[Path], None]:
    return lambda folder: _run(["sh", "-c", script], folder)


def _run(command: list[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, check=True)


WORK: dict[str, Callable[[Path], None]] = {
    "postgres": _postgres,
    "sqlite": _python(SQLITE),
    "compile": _shell(COMPILE),
    "packages": _shell(PACKAGES),
    "mail": _python(MAIL),
}


def main() -> None:
    """Record those that are named, or all."""
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
