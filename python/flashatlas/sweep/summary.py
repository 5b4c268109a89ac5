"""Means over seeds as a table for a paper: LaTeX or CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path

from flashatlas._core import InputError
from flashatlas.files import write_whole
from flashatlas.frame import Frame
from flashatlas.intervals import Group, summary
from flashatlas.sweep.numbers import title_of
from flashatlas.tables import word

SUFFIXES = (".tex", ".csv")

SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "µ": r"\textmu{}",
    "±": r"$\pm$",
    "–": "--",
}
"""Signs that LaTeX reads as something else."""


def write_summary(path: Path, runs: Frame, of: Sequence[str]) -> Path:
    """Write a row for each combination of factors, with means and intervals over seeds.

    Args:
        path: ``.tex``: a table for the package ``booktabs``; ``.csv``: mean, and both ends of the
            interval of 95 %, in the units of the record.
        runs: The runs.
        of: Numbers.

    Raises:
        InputError: No such number, or another kind of file.

    """
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: a table of means ends in {', '.join(SUFFIXES)}")
    groups = summary(runs, of)
    text = (_latex if path.suffix == ".tex" else _csv)(groups, runs, of)
    write_whole(path, text)
    return path


def _latex(groups: Sequence[Group], runs: Frame, of: Sequence[str]) -> str:
    factors = list(groups[0].factors)
    head = " & ".join(escaped(name) for name in [*factors, *map(title_of, of)])
    rows = [
        " & ".join(
            escaped(cell)
            for cell in (
                *(word(group.factors[name], runs.unit(name)) for name in factors),
                *(group.said(name, runs.unit(name)) for name in of),
            )
        )
        for group in groups
    ]
    lines = [
        r"% means over seeds, and half of the interval of 95 %; needs \usepackage{booktabs}",
        rf"\begin{{tabular}}{{{'l' * len(factors)}{'r' * len(of)}}}",
        r"\toprule",
        rf"{head} \\",
        r"\midrule",
        *(rf"{row} \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Text as LaTeX writes it."""
    return re.sub("|".join(map(re.escape, SPECIAL)), lambda found: SPECIAL[found[0]], text)


def _csv(groups: Sequence[Group], runs: Frame, of: Sequence[str]) -> str:
    factors = list(groups[0].factors)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    ends = [f"{name}.{end}" for name in of for end in ("mean", "low", "high")]
    writer.writerow([*factors, "runs", *ends])
    for group in groups:
        row = [*(group.factors[name] for name in factors), group.runs]
        for name in of:
            found = group.estimates.get(name)
            row += [None] * 3 if found is None else [found.mean, found.low, found.high]
        writer.writerow(row)
    return buffer.getvalue()
