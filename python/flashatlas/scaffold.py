"""``flashatlas new``: a part of your own, outside this repository, with its tests."""

from __future__ import annotations

import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from flashatlas._core import InputError
from flashatlas.names import hint, unknown

TEMPLATES = Path(__file__).with_name("templates")


@dataclass(frozen=True)
class Kind:
    """A kind of part for which there are templates."""

    words: str
    key: str
    """The setting that chooses a part of this kind."""
    base: str
    """A built-in part of this kind to compare with; empty if there is none."""
    languages: tuple[str, ...]
    settings: tuple[str, ...] = ()
    """Settings that a drive needs to use a part of this kind."""


KINDS = {
    "victim": Kind("victim policy", "ftl.victim", "greedy", ("rust", "c", "python")),
    "classifier": Kind(
        "classifier",
        "ftl.classifier",
        "none",
        ("rust", "c", "python"),
        ("drive.blocks=64", "drive.logical_pages=640"),
    ),
    "caching": Kind(
        "map cache policy",
        "map.policy",
        "keep",
        ("rust", "python"),
        ("map.store=demand", "map.page_bytes=64", "map.cache_bytes=256"),
    ),
    "hash": Kind("hash function", "lookup.hash", "folding", ("rust",), ("map.store=lpmt",)),
    "store": Kind("map store", "map.store", "dram", ("rust", "c")),
    "scheme": Kind("scheme", "ftl.scheme", "page", ("rust", "c")),
    "layer": Kind("layer", "layers", "", ("rust",)),
    "format": Kind("trace format", "format", "", ("rust",)),
    "generator": Kind("generator", "workload", "uniform", ("rust",)),
}

REASONS = {
    ("caching", "c"): "there is no C interface for a cache policy yet; write a scheme in C "
    "instead, which keeps its own map",
    ("hash", "c"): 'write the part in Rust: two lines in it (`extern "C"`) can call a C function',
    ("hash", "python"): "a hash function is called at every lookup, which Python is too slow for",
    ("layer", "c"): "a layer owns the device below it, and there is no C interface for a device",
    (
        "format",
        "c",
    ): "a format reads from Rust buffers; convert the file to another format instead",
    ("generator", "c"): "a generator yields Rust records; write a trace file instead",
    ("store", "python"): "a store is called at every lookup, which Python is too slow for",
    ("scheme", "python"): "a scheme decides every operation of the flash, which Python is too slow "
    "for",
    ("layer", "python"): "a layer sees every command, which Python is too slow for",
    ("format", "python"): "make an Arrow table of the trace and give it to flashatlas.Trace",
    ("generator", "python"): "make an Arrow table of requests and give it to flashatlas.Trace",
}
"""The reason why a kind has no template in a language."""

EXAMPLE = {
    '"page-c"': '"{{NAME}}"',
    '"page", "1.0"': '"{{NAME}}", "0.1.0"',
    "scheme=page-c": "scheme={{NAME}}",
    "page_c_low_water": "{{IDENT}}_low_water",
    "page.so page.c": "{{NAME}}.so {{NAME}}.c",
    "./page.so": "./{{NAME}}.so",
    "the example of FlashAtlas": "none",
}
"""The names in the C example, each with the text that replaces it."""

LANGUAGES = ("rust", "c", "python")


def crates() -> str | None:
    """Return the folder of the Rust crates: in this package's repository, or else in its wheel.

    A repository in which a wheel was built contains both; the copy for the wheel may be old.
    """
    packed = Path(__file__).with_name("sources")
    for root in (Path(__file__).parents[2], packed):
        if (root / "crates/flashatlas/Cargo.toml").is_file():
            return str(root / "crates/flashatlas")
    return None


def _dependency(given: str | None) -> str:
    """Return a crate's dependency on FlashAtlas for ``Cargo.toml``, by path or by version."""
    if given is not None and re.fullmatch(r"[\^=~]?\d+(\.\d+){0,2}", given):
        return f'version = "{given}"'
    path = given if given is not None else crates()
    if path is None:
        raise InputError(
            "cannot find the sources of the crates; give their folder with --crates PATH, or use "
            "the published crates with --crates VERSION"
        )
    folder = Path(path)
    if (folder / "crates/flashatlas/Cargo.toml").is_file():
        folder = folder / "crates/flashatlas"
    if not (folder / "Cargo.toml").is_file():
        raise InputError(
            f"--crates {path}: this is neither a folder with a Cargo.toml nor a version such as 0.1"
        )
    return f'path = "{folder.resolve()}"'


def _checked(kind: str, name: str, language: str) -> Kind:
    if kind not in KINDS:
        raise unknown("kind", kind, KINDS)
    if language not in LANGUAGES:
        raise InputError(
            f"--lang: `{language}` is not known{hint(language, LANGUAGES)} (allowed: "
            f"{', '.join(LANGUAGES)})"
        )
    if language not in KINDS[kind].languages:
        raise InputError(
            f"a {KINDS[kind].words} has no template in {language}: {REASONS[kind, language]} "
            f"(templates exist in: {', '.join(KINDS[kind].languages)})"
        )
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
        raise InputError(
            f"`{name}` is not a name of lower-case letters, digits and dashes, such as my-{kind}"
        )
    return KINDS[kind]


def _files(kind: str, name: str, language: str) -> dict[str, str]:
    """Return the template of each file to make."""
    ident = name.replace("-", "_")
    if language == "rust":
        return {
            "Cargo.toml": "rust/Cargo.toml.in",
            "pyproject.toml": "rust/pyproject.toml.in",
            "README.md": "rust/README.md.in",
            "src/lib.rs": "rust/lib.rs.in",
            "src/part.rs": f"rust/{kind}.rs.in",
            "src/main.rs": "rust/main.rs.in",
            "tests/conformance.rs": "rust/conformance.rs.in",
        }
    if language == "c":
        source = "page.c" if kind == "scheme" else f"{kind}.c.in"
        return {
            "Makefile": "c/Makefile.in",
            "README.md": "c/README.md.in",
            f"{name}.c": f"c/{source}",
        }
    return {
        "README.md": "python/README.md.in",
        f"{ident}.py": f"python/{kind}.py.in",
        f"test_{ident}.py": "python/test.py.in",
    }


def _values(kind: str, name: str, of: Kind, dependency: str) -> dict[str, str]:
    ident = name.replace("-", "_")
    settings = [*of.settings]
    both = "".join(f" --set {setting}" for setting in settings)
    spec = (
        '{ "drive": "tiny", "mode": "untimed", "precondition": "fill", '
        '"workload": "uniform:requests=50000,size=2KiB" }'
    )

    def chosen(part: str) -> str:
        if kind == "format" or not part:
            return "{}"
        if kind == "generator":
            return f'{{ "workload": "{part}:requests=20000,size=2KiB" }}'
        text = ", ".join(f'"{s}"' for s in [f"{of.key}={part}", *settings])
        return f'{{ "set": [{text}] }}'

    return {
        "NAME": name,
        "IDENT": ident,
        "CLASS": "".join(word.capitalize() for word in name.split("-")),
        "KIND_WORDS": of.words,
        "KEY": of.key,
        "CRATES": dependency,
        "SETTINGS": ", ".join(f'"{setting}"' for setting in [f"{of.key}={name}", *settings]),
        "COMPARE": f"--vary {of.key}={of.base},{name}{both}",
        "BASE": of.base or "without",
        "RUN": spec,
        "RUN_BASE": chosen(of.base),
        "RUN_MINE": chosen(name),
    }


def new(
    kind: str, name: str, language: str, into: Path, crates_at: str | None = None
) -> list[Path]:
    """Make a part of your own in a new folder, and return its files.

    Raises:
        InputError: The kind, name or language is unknown, or the folder exists.

    """
    of = _checked(kind, name, language)
    if into.exists():
        raise InputError(f"{into}: this folder already exists; nothing was written")
    values = _values(kind, name, of, _dependency(crates_at) if language == "rust" else "")
    made: list[Path] = []
    into.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into.parent, prefix=".flashatlas-new-") as folder:
        for file, template in _files(kind, name, language).items():
            text = (TEMPLATES / template).read_text(encoding="utf-8")
            if template == "c/page.c":  # a complete example without placeholders
                for mine, theirs in EXAMPLE.items():
                    text = text.replace(mine, theirs)
            for key, value in values.items():
                text = text.replace("{{" + key + "}}", value)
            path = Path(folder) / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            made.append(into / file)
        shutil.copytree(folder, into)
    return made
