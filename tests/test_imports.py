"""The imports of commands: as few as a command needs, so that it answers immediately."""

from __future__ import annotations

import importlib.util
import os
import pickle
import signal
import subprocess
import sys
import time
from array import array
from pathlib import Path

import flashatlas
import pyarrow as pa
import pytest
from conftest import ROOT
from flashatlas.cli.commands import COMMANDS, ENTRIES, FIRST
from flashatlas.cli.root import load
from flashatlas.results.bits import bits
from flashatlas.results.columns import Tables, update
from flashatlas.results.result import digest_of

PRINT_MODULES = """
import sys
before = set(sys.modules)
from flashatlas.cli import main
sys.argv = ["flashatlas", *sys.argv[1:]]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
sys.stderr.write("\\n".join(sorted(set(sys.modules) - before)))
"""

VERSION = {"", "._core", ".cli", ".cli.signals", ".cli.version", ".extensions"}
"""Modules of the package that ``--version`` may import."""

HELP = VERSION | {".cli.commands", ".cli.field_words", ".cli.root", ".cli.strict"}
"""Modules of the package that ``--help`` may import."""

OF_TYPER = {
    *("typer", "click", "rich", "annotated_doc", "shellingham", "typing_extensions", "colorama"),
    *("markdown_it", "mdurl", "pygments", "attr", "attrs"),
}
"""Foreign packages that ``--help`` may import: typer and rich need them to print a help."""

NOT_OF_A_RUN = {
    *("pyarrow", "numpy", "pandas", "scipy", "prometheus_client", "vl_convert", "distributed"),
    *("flashatlas.results.arrow", "flashatlas.results.frame", "flashatlas.inputs.table_traces"),
    *("flashatlas.serving", "flashatlas.live", "flashatlas.report", "flashatlas.reproduce"),
    "flashatlas.sweep",
}
"""Packages and modules that a run without outputs does not need."""


def imported(*arguments: str) -> set[str]:
    """Return the modules that a command imports in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", PRINT_MODULES, *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.split())


def own(modules: set[str]) -> set[str]:
    return {name.removeprefix("flashatlas") for name in modules if name.startswith("flashatlas")}


def others(modules: set[str]) -> set[str]:
    """Return the packages that belong neither to this project nor to Python."""
    roots = {name.partition(".")[0] for name in modules}
    known = {"flashatlas", *sys.stdlib_module_names}
    return {name for name in roots - known if not name.startswith("_")}


def test_version_imports_the_core_and_nothing_of_others():
    modules = imported("--version")
    assert own(modules) == VERSION
    assert others(modules) == set()
    # 106 in Python 3.11, most of them by importlib.metadata, which finds extensions
    assert len(modules) <= 140


def test_help_imports_no_command():
    modules = imported("--help")
    assert own(modules) == HELP
    assert others(modules) <= OF_TYPER
    # 326 in Python 3.11: typer, rich, and markdown_it for the texts
    assert len(modules) <= 420


def test_a_short_run_imports_neither_arrow_nor_numpy():
    modules = imported("run", "-w", "uniform:requests=10,size=2KiB")
    found = {name for name in modules for one in NOT_OF_A_RUN if f"{name}.".startswith(f"{one}.")}
    assert found == set()


def test_the_package_imports_a_name_when_it_is_asked_for():
    program = (
        "import sys, flashatlas\n"
        "print(*sorted(m for m in sys.modules if m.startswith('flashatlas')))\n"
        "flashatlas.registries\n"
        "print(*sorted(m for m in sys.modules if m.startswith('flashatlas')))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    first, then = done.stdout.splitlines()
    assert first.split() == ["flashatlas", "flashatlas.extensions"]
    assert set(then.split()) - set(first.split()) == {"flashatlas._core", "flashatlas.names"}


def test_every_public_name_is_there_and_is_listed():
    assert set(flashatlas.__all__) <= set(dir(flashatlas))
    for name in flashatlas.__all__:
        assert getattr(flashatlas, name) is not None
    listed = {name for names in flashatlas._HOMES.values() for name in names}
    assert listed | {"parts"} == set(flashatlas.__all__)
    with pytest.raises(AttributeError, match="module 'flashatlas' has no attribute 'runn'"):
        _ = flashatlas.runn
    with pytest.raises(ImportError, match="cannot import name 'runn'"):
        from flashatlas import runn  # noqa: F401, PLC0415


@pytest.mark.parametrize(
    "module",
    [
        *("drawing.figure", "results.frame", "running.bundle", "running.rerun"),
        *("serving.serve", "statistics.significance"),
    ],
)
def test_a_function_stands_before_the_module_of_its_name(module):
    """The name stands for the function, even if the module was imported before."""
    name = module.rpartition(".")[2]
    for first in (f"import flashatlas.{module}", "pass", f"from flashatlas import {name}"):
        program = f"{first}\nimport flashatlas\nprint(type(flashatlas.{name}).__name__)"
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        assert done.stdout == "function\n", first


def test_the_listing_says_of_each_command_what_its_own_help_says():
    assert len(COMMANDS) == len(ENTRIES)
    for entry in ENTRIES:
        # typer and click join the lines of a paragraph
        told = (load(entry.name).help or "").strip().partition("\n\n")[0]
        assert " ".join(told.split()) == entry.about, entry.name


def test_every_command_stands_under_a_heading_and_five_stand_first(cli):
    shown = cli("--help").stdout
    headings = ["Run", "Study", "Look", "Prove", "Extend", "Serve"]
    lines = shown.splitlines()
    at = [next(n for n, x in enumerate(lines) if x.startswith(f"╭─ {h} ─")) for h in headings]
    assert at == sorted(at), "in this order"
    below: dict[str, list[str]] = {}
    for heading, begin, end in zip(headings, at, [*at[1:], len(lines)], strict=True):
        names = [
            x[2:].split(" ")[0] for x in lines[begin:end] if x.startswith("│ ") and x[2] != " "
        ]
        below[heading] = names
    assert below == {h: [e.name for e in ENTRIES if e.heading == h] for h in headings}
    assert len(FIRST) == 5 and set(FIRST) <= set(COMMANDS)
    first = next(n for n, line in enumerate(lines) if ", ".join(FIRST) in line)
    assert first < at[0], "above the headings"


def test_no_command_is_left_out_of_the_listing():
    """A function whose help has an example is a command; modules without commands are named."""
    folder = ROOT / "python/flashatlas/cli"
    modules = {entry.place.partition(":")[0] for entry in ENTRIES}
    not_commands = {
        *("__init__", "before", "commands", "complete", "console", "ending", "field_words"),
        *("isolated", "options", "root", "signals", "strict", "version"),
    }
    assert {path.stem for path in folder.glob("*.py")} - modules == not_commands
    listed = {entry.place for entry in ENTRIES}
    for name in sorted(modules):
        module = importlib.import_module(f"flashatlas.cli.{name}")
        if f"{name}:app" in listed:
            continue
        for function in vars(module).values():
            here = getattr(function, "__module__", "") == module.__name__
            if here and "For example:" in (function.__doc__ or ""):
                assert f"{name}:{function.__name__}" in listed


def test_the_reference_has_the_options_of_every_command():
    """The site's page is generated from the commands themselves, not from the listing."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs/site/generate.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    sections = generate.command_line().split("\n### flashatlas ")[1:]
    page = {text.partition("\n")[0]: text for text in sections}
    for entry in ENTRIES:
        assert entry.name in page
        groups = [name for name in page if name.startswith(f"{entry.name} ")]
        assert "| `--plugin` |" in page[groups[0] if groups else entry.name], entry.name


NAN = float("nan")


@pytest.mark.parametrize(
    ("kind", "data", "words"),
    [
        ("int64", array("q", [1, -2, 3]).tobytes(), []),
        ("int64", b"", []),
        ("float64", array("d", [0.5, -0.0, float("inf")]).tobytes(), []),
        ("float64", array("d", [NAN, *[1.0] * 8, NAN]).tobytes(), []),
        ("float64", bytes(7) + b"\xff" + b"\x01" * 6 + b"\xf0\xff", []),
        ("float64", b"", []),
        ("dictionary", bytes([0, 2, 1, 0] * 5), ["read", "write", "μ"]),
        ("dictionary", b"", ["read"]),
    ],
)
def test_the_digest_of_columns_is_that_of_their_arrow_tables(kind, data, words):
    """Existing records have digests over Arrow's buffers, so Arrow is the reference."""
    tables = Tables([("t", [("c", kind, data, words)])])

    def digest(found):
        seen: list[bytes] = []
        update(type("Seen", (), {"update": lambda _, b: seen.append(bytes(b))})(), found)
        return seen

    assert digest(tables) == digest({"t": tables["t"]})
    assert isinstance(tables["t"], pa.Table) and tables["t"] is tables["t"]
    assert pickle.loads(pickle.dumps(tables))["t"].equals(tables["t"])


def test_bits_are_packed_from_the_lowest():
    # 1·2⁰ + 0·2¹ + 1·2² = 5; the ninth value begins another byte
    assert bits([True, False, True]) == b"\x05"
    assert bits([False] * 8 + [True]) == b"\x00\x01"
    assert bits([]) == b""


def test_the_digest_of_a_run_is_the_same_with_arrow_and_without():
    run = flashatlas.run("tiny", workload="uniform:requests=300,size=2KiB,read=0.5")
    as_arrow = {name: run.tables[name] for name in run.tables}
    assert any(c.null_count for table in as_arrow.values() for c in table.columns)
    assert digest_of(run.record, as_arrow, run.jobs) == run.record["results_digest"]


HEED = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
"""Code that heeds the signal; programs that a shell starts in the background ignore it."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("module", ["typer", "rich.console", "flashatlas.results.result"])
def test_a_signal_during_imports_is_one_line(tmp_path, module, number):
    """The import of a module waits here for the signal; otherwise it takes some milliseconds."""
    wait = (
        "class Wait:\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == {module!r}:\n"
        "            print('now', flush=True); import time; time.sleep(60)\n"
        "sys.meta_path.insert(0, Wait())\n"
        "from flashatlas.cli import main; main()"
    )
    command = [
        sys.executable,
        "-c",
        f"{HEED}\n{wait}",
        "run",
        "-w",
        "uniform:requests=10,size=2KiB",
    ]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "now\n"
        process.send_signal(number)
        _, said = process.communicate(timeout=20)
    word = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}[number]
    assert said == f"error: {word}; nothing was written\n"
    assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}[number]


def test_an_interrupt_at_any_time_of_the_imports_is_one_line(tmp_path):
    """The signal comes at any time from the first line on; the imports take less than 0.5 s."""
    begin = f"{HEED} from flashatlas.cli import main; print('now', flush=True); main()"
    command = [sys.executable, "-c", begin, "run", "-q", "-w", "uniform:requests=500M,size=2KiB"]
    for wait in (0.03, 0.06, 0.1, 0.2, 0.3, 0.5):
        with subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout.readline() == "now\n"
            time.sleep(wait)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=20)
        assert (process.returncode, said) == (130, "error: interrupted; nothing was written\n")


def test_a_command_that_is_interrupted_says_so(cli, monkeypatch):
    """A command without a bar says so, too; the command-line library alone prints nothing."""

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("flashatlas.cli.listings.registries", stop)
    done = cli("drives")
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "error: interrupted; nothing was written\n"


def test_signals_are_handled_as_before_when_the_command_has_ended(cli):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for arguments in (["--version"], ["--help"], ["drives"], ["drives", "none"]):
            cli(*arguments)
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def installed(folder: Path, version: str) -> dict[str, str]:
    """Install an extension with a version into a folder; return the environment that finds it."""
    about = folder / "mine-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[flashatlas.extensions]\nmine = mine_core\n")
    (folder / "mine_core.py").write_text(f"__version__ = {version!r}\nMARK = 'mine'\n")
    path = os.pathsep.join([str(folder), *filter(None, sys.path)])
    return {**os.environ, "PYTHONPATH": path}


def test_an_extension_takes_the_place_of_the_core(tmp_path):
    there = installed(tmp_path, flashatlas.__version__)
    program = (
        "import flashatlas, sys\n"
        "from flashatlas._core import MARK\n"
        "core = sys.modules['flashatlas._core']\n"
        "same = core is flashatlas._core is sys.modules['mine_core']\n"
        "print(MARK, same, core.__spec__.name)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=there, capture_output=True, text=True, check=True
    )
    assert done.stdout == "mine True mine_core\n"


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["run"]])
def test_an_extension_of_another_version_is_one_error(tmp_path, arguments):
    there = installed(tmp_path, "0.0.1")
    command = [sys.executable, "-m", "flashatlas", *arguments]
    done = subprocess.run(command, env=there, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("error: extension mine 1.0 was built against FlashAtlas 0.0.1")
    assert done.stderr.count("\n") == 1
