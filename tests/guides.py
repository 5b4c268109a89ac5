"""Add the code of the guides, word for word, and run the tests of the crate.

``make test-guides`` runs this on a copy of the sources. A guide whose code no longer fits the
sources fails here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]

GUIDES = ("add-a-scheme.md", "add-a-victim-policy.md")
"""Guides with Rust code."""


def blocks(guide: str) -> list[str]:
    """Return the blocks of Rust code in a guide."""
    text = (ROOT / "docs/howto" / guide).read_text(encoding="utf-8")
    return re.findall(r"```rust\n(.*?)```", text, re.DOTALL)


def the_one_with(found: list[str], part: str) -> str:
    """Return the only block that holds ``part``."""
    (block,) = [block for block in found if part in block]
    return block


def register(file: Path, module: str, registry: str) -> None:
    """Add a module to a file, and its entry to a registry there."""
    text = file.read_text(encoding="utf-8")
    text = re.sub(r"^mod ", f"mod {module};\nmod ", text, count=1, flags=re.MULTILINE)
    text, count = re.subn(
        rf"(pub const {registry}: [^=]*=\s*&\[.*?),?\s*\];",
        rf"\1, {module}::DEF];",
        text,
        count=1,
        flags=re.DOTALL,
    )
    assert count == 1, f"{file} has no {registry}"
    file.write_text(text, encoding="utf-8")


def main() -> int:
    """Add the guides' scheme and victim policy to a copy of the sources, and test the copy."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(
            ROOT,
            copy,
            ignore=shutil.ignore_patterns("target", ".venv", "out", ".git", "fuzz", "headers"),
        )
        ftl = copy / "crates/ftl/src"
        scheme = the_one_with(blocks("add-a-scheme.md"), "DEF: SchemeDef")
        (ftl / "schemes/append.rs").write_text(scheme, encoding="utf-8")
        register(ftl / "schemes/mod.rs", "append", "SCHEMES")
        policy = blocks("add-a-victim-policy.md")
        code = the_one_with(policy, "DEF: VictimDef")
        (ftl / "victims/threshold.rs").write_text(code, encoding="utf-8")
        register(ftl / "victims/mod.rs", "threshold", "VICTIMS")
        tests = ftl / "victims/mod.rs"
        text = tests.read_text(encoding="utf-8").rstrip().removesuffix("}")
        test = the_one_with(policy, "#[test]")
        tests.write_text(f"{text}\n{test}}}\n", encoding="utf-8")
        return subprocess.run(
            ["cargo", "test", "--release", "--quiet", "-p", "flashatlas-ftl"],
            cwd=copy,
            env={**os.environ, "CARGO_TARGET_DIR": str(ROOT / "target")},
            check=False,
        ).returncode


if __name__ == "__main__":
    sys.exit(main())
