"""Circles between the modules of a crate, found in its sources.

A module depends on another one if its code names a path in it (``crate::…``, ``super::…``, or a
name that a common parent re-exports). Siblings must not depend on each other in a circle. A module
and its own parts may depend on each other: a registry names its entries, and the entries name its
types. Tests inside a module do not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

Module = tuple[str, ...]
"""Names from the root of the crate down; the root itself is empty."""

NOT_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|\b[bc]?r(#*)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])'""", re.DOTALL
)
"""Comments, strings and characters."""
TEST = re.compile(r"#\[cfg\((?:all\()?test\b[^\n]*\]\s*(?:#\[[^\n]*\]\s*)*(?:pub )?mod \w+ ")
PATH = re.compile(r"\b(?:crate|super|self)(?:\s*::\s*\w+)*(?:\s*::\s*(?=[{*]))?")
USE = re.compile(r"(?:^|(?<=[;{}\]]))\s*(?:pub(?:\([^)]*\))? )?use ([^;]+);", re.MULTILINE)
DEFINED = r"\b(?:fn|struct|enum|union|trait|const|static|type|macro_rules!)\s+{}\b"


def code_of(text: str) -> str:
    """Return a source without comments, strings, and modules of tests."""
    text = NOT_CODE.sub(" ", text)
    while found := TEST.search(text):
        text = text[: found.start()] + text[end_of_block(text, found.end()) :]
    return text


def end_of_block(text: str, at: int) -> int:
    """Return the place behind the block whose brace opens at or after ``at``."""
    depth = 0
    for place in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0 and text[place] in "};":
            return place + 1
    return len(text)


def leaves(tree: str) -> Iterator[list[str]]:
    """Yield the paths of a ``use`` tree such as ``a::{b, c::{d, e as f}}``."""
    head, brace, rest = tree.partition("{")
    before = [name for name in re.split(r"\s*::\s*", head.strip()) if name]
    if not brace:
        if before:
            yield [*before[:-1], before[-1].split(" as ")[0].strip()]
        return
    depth, start = 0, 0
    inside = rest[: end_of_block("{" + rest, 0) - 2]
    for place, letter in enumerate(inside + ","):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            for path in leaves(inside[start:place]):
                yield [*before, *path]
            start = place + 1


class Crate:
    """The modules of a crate, with the paths that each names and re-exports."""

    def __init__(self, sources: dict[Module, str]):
        """Take the source of each module."""
        self.code = {module: code_of(text) for module, text in sources.items()}
        self.imports = {module: list(self.imported(module)) for module in self.code}

    @classmethod
    def read(cls, src: Path) -> Crate:
        """Read the crate whose sources lie in a folder."""
        sources = {}
        for path in sorted(src.rglob("*.rs")):
            names = path.relative_to(src).with_suffix("").parts
            module = names[:-1] if names[-1] in ("mod", "lib", "main") else names
            sources[module] = sources.get(module, "") + path.read_text(encoding="utf-8")
        return cls(sources)

    def imported(self, module: Module) -> Iterator[list[str]]:
        """Yield the path of every name that the ``use`` lines of a module bring in."""
        for tree in USE.findall(self.code[module]):
            yield from leaves(tree)

    def absolute(self, module: Module, path: list[str]) -> list[str] | None:
        """Return a path from the root of the crate, or ``None`` if it leads to another crate."""
        if path[0] == "crate":
            return path[1:]
        if path[0] in ("self", "super"):
            at = list(module)
            while path and path[0] in ("self", "super"):
                at = at[: len(at) - (path[0] == "super")]
                path = path[1:]
            return [*at, *path]
        return [*module, *path] if (*module, path[0]) in self.code else None

    def owner(self, path: list[str], seen: frozenset = frozenset()) -> Module:
        """Return the module that defines the item of an absolute path, through any re-exports."""
        module: Module = ()
        for i, name in enumerate(path):
            if (*module, name) in self.code:
                module = (*module, name)
                continue
            if re.search(DEFINED.format(re.escape(name)), self.code[module]):
                return module
            for imported in self.imports[module]:
                target = self.absolute(module, imported)
                key = (module, tuple(imported), name)
                if target is None or key in seen:
                    continue
                if imported[-1] == name:
                    return self.owner([*target, *path[i + 1 :]], seen | {key})
                if imported[-1] == "*":
                    found = self.owner(target[:-1], seen | {key})
                    if re.search(DEFINED.format(re.escape(name)), self.code[found]):
                        return found
            return module
        return module

    def named(self, module: Module) -> Iterator[Module]:
        """Yield the module of every path that the code of a module names."""
        paths = list(self.imports[module])
        rest = USE.sub("", self.code[module])
        paths += [re.split(r"\s*::\s*", found) for found in PATH.findall(rest)]
        for path in paths:
            kept = [name for name in path if name]
            if target := self.absolute(module, kept):
                yield self.owner(target[:-1] if target[-1] == "*" else target)

    def dependencies(self) -> dict[Module, dict[str, set[str]]]:
        """Return, for each module with parts, the siblings on which each part depends."""
        levels: dict[Module, dict[str, set[str]]] = {}
        for module in self.code:
            for other in self.named(module):
                shared = 0
                while module[shared : shared + 1] == other[shared : shared + 1] != ():
                    shared += 1
                if shared < min(len(module), len(other)):
                    level = levels.setdefault(module[:shared], {})
                    level.setdefault(module[shared], set()).add(other[shared])
        return levels

    def circles(self) -> list[str]:
        """Return the siblings that depend on each other in circles: `crate::jobs: flow, thread`."""
        found = []
        for level, graph in sorted(self.dependencies().items()):
            reach = {name: reached_from(name, graph) for name in graph}
            groups = {
                tuple(sorted(other for other in to if name in reach.get(other, ())))
                for name, to in reach.items()
                if name in to
            }
            within = "::".join(("crate", *level))
            found += [f"{within}: {', '.join(group)}" for group in sorted(groups)]
        return found


def reached_from(name: str, graph: dict[str, set[str]]) -> set[str]:
    """Return everything that a name depends on, in any number of steps."""
    reached: set[str] = set()
    left = [name]
    while left:
        new = graph.get(left.pop(), set()) - reached
        reached |= new
        left += new
    return reached
