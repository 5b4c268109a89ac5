"""The licences of the crates in the native module and the plugin, from ``cargo metadata``.

``python packaging/licences.py`` writes ``LICENSE-THIRD-PARTY``, which goes into wheels and source
distributions; ``--list`` prints name, version and licence of each crate instead.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LINKED = ("flashatlas-module", "flashatlas-nbdkit")
"""The crates whose libraries are in a wheel."""
OURS = "flashatlas-"
TEXTS = ("license", "licence", "copying", "notice", "unlicense", "copyright")
# in these folders of a C library are tests, documentation and tools, which are not linked
APART = ("test", "doc", "example", "contrib", "build", "programs", "po4a")


def metadata() -> dict[str, Any]:
    """Return cargo's metadata of the workspace, for the platform of this machine."""
    target = next(
        line.removeprefix("host: ")
        for line in subprocess.check_output(["rustc", "-vV"], text=True).splitlines()
        if line.startswith("host: ")
    )
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    command += ["--filter-platform", target]
    return json.loads(subprocess.check_output(command, cwd=ROOT))


def linked(known: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the linked crates of other projects, without macros, build scripts and tests."""
    packages = {package["id"]: package for package in known["packages"]}
    nodes = {node["id"]: node for node in known["resolve"]["nodes"]}
    found: set[str] = set()
    left = [id for id, package in packages.items() if package["name"] in LINKED]
    while left:
        id = left.pop()
        macro = any("proc-macro" in target["kind"] for target in packages[id]["targets"])
        if id in found or macro:
            continue
        found.add(id)
        left += [
            dependency["pkg"]
            for dependency in nodes[id]["deps"]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"])
        ]
    others = (packages[id] for id in found)
    return sorted(
        (package for package in others if not package["name"].startswith(OURS)),
        key=lambda package: (package["name"], package["version"]),
    )


def texts(package: dict[str, Any]) -> list[Path]:
    """Return the licence files of a crate, and of a C library inside it."""
    folder = Path(package["manifest_path"]).parent
    files = [
        path
        for depth in ("*", "*/*")
        for path in folder.glob(depth)
        if path.is_file()
        and path.suffix not in (".rs", ".c", ".h", ".py", ".toml")
        and path.name.lower().startswith(TEXTS)
        and not path.relative_to(folder).parts[0].lower().startswith(APART)
    ]
    return sorted(set(files))


def document(packages: list[dict[str, Any]]) -> str:
    """Return a text with every crate and its licence, and with each licence text once."""
    lines = ["FlashAtlas's native module is linked from the crates below.", ""]
    shared: dict[str, list[str]] = {}
    for package in packages:
        name = f"{package['name']} {package['version']}"
        lines.append(f"{name}: {package['license']}")
        for path in texts(package):
            body = path.read_text(encoding="utf-8", errors="replace").strip()
            if "GNU" in body[:200]:
                # skip the licence of tools of a library, or the alternative that is not used
                continue
            folder = Path(package["manifest_path"]).parent
            shared.setdefault(body, []).append(f"{name} ({path.relative_to(folder)})")
    for body, users in shared.items():
        lines += ["", "=" * 80, *users, "-" * 80, body]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the file, or list the crates."""
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--list", action="store_true", help="print the crates instead")
    chosen = arguments.parse_args()
    packages = linked(metadata())
    if chosen.list:
        for package in packages:
            print(f"{package['name']} {package['version']}: {package['license']}")
        return 0
    bare = [package["name"] for package in packages if not texts(package)]
    (ROOT / "LICENSE-THIRD-PARTY").write_text(document(packages), encoding="utf-8")
    print(f"LICENSE-THIRD-PARTY: {len(packages)} crates", file=sys.stderr)
    if bare:
        # the list names the licences of these crates by their identifiers
        print(f"without their own text: {', '.join(bare)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
