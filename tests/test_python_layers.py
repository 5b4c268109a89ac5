"""Imports between the modules of the Python package: no circle, and no room imports upward.

``docs/ARCHITECTURE.md`` has the rooms in order, and for each room the rooms that it may import.
Imports inside functions count, too. Imports for type checkers alone do not count.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import flashatlas
import pytest
from conftest import ROOT

PACKAGE = ROOT / "python/flashatlas"
AT_THE_TOP = 12
"""The largest number of modules outside the rooms."""

NOT_OURS = "templates", "sources"
"""Folders whose files are copied, and belong to no module."""


class Room(NamedTuple):
    """A row of the table of rooms."""

    members: frozenset[str]
    """The name of the room, or the names of modules at the top."""
    imports: frozenset[str]


def rooms() -> list[Room]:
    """Return the table of rooms, from the lowest to the highest."""
    text = (ROOT / "docs/ARCHITECTURE.md").read_text(encoding="utf-8")
    table = text.partition("\n## Rooms of the Python package\n")[2].partition("\n## ")[0]
    cells = [row.strip("|").split("|") for row in table.splitlines() if row.startswith("| ")]
    names = re.compile(r"`(\w+)`")
    return [Room(*(frozenset(names.findall(row[at])) for at in (0, 2))) for row in cells[1:]]


def modules() -> dict[str, Path]:
    """Return the file of every module, by the module's name below the package."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = list(path.relative_to(PACKAGE).with_suffix("").parts)
        if parts[0] not in NOT_OURS:
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def statements(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield every import that is carried out at some time."""
    for below in ast.iter_child_nodes(node):
        if isinstance(below, ast.Import | ast.ImportFrom):
            yield below
        elif isinstance(below, ast.If) and ast.unparse(below.test) == "TYPE_CHECKING":
            for other in below.orelse:
                yield from statements(ast.Module([other], []))
        else:
            yield from statements(below)


def imported(source: str, known: Mapping[str, object]) -> set[str]:
    """Return the modules of the package that a source imports."""
    found = set()
    for statement in statements(ast.parse(source)):
        if isinstance(statement, ast.Import):
            names = [one.name for one in statement.names]
        else:
            assert not statement.level, f"line {statement.lineno}: a relative import"
            names = [f"{statement.module}.{one.name}" for one in statement.names]
        for name in names:
            package, _, below = name.partition(".")
            if package == "flashatlas":
                found.add(_module(below, known))
    return found - {"_core"}


def _module(name: str, known: Mapping[str, object]) -> str:
    """Return the module that a name below the package belongs to."""
    if name.partition(".")[0] == "_core":
        return "_core"
    if name in known:
        return name
    parent = name.rpartition(".")[0]
    return parent if parent else flashatlas._HOME[name]


def imports() -> dict[str, set[str]]:
    """Return the modules that each module of the package imports."""
    known = modules()
    return {
        name: imported(path.read_text(encoding="utf-8"), known) - {name}
        for name, path in known.items()
    }


def room_of(module: str) -> str:
    return module.partition(".")[0]


def order(graph: Mapping[str, set[str]]) -> list[str]:
    """Return the names in an order in which each comes after the names that it needs."""
    return list(TopologicalSorter(graph).static_order())


def test_no_modules_import_each_other():
    assert set(order(imports())) == set(modules()), "a circle raises CycleError"


def test_few_modules_stand_beside_the_rooms():
    loose = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__", "__main__"}
    assert len(loose) <= AT_THE_TOP, sorted(loose)


def test_every_room_has_one_row_and_imports_only_rooms_above_it():
    seen: set[str] = set()
    for room in rooms():
        assert not room.members & seen, "two rows"
        assert room.imports <= seen, f"{sorted(room.members)} imports upward"
        seen |= room.members
    assert seen == {room_of(name) for name in modules()} - {"", "__main__"}


def test_rooms_import_what_the_table_says():
    """The row of modules at the top is for everybody; other rows name each room they need."""
    top = rooms()[0].members
    needed: dict[str, set[str]] = {}
    for module, names in imports().items():
        needed.setdefault(room_of(module), set()).update(map(room_of, names))
    for room in rooms():
        found = set().union(*(needed[name] for name in room.members)) - room.members - top
        assert found == room.imports, sorted(room.members)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import flashatlas.files", {"files"}),
        ("from flashatlas.files import write_whole", {"files"}),
        ("from flashatlas import _core, names", {"names"}),
        ("from flashatlas import InputError, run", {"running.api"}),
        ("from flashatlas.results import units", {"results.units"}),
        ("def f():\n    from flashatlas.results.units import size", {"results.units"}),
        ("if TYPE_CHECKING:\n    from flashatlas.names import hint", set()),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    import flashatlas.names", {"names"}),
        ("if a:\n    pass\nelif b:\n    import flashatlas.names", {"names"}),
        ("import json", set()),
    ],
)
def test_imports_are_read_from_sources(source, found):
    assert imported(source, modules()) == found


def test_a_circle_is_found():
    with pytest.raises(CycleError):
        order({"a": {"b"}, "b": {"c"}, "c": {"a"}})
