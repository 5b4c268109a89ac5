"""The choice of `make test` among the longest proofs: one of fourteen, by the commit's hash.

`make test-full` (FLASHATLAS_PROOFS=1) takes all. Run as a program, this file prints the drawn
proofs.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parent.parent

Item = TypeVar("Item")

LEFT = "another commit runs it, and make test-full"
"""The reason of every test that is skipped because it was not drawn."""

PROOFS = (
    "seeded-bugs",
    "interleavings",
    "templates",
    "pages-1",
    "pages-2",
    "pages-3",
    "clients",
    "guest",
    "experiments-1",
    "experiments-2",
    "demo",
    "hacking",
    "report-page",
    "study-page",
)
"""The proofs, each about as long as the others: bugs on purpose, and threads whose order is drawn,
which need builds of their own; parts in Rust that are made from the templates, which need another
build; the code blocks of each third of the documentation; databases under pulled plugs, and
experiments by real clients; a guest's own kernel under pulled plugs; the papers' experiments on few
requests, about maps and about other things; `make demo`; the commands of HACKING; the use of a
report, and of a study's page, in a browser."""

FILES = {
    "interleavings": ("crates/serve/src/",),
    "templates": ("python/flashatlas/templates/", "python/flashatlas/scaffold.py"),
    "experiments-1": ("python/flashatlas/reproduce/", "papers/"),
    "experiments-2": ("python/flashatlas/reproduce/", "papers/"),
    "guest": (
        "python/flashatlas/plug/guest/",
        "python/flashatlas/serving/",
        "crates/nvme",
        "crates/serve/",
        "tests/test_guest.py",
        "tests/test_nvme_",
    ),
    "demo": ("Makefile", "examples/"),
    "hacking": ("HACKING.md",),
    "report-page": (
        "python/flashatlas/report/",
        "tests/browser.py",
        "tests/test_report_browser.py",
    ),
    "study-page": (
        "python/flashatlas/report/",
        "python/flashatlas/sweep/page",
        "tests/browser.py",
        "tests/test_study_page.py",
    ),
    "clients": ("python/flashatlas/plug/", "python/flashatlas/reproduce/served.py"),
}
"""Files and folders by proof: if one of them changed, the proof is taken in any case."""


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else ""


def _hash() -> int:
    return int((_git("rev-parse", "HEAD") or "0")[:8], 16)


def sample(items: Sequence[Item], one_in: int) -> list[Item]:
    """Return one in ``one_in`` of the items, chosen by the commit's hash; all in a full test."""
    return list(items if _everything() else items[_hash() % one_in :: one_in])


def _everything() -> bool:
    return os.environ.get("FLASHATLAS_PROOFS") == "1"


@cache
def drawn() -> set[str]:
    """Return the proofs that are taken."""
    if _everything():
        return set(PROOFS)
    at_hand = {PROOFS[_hash() % len(PROOFS)]}
    forced = {name for name, paths in FILES.items() if any(c.startswith(paths) for c in changed())}
    return at_hand | forced


def touched(name: str) -> bool:
    """Return `True` if the last commit changed a file or folder of this name, or its tests."""
    of_it = {name, f"test_{name}"}
    return any(of_it & {*Path(c).parent.parts, Path(c).stem} for c in changed())


@cache
def changed() -> set[str]:
    """Return the files that differ from the last commit but one; their tests run in any case."""
    return set(_git("diff", "--name-only", "HEAD~1").splitlines())


if __name__ == "__main__":
    print(*sorted(drawn()))
