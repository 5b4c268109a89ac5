"""Every code block of the documentation is run, compiled or parsed.

A comment before a block says how, if the language of the block does not:

- ``<!-- long -->``: only `make test-full` runs it.
- ``<!-- fails -->``: its command ends with an error.
- ``<!-- in the tree -->``: commands of a source tree; what they name must exist.
- ``<!-- NAME -->``: the block is the file of this name, for the commands below it. A Python block
  must have a name that ends in ``.py``; it is not run on its own.

Commands and Python of a third of the pages are run, if they are drawn at all (``drawn.py``).

Blocks of a page run in their order, in a folder of its own. The test skips the blocks for which a
program is missing, and names the program. Rust is compiled by ``guides.py``.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import guides
import pytest
from conftest import ONE_IN, ROOT, matches
from drawn import changed, drawn
from flashatlas.fetch import fetch
from test_readme import run

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [
        ROOT / "CONTRIBUTING.md",
        ROOT / "HACKING.md",
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("docs/howto/*.md"),
    ]
    if path.name != "index.md"  # a page of the site, which the site's build checks
)

CLOUD = ROOT / "out/traces/cloudPhysicsIO.vscsi"
"""A downloaded trace: blocks that name it run only if the file exists."""

PROGRAMS = {"flashatlas serve": "nbdkit", "nbdinfo": "nbdinfo", "fio ": "fio"}
"""Programs of `make system-tests` that a block needs if it contains the text."""

APART = {"docs/guide.md"}
"""Pages with a test of their own."""

FENCE = re.compile(
    r"(?:^ *<!-- ([^\n]*?) -->\n)?^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """A code block: its comment, language, and text without its indentation."""

    comment: str
    language: str
    text: str


def blocks(page: str) -> list[Block]:
    found = FENCE.findall((ROOT / page).read_text(encoding="utf-8"))
    return [
        Block(comment, language, re.sub(f"^{indent}", "", text, flags=re.MULTILINE))
        for comment, indent, language, text in found
    ]


TAKEN = {
    page
    for number, page in enumerate(PAGES)
    if f"pages-{1 + number % 3}" in drawn() or page in changed()
}
"""Pages whose programs are run; on other pages only files and settings are read."""


@pytest.mark.parametrize("page", [page for page in PAGES if page not in APART])
def test_the_blocks_of_a_page_do_what_they_say(page, tmp_path):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    fetch("postgres", tmp_path / "out/traces")
    if CLOUD.exists():
        (tmp_path / "out/traces" / CLOUD.name).symlink_to(CLOUD)
    missing = set()
    for block in blocks(page):
        if block.comment == "long" and ONE_IN > 1:
            continue
        if "cloudphysics" in block.text.lower() and not CLOUD.exists():
            continue  # a download of 80 MB
        run_by = {"sh": shell, "console": console, "python": python}.get(block.language)
        if run_by is None:
            other(block, tmp_path)
        elif block.comment == "in the tree":
            run_by(block, tmp_path)
        elif page in TAKEN:
            lacking = {
                program
                for text, program in PROGRAMS.items()
                if text in block.text and shutil.which(program) is None
            }
            missing |= lacking
            if not lacking:
                run_by(block, tmp_path)
    if missing:
        pytest.skip(f"{' and '.join(sorted(missing))} not installed (make system-tests)")


def shell(block: Block, folder: Path) -> None:
    if block.comment == "in the tree":
        in_the_tree(block.text)
        return
    done = run(f"set -e\n{block.text}", folder)
    if block.comment == "fails":
        assert done.returncode in (1, 2, 3, 4) and done.stderr, block.text
    else:
        assert done.returncode == 0, f"{block.text}\n{done.stderr}"


def in_the_tree(text: str) -> None:
    """Assert that all targets of make, crates and scripts in the commands exist."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"\bmake ([a-z-]+)", text):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"make {target}"
    for crate in re.findall(r"-p flashatlas-([a-z]+)", text):
        assert (ROOT / "crates" / crate).is_dir(), crate
    for script in re.findall(r"\b(?:tests|packaging)/\w+\.py", text):
        assert (ROOT / script).exists(), script


def console(block: Block, folder: Path) -> None:
    """Run the commands behind ``$``, and compare their output; dots stand for any lines."""
    commands = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
    assert commands, block.text
    for entry in commands:
        command, *shown = entry.strip("\n").split("\n")
        done = run(command, folder)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        printed = [line.rstrip() for line in done.stdout.strip("\n").splitlines()]
        assert not shown or matches(shown, printed), f"{command}\n{done.stdout}"


def python(block: Block, folder: Path) -> None:
    """Run a whole program; a part of a file of the tree (``...`` is the rest) must only parse."""
    compile(block.text, "a block", "exec")
    if block.comment.endswith(".py"):
        (folder / block.comment).write_text(block.text, encoding="utf-8")
    elif block.comment != "in the tree":
        (folder / "block.py").write_text(block.text, encoding="utf-8")
        done = run(f"{sys.executable} block.py", folder)
        assert done.returncode == 0, f"{block.text}\n{done.stderr}"


def other(block: Block, folder: Path) -> None:
    if block.language == "toml":
        tomllib.loads(block.text)
    elif block.language == "json":
        json.loads(block.text)
    elif block.language == "rust":
        return  # test_every_rust_block_is_compiled
    elif block.language == "c":
        return  # crates/capi/tests/suite/guide.rs runs the blocks of embed-a-drive.md
    else:
        assert block.language in ("text", "ini"), f"no language is known:\n{block.text}"
    if block.comment:
        (folder / block.comment).write_text(block.text, encoding="utf-8")


def test_every_rust_block_is_compiled():
    """``make test-guides`` compiles them in a copy of the sources; it must list all pages."""
    found = {page for page in PAGES for block in blocks(page) if block.language == "rust"}
    assert found == {f"docs/howto/{guide}" for guide in guides.GUIDES}


LINKING = [
    *PAGES,
    "README.md",
    *(
        p.relative_to(ROOT).as_posix()
        for p in [*ROOT.glob("docs/adr/*"), *ROOT.glob("papers/*/*.md")]
    ),
]


@pytest.mark.parametrize("page", LINKING)
def test_every_link_leads_somewhere(page):
    folder = (ROOT / page).parent
    text = (ROOT / page).read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", text):
        if "://" in target:
            continue
        path = (folder / target).resolve() if target else ROOT / page
        assert path.exists(), f"{page}: {target}"
        if anchor and path.suffix == ".md":
            headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {slug(heading) for heading in headings}, f"{page}: {target}#{anchor}"


def slug(heading: str) -> str:
    """Return the anchor of a heading, as forges make it."""
    kept = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
    return kept.strip().replace(" ", "-")


def test_every_page_is_in_the_index_of_the_site():
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    pages = [path for path in (ROOT / "docs").glob("*.md") if path.name != "index.md"]
    howtos = [path for path in (ROOT / "docs/howto").glob("*.md") if path.name[:4] != "add-"]
    assert len(pages) >= 9 and len(howtos) >= 9
    named = [page.name for page in pages] + [f"howto/{page.stem}" for page in howtos]
    assert [name for name in named if name not in index] == []
