"""Commands that draw and list runs: ``figure``, ``table``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from flashatlas.cli.console import say
from flashatlas.figure import BARS, HEIGHTS, averaged
from flashatlas.figure import figure as draw
from flashatlas.files import write_whole
from flashatlas.frame import Frame, as_file
from flashatlas.significance import significance as sentences
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
        "--out", "-o", metavar="FILE", help="A .csv, .jsonl or .parquet; `-`: CSV, printed."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(figure)
    app.command()(table)
    app.command()(significance)


def figure(
    runs: Runs,
    x: Annotated[str, typer.Option("--x", metavar="COLUMN", help="Across: a setting.")],
    y: Annotated[
        str, typer.Option("--y", metavar="COLUMN", help="Upward: a number of the record.")
    ] = "waf",
    by: Annotated[
        str | None, typer.Option("--by", metavar="COLUMN", help="A line or bar for each value.")
    ] = None,
    panel: Annotated[
        str | None, typer.Option("--panel", metavar="COLUMN", help="A panel for each value.")
    ] = None,
    out_: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="A .pdf, .svg or .png.")
    ] = Path("figure.pdf"),
    columns: Annotated[
        int, typer.Option("--columns", min=1, max=2, help="Columns of a printed page across.")
    ] = 1,
    kind: Annotated[
        str, typer.Option("--kind", metavar="line|point|bar", help="How points are drawn.")
    ] = "line",
    bars: Annotated[
        str,
        typer.Option(
            "--bars",
            metavar="|".join(BARS),
            help="What the bar of a point is: the range of its runs, or the interval of 95 % of "
            "their mean over seeds.",
        ),
    ] = BARS[0],
    height: Annotated[
        int | None,
        typer.Option(
            "--height", min=HEIGHTS[0], max=HEIGHTS[1], metavar="PT", help="Height of a panel."
        ),
    ] = None,
) -> None:
    """Draw a number of many runs over a factor, in the size of a paper's column.

    Columns are those of `flashatlas table`. Runs that differ in nothing drawn (seeds, say) are one
    point: the mean, with a bar from the least to the largest, or (`--bars interval`) over the
    interval of the mean.

    For example:
    `flashatlas figure out/study --x map.cache_bytes --y waf --by ftl.victim --panel trace -o f.pdf`
    """
    results = frame_at(runs)
    draw(
        results,
        out_,
        x=x,
        y=y,
        by=by,
        panel=panel,
        columns=columns,
        kind=kind,
        height=height,
        bars=bars,
    )
    over = averaged(results, x, by, panel)
    say(f"Figure: {out_}" + (f" (averaged over {', '.join(over)})" if over else ""))


def table(
    runs: Runs,
    out_: TableFile = "-",
) -> None:
    """Write runs as a table: a row a run, every setting and every number a column.

    For example: `flashatlas table out/study -o study.csv`
    """
    write_frame(frame_at(runs), out_)
    if out_ != "-":
        say(f"Table: {out_}")


def significance(
    runs: Runs,
    of: Annotated[str, typer.Option("--of", metavar="COLUMN", help="A number of the record.")],
    between: Annotated[
        str, typer.Option("--between", metavar="COLUMN", help="A factor, such as ftl.victim.")
    ],
    each: Annotated[
        list[str],
        typer.Option(
            "--each", metavar="COLUMN", help="A sentence for each value; may be repeated."
        ),
    ] = [],  # noqa: B006
) -> None:
    """Say whether a difference is more than chance: a sentence for each value of a factor.

    Runs are paired that differ in nothing else. Pairs of one trace and one seed are one repetition;
    the signs of the repetitions' mean log ratios are flipped.

    For example: `flashatlas significance out/study --of waf --between ftl.victim --each trace`
    """
    for sentence in sentences(frame_at(runs), of, between, each):
        say(sentence)


def write_frame(runs: Frame, target: str) -> None:
    """Write runs to a file by its ending, or as CSV to standard output for ``-``."""
    content = as_file(runs.table, ".csv" if target == "-" else target)
    if target == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
    else:
        write_whole(Path(target), content)
