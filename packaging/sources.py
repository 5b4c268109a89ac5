"""The sources of the Rust crates inside the package, until they are on crates.io.

``python packaging/sources.py`` writes ``python/flashatlas/sources``, which goes into wheels. The
folder is a workspace with all crates that the facade needs, without tests.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INTO = ROOT / "python/flashatlas/sources"
LEFT_OUT = {"module", "fixtures", "capi", "serve", "nbdkit"}
"""Crates that no part of a user needs."""


def main() -> None:
    """Write the folder again from nothing."""
    shutil.rmtree(INTO, ignore_errors=True)
    for crate in sorted(path.parent for path in ROOT.glob("crates/*/Cargo.toml")):
        if crate.name in LEFT_OUT:
            continue
        to = INTO / "crates" / crate.name
        shutil.copytree(
            crate,
            to,
            ignore=shutil.ignore_patterns("tests", "examples", "examples_c", "*.md", "*.json"),
        )
        manifest = (
            (to / "Cargo.toml").read_text(encoding="utf-8").partition("[dev-dependencies]")[0]
        )
        manifest = re.sub(r"^readme = .*\n", "", manifest, flags=re.MULTILINE)
        (to / "Cargo.toml").write_text(manifest, encoding="utf-8")
    workspace = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    workspace = workspace.replace('members = ["crates/*", "benches"]', 'members = ["crates/*"]')
    workspace = re.sub(r"^exclude = \[.*\]\n", "", workspace, flags=re.MULTILINE)
    workspace = re.sub(
        r"^flashatlas-(fixtures|module|capi|serve) = .*\n", "", workspace, flags=re.MULTILINE
    )
    (INTO / "Cargo.toml").write_text(workspace, encoding="utf-8")
    shutil.copy(ROOT / "Cargo.lock", INTO / "Cargo.lock")


if __name__ == "__main__":
    main()
