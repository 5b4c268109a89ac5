"""Fuzz the readers of foreign files: bundles, records, stores, studies, descriptions.

    python fuzz/readers.py --seconds 60 [--seed 1] [--only record] [--keep out/fuzz]

Small inputs are made by running FlashAtlas. A try changes an input, as bytes or as a tree of JSON,
and runs a command that reads it, in this process. The command may succeed, or refuse its input
(exit code 2). If it runs a drive, the run may fail as well (3). A traceback, another exit code, or
more than 20 seconds is a finding: the input is kept, and this program ends with exit code 1.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATIENCE_S = 20
ALLOWED = {0, 2, 3}
ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2**63, 10**25, 1.5, 1e308, "", "x", "../../etc/passwd",
    "/etc/passwd", "a" * 300, "\x00", "[red]", [], {}, [[]], {"": None}, ["x"], {"kind": 1},
]  # fmt: skip
BYTES = [b"", b"\x00", b"\xff", b"[", b"{", b'"', b"]" * 3, b"\n", b"1e999", b"\\ud800", b"\xc3"]
DEEP = 100_000


class Slow(BaseException):
    """A command took longer than is allowed."""


@dataclass(frozen=True)
class Reader:
    """The commands that read one kind of input.

    Attributes:
        name: The kind of the input.
        whole: The file or folder of the input.
        files: The files that may be changed, inside a copy of the input.
        commands: Arguments of the command line, where ``@`` stands for the copy.
        codes: Exit codes that are allowed in addition to :data:`ALLOWED`.

    """

    name: str
    whole: Path
    files: list[str]
    commands: list[list[str]]
    codes: frozenset[int] = frozenset()


def command(*arguments: str) -> tuple[int, str]:
    """Carry out a command in this process; return its exit code and its messages."""
    from flashatlas.cli import main  # noqa: PLC0415

    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace")
    before, sys.argv = sys.argv, ["flashatlas", *arguments]
    code: Any = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv = before
    err.flush()
    return int(code), err.buffer.getvalue().decode(errors="replace")  # type: ignore[attr-defined]


def inputs(folder: Path) -> Iterator[Reader]:
    """Make an input of each kind, and yield it with the commands that read it."""

    def made(*arguments: str) -> None:
        code, said = command(*arguments)
        assert code == 0, (arguments, said)

    os.chdir(folder)
    lines = (f"0,{8 * (i * 7 % 40)},4096,{'rw'[i % 3 > 0]},{i / 1000}\n" for i in range(60))
    Path("t.spc").write_text("".join(lines))
    Path("j.fio").write_text("[a]\nrw=randwrite\nbs=4k\nsize=64k\n")
    made("run", "-t", "t.spc", "-d", "tiny", "--explain", "p99", "--out", "record", "-q")
    made("run", "--job", "j.fio", "-d", "tiny", "--out", "job", "-q")
    made("compare", "-t", "t.spc", "-d", "tiny", "--vary", "ftl.victim=greedy,fifo",
         "--out", "comparison", "-q")  # fmt: skip
    for file in folder.rglob("report.html"):
        file.unlink()
    made("bundle", "record", "-o", "bundle.zip")
    made("bundle", "job", "-o", "jobs.zip")
    Path("study").mkdir()
    Path("study/s.toml").write_text(
        'name = "s"\nexclude = ["ftl.victim == \\"fifo\\" and seed > 1"]\n[run]\ndrive = "tiny"\n'
        'workload = "uniform:requests=20,size=2KiB"\n[axes]\n'
        'ftl.victim = ["greedy", "fifo"]\nseed = { from = 1, to = 2, when = "not seed in [3]" }\n'
    )
    made("sweep", "study/s.toml", "--store", "store", "--quiet", "--jobs", "1")
    Path("drives").mkdir()
    Path("drives/d.toml").write_text('[drive]\nsummary = "small"\nblocks = 32\npages = 8\n')
    Path("drives/n.h").write_text("#define NR_PARTITIONS 1\n#define FLASH_PAGE_SIZE KB(32)\n")
    Path("drives/s.cfg").write_text("[pal]\nPageAllocation = CWDP\nBlock = 32\nPage = 8\n")
    Path("drives/m.xml").write_text(
        "<Execution_Parameter_Set><Device_Parameter_Set><Flash_Channel_Count>2"
        "</Flash_Channel_Count></Device_Parameter_Set></Execution_Parameter_Set>"
    )
    read = [["report", "@", "--out", "page.html"], ["table", "@"], ["cite", "@"],
            ["diff", "@", "@"], ["bundle", "@", "-o", "out.zip"], ["rerun", "@", "-q"],
            ["rerun", "@", "--check", "-q"]]  # fmt: skip
    differs = frozenset({1})
    record = ["run.json", "made.json", "series.parquet", "latency.parquet", "wear.parquet",
              "resources.parquet", "blocks.parquet"]  # fmt: skip
    yield Reader("record", Path("record"), record, read, differs)
    yield Reader("job", Path("job"), ["run.json", "jobs.json"], read, differs)
    yield Reader("comparison", Path("comparison"), ["compare.json", "01/run.json"], read, differs)
    rerun = [["rerun", "@", "-q"], ["rerun", "@", "--check", "-q"]]
    yield Reader("bundle", Path("bundle.zip"), [""], rerun, differs)
    yield Reader("bundle of a job", Path("jobs.zip"), [""], rerun, differs)
    kept = [path.relative_to("store").as_posix() for path in sorted(Path("store").rglob("*"))
            if path.is_file()]  # fmt: skip
    looks = [["results", "ls", "@"], ["results", "show", "@"], ["results", "export", "@"],
             ["results", "gc", "@"], ["table", "@"], ["report", "@", "--out", "page.html"],
             ["sweep", "study/s.toml", "--store", "@", "--dry-run"]]  # fmt: skip
    yield Reader("store", Path("store"), kept, looks)
    dry = [["sweep", "@/s.toml", "--store", "new", "--dry-run"]]
    yield Reader("study", Path("study"), ["s.toml"], dry)
    few = ["-w", "uniform:requests=5,size=2KiB", "-q"]
    yield Reader("drive", Path("drives"), ["d.toml"], [["run", "-d", "@/d.toml", *few]])
    yield Reader("MQSim", Path("drives"), ["m.xml"], [["run", "-d", "mqsim:@/m.xml", *few]])
    yield Reader("SimpleSSD", Path("drives"), ["s.cfg"], [["run", "-d", "simplessd:@/s.cfg", *few]])
    for kind, program in (("nvmevirt", "NVMeVirt"), ("conzone", "ConZone")):
        header = f"{kind}:@/n.h,capacity=64MiB"
        yield Reader(program, Path("drives"), ["n.h"], [["run", "-d", header, *few]])


def nodes(tree: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value of a tree, which may be nested deeply."""
    ahead: list[tuple[Any, tuple[Any, ...]]] = [(tree, ())]
    while ahead:
        value, at = ahead.pop()
        yield at
        if isinstance(value, (dict, list)):
            keys = list(value) if isinstance(value, dict) else range(len(value))
            ahead += [(value[key], (*at, key)) for key in reversed(keys)]


def changed_tree(content: bytes, draw: random.Random) -> bytes:
    """Return a JSON text in which values were changed, removed, or nested deeply."""
    tree = json.loads(content)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        *above, last = draw.choice(list(nodes(tree))[1:] or [("nothing",)])
        inside = tree
        for key in above:
            inside = inside[key]
        if not isinstance(inside, (dict, list)) or not inside:
            break
        what = draw.random()
        if what < 0.3:
            del inside[last]
        elif what < 0.35 and isinstance(inside, dict):
            inside[draw.choice(("", "kind", "\x1b[31m", "a.b"))] = inside.pop(last)
        else:
            inside[last] = draw.choice(ODD)
    text = json.dumps(tree)
    if draw.random() < 0.05:
        text = text.replace("null", "[" * DEEP + "]" * DEEP, 1)
    return text.encode()


def changed_bytes(content: bytes, draw: random.Random) -> bytes:
    """Return bytes, some of which were changed, removed, or doubled."""
    data = bytearray(content)
    for _ in range(draw.choice((1, 1, 2, 8))):
        at = draw.randrange(len(data) + 1)
        until = min(len(data), at + draw.choice((1, 1, 4, 40, 400)))
        data[at:until] = draw.choice(
            [bytes([draw.randrange(256)]), *BYTES, bytes(data[at:until] * 2)]
        )
    return bytes(data)


def changed_zip(content: bytes, draw: random.Random) -> bytes:
    """Return a bundle in which one file was changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        chosen = draw.choice(old.namelist())
        for name in old.namelist():
            here = old.read(name)
            new.writestr(name, changed(name, here, draw) if name == chosen else here)
    return out.getvalue()


def changed(name: str, content: bytes, draw: random.Random) -> bytes:
    """Return the changed content of a file; the kind of file determines the kinds of changes."""
    if name.endswith(".json") and draw.random() < 0.8:
        return changed_tree(content, draw)
    if name.endswith(".zip") and draw.random() < 0.6:
        return changed_zip(content, draw)
    if name.endswith(".toml") and draw.random() < 0.1:
        deep = draw.choice((f"x = {'[' * DEEP}", f'exclude = ["{"not " * DEEP}seed"]'))
        return (deep + "\n").encode() + content
    return changed_bytes(content, draw)


def tried(reader: Reader, draw: random.Random, at: Path) -> str | None:
    """Change an input and read it; return the finding, or ``None``."""
    if at.exists():
        shutil.rmtree(at) if at.is_dir() else at.unlink()
    copy = shutil.copytree if reader.whole.is_dir() else shutil.copyfile
    copy(reader.whole, at)
    file = at / draw.choice(reader.files)
    file.write_bytes(changed(file.name, file.read_bytes(), draw))
    arguments = [part.replace("@", str(at)) for part in draw.choice(reader.commands)]
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
    try:
        code, said = command(*arguments)
    except Slow:
        return f"{' '.join(arguments)}: longer than {PATIENCE_S} s"
    except BaseException as error:
        return f"{' '.join(arguments)}: {type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if "Traceback" in said or code not in ALLOWED | reader.codes:
        return f"{' '.join(arguments)}: exit code {code}\n{said[-3000:]}"
    if code == 1 and said.strip():
        return f"{' '.join(arguments)}: exit code 1 with a complaint\n{said[-3000:]}"
    return None


def _slow(*_: object) -> None:
    raise Slow


def fuzz(
    goes_on: Callable[[str, int], bool], seed: int, keep: Path, only: str | None = None
) -> list[str]:
    """Try every reader while ``goes_on(kind, tries)`` is true; return the findings."""
    found: list[str] = []
    before = Path.cwd()
    signal.signal(signal.SIGALRM, _slow)
    with tempfile.TemporaryDirectory(prefix="flashatlas-fuzz-") as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for reader in inputs(Path(name)):
                if only not in (None, reader.name):
                    continue
                tries = 0
                at = Path(name) / f"changed{reader.whole.suffix}"
                while goes_on(reader.name, tries):
                    wrong = tried(reader, random.Random(f"{seed} {reader.name} {tries}"), at)
                    if wrong is not None:
                        kept = keep / f"{reader.name.replace(' ', '-')}-{seed}-{tries}"
                        keep.mkdir(parents=True, exist_ok=True)
                        copy = shutil.copyfile if at.is_file() else shutil.copytree
                        if not kept.exists():
                            copy(at, kept)
                        found.append(f"{reader.name}, try {tries} of seed {seed}: {wrong}")
                    tries += 1
        finally:
            os.chdir(before)
    return found


def main() -> int:
    """Fuzz each reader for ``--seconds``."""
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--seconds", type=float, default=60.0)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--only")
    asked.add_argument("--keep", type=Path, default=Path("out/fuzz"))
    given = asked.parse_args()
    begun: dict[str, float] = {}
    counts: dict[str, int] = {}

    def goes_on(kind: str, tries: int) -> bool:
        counts[kind] = tries
        return time.monotonic() - begun.setdefault(kind, time.monotonic()) < given.seconds

    found = fuzz(goes_on, given.seed, given.keep.absolute(), given.only)
    for kind, tries in counts.items():
        print(f"{kind}: {tries} tries")
    for wrong in found:
        print(wrong)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
