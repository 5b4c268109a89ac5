"""Counts of sentences that must be read twice, by the rules of CONTRIBUTING: ``--list`` names them.

    python tests/plain_english.py [--list] [PATH...]

The script looks at the first line of every doc comment in Rust, and at phrases in comments,
docstrings and documents. It ignores code. Ruff's D401 checks the first lines in Python.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]

OPENING = re.compile(
    r"(?:As|How|If|It|Of|So|That|They|Those|What|Whatever|When|Where|Whether|Which|Who|Whose|Why)\b"
)
"""Words that must not begin a first line, because the reader would wait for the subject."""

VERB = re.compile(r"[A-Z][a-z-]+s,?")
"""A verb in the third person, unless it is one of the nouns."""

NOUN = re.compile(
    r"(?:Addresses|Bins|Bytes|Clients|Clocks|Commands|Completions|Devices|Drives|Entries|Frames|"
    r"Frontiers|Fields|Generations|Items|Its|Keys|Kinds|Lifetimes|Lines|Millions|Nanoseconds|"
    r"Operations|Options|Pages|Parameters|Parts|Paths|Policies|Queues|Requests|Rows|Schemes|"
    r"Sectors|Segments|Settings|Sizes|Slots|Stores|Streams|Subregions|Superpages|Survivors|Tables|"
    r"This|Times|Tokens|Units|Values|Versions|Words)\b"
)
"""Words that end in -s and are not the verb of a function."""

PHRASES = re.compile(r"\b(?:that|those) of\b|\bso (?:many|much)\b", re.IGNORECASE)
"""Phrases without a subject, and counts without a number."""

TWO_MEANINGS = re.compile(r"(?<!`)\bat(?:\s|//[/!]?|[#*;\\])+once\b", re.IGNORECASE)
"""Words that mean either "immediately" or "together", also over the end of a line."""

TEXTS = (".c", ".fio", ".h", ".json", ".md", ".py", ".rs", ".svg", ".toml")
"""Suffixes of the files in which nothing may have two meanings, not even a message or a name."""

PALE = re.compile(r"(?:Says|Tells|Gives|Holds)\b")
"""Verbs that say little; at most one first line in fifty begins with one."""

ITEM = re.compile(
    r"\s*(?:pub(?:\([^)]*\))?\s+)?(?:(?:default|const|async|unsafe|extern)\s+(?:\"C\"\s+)?)*fn\b"
)
TEST = re.compile(r"#\[(?:test|rstest|should_panic)|proptest!")


@dataclass(frozen=True)
class Finding:
    """A sentence that breaks a rule, and the place where it stands."""

    path: Path
    line: int
    rule: str
    text: str

    def __str__(self) -> str:
        """Return the finding as a line of a compiler."""
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.rule}: {self.text.strip()}"


def listed(suffix: str) -> list[Path]:
    """Return the files of the project with a suffix."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", f"*{suffix}"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in names.splitlines() if (ROOT / name).exists()]


def first_lines(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield the first line of each doc comment: its number, its text, and "fn", "test" or ""."""
    lines = path.read_text(encoding="utf-8").splitlines()
    inside = False
    for index, line in enumerate(lines):
        found = re.match(r"\s*//([/!]) ?(.*)", line)
        if found and not inside:
            yield index + 1, found.group(2), "" if found.group(1) == "!" else _kind(lines, index)
        inside = bool(found)


def _kind(lines: list[str], index: int) -> str:
    """Return "fn" or "test" for the doc comment of a function, and "" for any other."""
    while index < len(lines) and re.match(r"\s*///", lines[index]):
        index += 1
    attributes = ""
    while index < len(lines) and (
        re.match(r"\s*#\[", lines[index]) or attributes.count("[") > attributes.count("]")
    ):
        attributes += lines[index]
        index += 1
    if index == len(lines) or not ITEM.match(lines[index]):
        return ""
    return "test" if TEST.search(attributes) else "fn"


def opening(text: str, kind: str) -> str | None:
    """Return the rule that a first line breaks, or ``None``."""
    if OPENING.match(text):
        return "opening"
    word = text.partition(" ")[0].rstrip(".:;")
    if kind == "fn" and (not VERB.fullmatch(word) or NOUN.match(word)):
        return "no verb"
    return None


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of comments, docstrings, and documents without their code, with numbers."""
    lines = path.read_text(encoding="utf-8").splitlines()
    if path.suffix == ".rs":
        for number, line in enumerate(lines, 1):
            found = re.match(r"\s*//[/!]? ?(.*)", line)
            if found:
                yield number, found.group(1)
    elif path.suffix == ".py":
        yield from _docstrings("\n".join(lines))
        for number, line in enumerate(lines, 1):
            found = re.match(r"\s*# ?(.*)", line)
            if found:
                yield number, found.group(1)
    else:
        code = False
        for number, line in enumerate(lines, 1):
            if line.lstrip().startswith("```"):
                code = not code
            elif not code:
                yield number, line


def _docstrings(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text = node.value.value
            if isinstance(text, str):
                for offset, line in enumerate(text.splitlines()):
                    yield node.lineno + offset, line


def look(paths: list[Path]) -> tuple[list[Finding], Counter[str]]:
    """Return the findings in files, and the counts of first lines, pale first lines and words."""
    findings: list[Finding] = []
    counts: Counter[str] = Counter()
    for path in paths:
        if path.suffix == ".rs":
            for number, text, kind in first_lines(path):
                counts["first lines"] += 1
                counts["pale"] += bool(PALE.match(text))
                if rule := opening(text, kind):
                    findings.append(Finding(path, number, rule, text))
        for number, text in prose(path):
            counts["words"] += len(text.split())
            found = [Finding(path, number, "phrase", text) for _ in PHRASES.findall(text)]
            findings.extend(found)
    return findings, counts


def with_two_meanings(paths: list[Path]) -> list[Finding]:
    """Return the places in files at which words have two meanings."""
    findings: list[Finding] = []
    for path in paths:
        text = path.read_text(encoding="utf-8")
        for found in TWO_MEANINGS.finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            findings.append(Finding(path, line, "two meanings", text.splitlines()[line - 1]))
    return findings


def texts() -> list[Path]:
    """Return all files that people read, except this script and its tests."""
    paths = [path for suffix in TEXTS for path in listed(suffix)]
    return [path for path in paths if "plain_english" not in path.name]


def default_paths() -> list[Path]:
    """Return the files that must keep the rules; ADRs and the changelog keep their words."""
    paths = [path for suffix in (".rs", ".py", ".md") for path in listed(suffix)]
    return [
        path
        for path in paths
        if path.name not in ("CHANGELOG.md", Path(__file__).name) and path.parent.name != "adr"
    ]


def main() -> None:
    """Print the counts, and with ``--list`` every finding."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--list", action="store_true")
    asked = parser.parse_args()
    paths = default_paths()
    if asked.paths:
        roots = [path.resolve() for path in asked.paths]
        paths = [path for path in paths if any(path.is_relative_to(root) for root in roots)]
    findings, counts = look(paths)
    findings += with_two_meanings([path for path in paths if "plain_english" not in path.name])
    if asked.list:
        print(*findings, sep="\n")
    rules = Counter(finding.rule for finding in findings)
    lines, words = max(counts["first lines"], 1), max(counts["words"], 1)
    print(
        f"{counts['first lines']} first lines: {rules['opening']} begin without a subject "
        f"({rules['opening'] / lines:.1%}), {rules['no verb']} of functions without a verb "
        f"({rules['no verb'] / lines:.1%}), {counts['pale']} pale ({counts['pale'] / lines:.1%}); "
        f"{counts['words']} words: {rules['phrase']} phrases "
        f"({rules['phrase'] / words * 10_000:.1f} in 10,000), {rules['two meanings']} with two "
        "meanings"
    )


if __name__ == "__main__":
    main()
