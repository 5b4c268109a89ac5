"""Install the wheel and the source distribution in environments without this tree and Rust.

``python packaging/check.py dist`` makes a new environment for each Python from 3.10 on that is on
the path or in pyenv. It installs the wheel without the extra, and runs commands that a user would
run: a run of the trace in the package, power failures, a comparison with theory. Then it installs
the extra, and makes reports. With ``--sdist`` it also builds the source distribution, which needs
Rust. Every symbol that the module uses from Python must belong to the stable ABI.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

OLDEST = (3, 10)
HERE = Path(sys.prefix) / "bin"

COMMANDS = [
    "flashatlas --version",
    "flashatlas drives",
    "flashatlas trace fetch demo --to .",
    "flashatlas run -d tlc-small --trace demo.fatr --fit compact --precondition fill -q --out run",
    "flashatlas table run -o run.csv",
    "flashatlas crash --one-in 200 --scheme page",
    "flashatlas reproduce theory --policy greedy --rho 0.8 --b 16",
]
"""Commands that must work without the extra."""

SERVING = "flashatlas serve -d tiny --run 'nbdinfo --size \"$uri\"'"
"""A command that must work if nbdkit is installed, because the wheel contains the plugin."""

DRAWING = ["flashatlas report run -o run.html", "flashatlas cite run"]


def pythons() -> dict[str, Path]:
    """Return an interpreter for each version of Python that may install the wheel."""
    known = [Path(found) for minor in range(10, 20) if (found := shutil.which(f"python3.{minor}"))]
    known += [Path(sys.executable), *Path.home().glob(".pyenv/versions/3.*/bin/python3")]
    found: dict[str, Path] = {}
    for path in known:
        asked = subprocess.run(
            [path, "-c", "import sys; print(*sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=False,
        )
        version = tuple(map(int, asked.stdout.split())) if asked.returncode == 0 else ()
        if version >= OLDEST:
            found.setdefault(".".join(map(str, version)), path)
    return dict(sorted(found.items(), key=lambda entry: tuple(map(int, entry[0].split(".")))))


def environment(bin_: Path) -> dict[str, str]:
    """Return an environment whose path has this Python and the system's commands, but no Rust."""
    path = f"{bin_}:/usr/bin:/bin"
    if shutil.which("cargo", path=path):
        raise SystemExit("cargo is among the system's commands: this proves nothing")
    kept = {key: value for key, value in os.environ.items() if key in ("HOME", "PIP_INDEX_URL")}
    return {**kept, "PATH": path, "NO_COLOR": "1"}


def do(command: str | list[str], folder: Path, env: dict[str, str]) -> str:
    """Run a command, and return its output."""
    arguments = command.split() if isinstance(command, str) else command
    done = subprocess.run(
        arguments, cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)}: exit {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def installed(python: Path, package: str, extra: list[str], *, serves: bool) -> None:
    """Install a package into a fresh environment, and use it."""
    with tempfile.TemporaryDirectory(prefix="flashatlas-") as scratch:
        folder = Path(scratch)
        subprocess.run([python, "-m", "venv", folder / "env"], check=True)
        env = environment(folder / "env/bin")
        pip = ["pip", "install", "--quiet", "--disable-pip-version-check"]
        builds = {**env, "PATH": ":".join([env["PATH"], *extra])}
        do([*pip, package], folder, builds)
        (folder / "work").mkdir()
        for command in COMMANDS:
            said = do(command, folder / "work", env)
            if command.startswith("flashatlas run") and "flashatlas[report]" not in said:
                raise SystemExit(
                    f"without the extra a run must explain why there is no report: {said}"
                )
        if serves:
            do(["sh", "-c", SERVING], folder / "work", env)
        do([*pip, f"{package}[report]"], folder, builds)
        for command in DRAWING:
            do(command, folder / "work", env)


def stable(wheel: Path) -> int:
    """Return the number of Python's symbols that the module uses; check that all are stable."""
    audited = subprocess.run(
        [HERE / "abi3audit", "--strict", "--verbose", wheel],
        capture_output=True,
        text=True,
        check=False,
    )
    if audited.returncode != 0:
        raise SystemExit(f"not only the stable ABI:\n{audited.stdout}{audited.stderr}")
    with tempfile.TemporaryDirectory() as folder:
        shutil.unpack_archive(wheel, folder, "zip")
        (module,) = Path(folder).glob("flashatlas/_core*.so")
        symbols = subprocess.check_output(["readelf", "--dyn-syms", "--wide", module], text=True)
    return len(re.findall(r" UND _?Py\w+", symbols))


def main() -> int:
    """Check the distributions in a folder."""
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("folder", type=Path)
    arguments.add_argument(
        "--sdist", action="store_true", help="build the source distribution, too"
    )
    chosen = arguments.parse_args()
    (wheel,) = chosen.folder.resolve().glob("*.whl")
    (sdist,) = chosen.folder.resolve().glob("*.tar.gz")
    size = f"{wheel.stat().st_size / 1e6:.1f} MB"
    print(f"{wheel.name}: {size}, {stable(wheel)} symbols of Python, all of the stable ABI")
    for version, python in pythons().items():
        serves = shutil.which("nbdkit") is not None and shutil.which("nbdinfo") is not None
        installed(python, str(wheel), [], serves=serves)
        commands = len(COMMANDS) + len(DRAWING) + serves
        print(f"wheel, Python {version}: {commands} commands" + ("" if serves else ", no nbdkit"))
    if chosen.sdist:
        cargo = shutil.which("cargo")
        if cargo is None:
            raise SystemExit("cargo: building the source distribution needs Rust")
        installed(Path(sys.executable), str(sdist), [str(Path(cargo).parent)], serves=False)
        print("source distribution: built, installed, and used without Rust")
    return 0


if __name__ == "__main__":
    sys.exit(main())
