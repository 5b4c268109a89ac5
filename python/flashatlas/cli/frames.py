"""Commands that draw and list runs: ``figure``, ``table``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from flashatlas import InputError
from flashatlas.cli.console import err, say
from flashatlas.cli.options import AllowIncomplete
from flashatlas.drawing.figure import BARS, HEIGHTS, LOGS, draw
from flashatlas.drawing.points import Asked, averaged
from flashatlas.files import write_whole
from flashatlas.results import steadiness
from flashatlas.results.frame import Frame, as_file
from flashatlas.statistics.significance import significance as sentences
from flashatlas.sweep.results import frame_at

Runs = Annotated[
    list[Path],
    typer.Argument(
        metavar="DIR…",
        help="Folders that `run --out` or `compare --out` wrote, or a store that `sweep` filled "
        "(STORE:STUDY).",
    ),
]
TableFile = Annotated[
    str,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="File of the table (.csv, .jsonl or .parquet). Give '-' to print the table as CSV.",
    ),
]


def figure(
    runs: Runs,
    x: Annotated[
        str,
        typer.Option("--x", metavar="COLUMN", help="Horizontal axis: a setting, or 'percentile'."),
    ],
    y: Annotated[
        str, typer.Option("--y", metavar="COLUMN", help="Vertical axis: a number of the record.")
    ] = "waf",
    by: Annotated[
        str | None,
        typer.Option(
            "--by", metavar="COLUMN", help="Draw a line or bar for each value of this column."
        ),
    ] = None,
    panel: Annotated[
        str | None,
        typer.Option(
            "--panel", metavar="COLUMN", help="Draw a panel for each value of this column."
        ),
    ] = None,
    out_: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE", help="File of the figure: .pdf, .svg or .png."),
    ] = Path("figure.pdf"),
    columns: Annotated[
        int, typer.Option("--columns", min=1, max=2, help="Width in columns of a printed page.")
    ] = 1,
    kind: Annotated[
        str,
        typer.Option(
            "--kind",
            metavar="line|point|bar",
            help="Drawing of the points: joined by a line, as single points, or as bars.",
        ),
    ] = "line",
    bars: Annotated[
        str,
        typer.Option(
            "--bars",
            metavar="|".join(BARS),
            help="Meaning of the bar at a point: the range of its runs, or the 95 % interval of "
            "their mean over seeds (for five seeds or more).",
        ),
    ] = BARS[0],
    log: Annotated[
        str | None,
        typer.Option(
            "--log",
            metavar="|".join(LOGS),
            help="Logarithmic axes; by default, axes whose values span a wide range are "
            "logarithmic.",
        ),
    ] = None,
    name: Annotated[
        list[str],
        typer.Option(
            "--name",
            metavar="WHAT=NAME",
            help="Title in the figure for a column or a value; may be repeated.",
        ),
    ] = [],  # noqa: B006
    height: Annotated[
        int | None,
        typer.Option(
            "--height",
            min=HEIGHTS[0],
            max=HEIGHTS[1],
            metavar="PT",
            help="Height of a panel, in points.",
        ),
    ] = None,
    allow_incomplete: AllowIncomplete = False,
) -> None:
    """Draw one result of many runs against a factor, in the size of a paper's column.

    The columns are the columns of `flashatlas table`. If runs differ only in settings that are not
    drawn (seeds, for example), one point shows their mean. A bar at the point shows their range, or
    with `--bars interval` the interval of the mean. Points of runs that were not steady are hollow.
    Notes under the figure explain its marks and bars.

    For example:
    `flashatlas figure out/study --x map.cache_bytes --y waf --by ftl.victim --panel trace -o f.pdf`

    or: `flashatlas figure out/study --x percentile --y latency_ns.read --by ftl.victim -o tail.pdf`

    or: `flashatlas figure results:mixes --x workload --name "zipf theta=0.9=hot" -o mixes.svg`
    """
    results = frame_at(runs)
    asked = Asked(x, y, by, panel, columns, kind, height, bars, log, _named(name))
    found = draw(results, out_, asked, allow_incomplete=allow_incomplete)
    over = averaged(results, asked)
    say(f"Figure: {out_}" + (f" (averaged over {', '.join(over)})" if over else ""))
    for note in found.notes:
        say(escape(note))


def _named(given: list[str]) -> dict[str, str]:
    """Return the names for columns and values; a value may contain ``=``."""
    found = {}
    for text in given:
        what, equals, name = text.rpartition("=")
        if not equals or not what or not name:
            raise InputError(f"--name: `{text}` has no `=`; write WHAT=NAME")
        found[what] = name
    return found


def table(
    runs: Runs,
    out_: TableFile = "-",
    allow_incomplete: AllowIncomplete = False,
) -> None:
    """Write runs as a table: a row for each run, a column for each setting and number.

    The column `steady` is false for numbers that would move in a longer run.

    For example: `flashatlas table out/study -o study.csv`
    """
    found = frame_at(runs)
    found.must_be_whole(allowed=allow_incomplete, with_failures=True)
    write_frame(found, out_)
    if out_ != "-":
        say(f"Table: {out_}")


def significance(
    runs: Runs,
    of: Annotated[
        str, typer.Option("--of", metavar="COLUMN", help="Number of the record that is tested.")
    ],
    between: Annotated[
        str,
        typer.Option(
            "--between",
            metavar="COLUMN",
            help="Factor whose values are compared, such as ftl.victim.",
        ),
    ],
    each: Annotated[
        list[str],
        typer.Option(
            "--each",
            metavar="COLUMN",
            help="Print a sentence for each value of this column; may be repeated.",
        ),
    ] = [],  # noqa: B006
    allow_incomplete: AllowIncomplete = False,
) -> None:
    """Test whether a difference is more than chance, and print a sentence for each value.

    Two runs are a pair if they differ only in this factor. Pairs with the same trace and the same
    seed are one repetition. For each repetition, the mean of the log ratios of its pairs is taken;
    the test flips the signs of these means.

    For example: `flashatlas significance out/study --of waf --between ftl.victim --each trace`
    """
    found = frame_at(runs)
    for sentence in sentences(found, of, between, each, allow_incomplete=allow_incomplete):
        say(escape(sentence))
    say_unsteady(found)


def say_unsteady(runs: Frame) -> None:
    """Print the number of runs that were not steady."""
    if found := steadiness.of_frame(runs):
        err.print(escape(found), highlight=False, soft_wrap=True)


def write_frame(runs: Frame, target: str) -> None:
    """Write runs to a file in the format of its ending; for ``-``, print them as CSV.

    Notes for the reader go to standard error, so that standard output contains only the table.
    """
    if missing := runs.incomplete():
        err.print(escape(f"Incomplete: {missing}"), highlight=False, soft_wrap=True)
    say_unsteady(runs)
    content = as_file(runs.table, ".csv" if target == "-" else target)
    if target == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
    else:
        write_whole(Path(target), content)
