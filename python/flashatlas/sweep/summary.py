"""Means over seeds as a table for a paper: LaTeX or CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from flashatlas._core import InputError, about
from flashatlas.drawing.labels import of_levels
from flashatlas.drawing.labels import title_of as setting_title
from flashatlas.files import write_whole
from flashatlas.results.frame import Frame
from flashatlas.statistics.intervals import LEAST, Group, summary
from flashatlas.sweep.numbers import title_of

SUFFIXES = (".tex", ".csv")

UNSTEADY = r"$^{\circ}$"
"""The mark of a cell with unsteady runs: hollow, like the mark in a figure."""

SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "µ": r"\textmu{}",
    "±": r"$\pm$",
    "–": "--",
}
"""Characters with a special meaning in LaTeX."""


def write_summary(path: Path, runs: Frame, of: Sequence[str], across: str | None = None) -> Path:
    """Write a row for each combination of factors, with means over seeds and their spread.

    Args:
        path: ``.tex``: a table for the package ``booktabs``; ``.csv``: mean, both ends of the
            interval of 95 % (from five seeds on), least and most, in the units of the record.
        runs: The runs.
        of: Numbers.
        across: A factor whose values stand beside each other; for a ``.tex`` only.

    Raises:
        InputError: A number or factor does not exist, or the kind of file is unknown.

    """
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: a table of means ends in {', '.join(SUFFIXES)}")
    groups = summary(runs, of)
    if path.suffix == ".tex":
        write_whole(path, _latex(groups, runs, of, across))
        return path
    if across is not None:
        raise about("across", "only a .tex file can have the values of a factor side by side")
    write_whole(path, _csv(groups, of))
    return path


def _latex(groups: Sequence[Group], runs: Frame, of: Sequence[str], across: str | None) -> str:
    factors = list(groups[0].factors)
    if across is not None and across not in factors:
        known = ", ".join(factors) or "none"
        raise about("across", f"`{across}` is not a factor of these runs (factors: {known})")
    down = [name for name in factors if name != across]
    words = {name: _words(groups, runs, name) for name in factors}
    levels: list[Any] = [None] if across is None else list(words[across])
    places: dict[tuple[Any, ...], dict[Any, Group]] = {}
    for group in groups:
        key = tuple(group.factors[name] for name in down)
        places.setdefault(key, {})[None if across is None else group.factors[across]] = group
    rows = [
        _line(
            [
                *(escaped(words[name][value]) for name, value in zip(down, key, strict=True)),
                *(_cell(own.get(level), name, runs) for name in of for level in levels),
            ]
        )
        for key, own in places.items()
    ]
    head = [escaped(setting_title(name, {})) for name in down]
    titles = [escaped(title_of(name)) for name in of]
    heads = [_line([*head, *titles])]
    if across is not None:
        wide, first = len(levels), len(down) + 1
        over = [rf"\multicolumn{{{wide}}}{{c}}{{{title}}}" for title in titles]
        starts = range(first, first + wide * len(of), wide)
        rules = [rf"\cmidrule(lr){{{start}-{start + wide - 1}}}" for start in starts]
        below = [escaped(words[across][level]) for level in levels] * len(of)
        heads = [_line([""] * len(down) + over), " ".join(rules), _line([*head, *below])]
    lines = [
        rf"% {_spread(groups)}; needs \usepackage{{booktabs}}",
        rf"\begin{{tabular}}{{{'l' * len(down)}{'r' * (len(of) * len(levels))}}}",
        r"\toprule",
        *heads,
        r"\midrule",
        *rows,
        r"\bottomrule",
        *_under(groups, runs, len(down) + len(of) * len(levels)),
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return rf"{' & '.join(cells)} \\"


def _words(groups: Sequence[Group], runs: Frame, name: str) -> dict[Any, str]:
    """Return the values of a factor as the table has them: numbers ascending."""
    values = list(dict.fromkeys(group.factors[name] for group in groups))
    known = [value for value in values if value is not None]
    if all(isinstance(value, (int, float)) for value in known):
        values = [*sorted(known), *[value for value in values if value is None]]
    return of_levels(values, runs.unit(name))


def _cell(group: Group | None, name: str, runs: Frame) -> str:
    if group is None:
        return "--"
    mark = UNSTEADY if group.unsteady and name in group.estimates else ""
    return escaped(group.said(name, runs.unit(name))) + mark


def _spread(groups: Sequence[Group]) -> str:
    """Return a description of the numbers beside each mean."""
    counts = {e.count for group in groups for e in group.estimates.values()}
    found = []
    if any(count >= LEAST for count in counts):
        found.append("half of the interval of 95 %")
    if any(1 < count < LEAST for count in counts):
        found.append(f"the range with fewer than {LEAST}")
    return ", ".join(["means over seeds", *found])


def _under(groups: Sequence[Group], runs: Frame, wide: int) -> list[str]:
    """Return the notes under the table about numbers that are not reliable."""
    said = []
    total = sum(group.runs for group in groups)
    if unsteady := sum(group.unsteady for group in groups):
        said.append(
            f"{UNSTEADY} {unsteady} of {total} runs were not steady, and would give other numbers "
            "if they were longer."
        )
    if worn_out := runs.said_of_worn_out():
        said.append(worn_out)
    if missing := runs.incomplete():
        said.append(f"Incomplete: {escaped(missing)}.")
    return [rf"\multicolumn{{{wide}}}{{l}}{{\footnotesize {text}}} \\" for text in said]


def escaped(text: str) -> str:
    """Return a text as LaTeX writes it."""
    return re.sub("|".join(map(re.escape, SPECIAL)), lambda found: SPECIAL[found[0]], text)


COUNTS = ("runs", "unsteady", "worn_out")
"""Columns of a CSV table that count runs, named after attributes of a group."""


def _csv(groups: Sequence[Group], of: Sequence[str]) -> str:
    factors = list(groups[0].factors)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    ends = ("mean", "low", "high", "least", "most")
    writer.writerow([*factors, *COUNTS, *(f"{name}.{end}" for name in of for end in ends)])
    for group in groups:
        row = [*(group.factors[name] for name in factors)]
        row += [getattr(group, name) for name in COUNTS]
        for name in of:
            found = group.estimates.get(name)
            row += [None] * 5 if found is None else [getattr(found, end) for end in ends]
        writer.writerow(row)
    return buffer.getvalue()
