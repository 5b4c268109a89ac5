"""The numbers that papers and vendors published, beside ours: `docs/CLAIMS.md`.

`make claims` repeats all experiments (an hour on two cores, with the recorded traces in
FLASHATLAS_TRACES), keeps their tables in `papers/*/results.json`, and writes the page.
`python tests/claims.py --collect DIR` uses the experiments that the command `flashatlas reproduce
NAME --out DIR/NAME` has carried out; `--show PAPER` prints the tables of a paper as its README has
them. `tests/test_claims.py` compares page and READMEs with the kept tables.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "CLAIMS.md"
VERDICTS = {
    "derived": "follows from numbers that the paper itself gives",
    "reproduced": "our result agrees within the paper's own bounds, and could have disagreed",
    "by construction": "our model was built or set to give this result: no evidence",
    "direction only": "our result has the same sign or order, and another size",
    "contradicted": "our result is the opposite, or the paper contradicts itself",
    "beyond": "the paper does not mention it, and should have",
    "not reproducible": "it needs unpublished data, or our settings were chosen to fit it",
}
INTRODUCTION = """\
# What the papers say, and what comes out

This page has the claims of the five papers about their results, what is published of twelve
products, and the papers' gains on drives of today. Our results stand beside them, with a verdict on
each claim. `make claims` makes this page: it repeats the experiments and keeps their tables in
`papers/*/results.json`. A test compares the page, and the tables of each README, with the kept
tables.

The map stores of the DFTL family (`dftl`, `cdftl`, `sftl`, `tpftl`, `leaftl`, `learnedftl`) are
built after their papers too, and have **no** published number beside them: no row here is about the
hit ratios and gains that those papers print.

| Verdict | |
|---|---|
"""


def experiments() -> list[tuple[Path, dict[str, Any]]]:
    """Return the folder of each paper that has claims, and the claims."""
    files = sorted((ROOT / "papers").glob("*/claims.toml"))
    return [(file.parent, tomllib.loads(file.read_text())) for file in files]


def name_of(claims: dict[str, Any]) -> str:
    """Return the name of the experiment that the command of the claims carries out."""
    name: str = shlex.split(claims["command"])[2]
    return name


def results(folder: Path) -> dict[str, Any]:
    """Return the kept tables of a paper's experiment."""
    kept: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return kept


def configuration(folder: Path) -> str:
    """Return the digest of an experiment's configuration: results belong to one configuration."""
    found = tomllib.loads((folder / "experiment.toml").read_text())
    found.pop("served", None)  # by real clients, which `make claims` does not repeat
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()


def _lines(rows: Sequence[Sequence[str]]) -> str:
    return ",\n".join("    " + json.dumps(row, ensure_ascii=False) for row in rows)


def keep(folder: Path, command: str, found: dict[str, Any]) -> None:
    """Write the tables of an experiment to its paper's folder, with a line for each row."""
    listings = [(t["title"], t["head"], t["rows"]) for t in found["listings"]]
    mechanisms = found["mechanisms"]
    if mechanisms:
        rows = [list(row.values()) for row in mechanisms]
        listings.append(("Mechanisms", list(mechanisms[0]), rows))
    parts = [
        f'  {{"title": {json.dumps(title, ensure_ascii=False)},\n'
        f'   "head": {json.dumps(head, ensure_ascii=False)},\n   "rows": [\n{_lines(rows)}]}}'
        for title, head, rows in listings
    ]
    digest = configuration(folder)
    text = f'{{"command": {json.dumps(command)},\n "experiment": "{digest}",\n "listings": [\n'
    text += ",\n".join(parts) + "]}\n"
    (folder / "results.json").write_text(text)


def select(kept: dict[str, Any], selector: Sequence[str | int]) -> str:
    """Return the cell that a selector names: a title, the first cells of a row, a column.

    A column is a name or a number. A selector without a row names the whole column.

    Raises:
        LookupError: There is no such table, row or column; the message names the existing ones.

    """
    title, *row, column = selector
    tables = {table["title"]: table for table in kept["listings"]}
    if title not in tables:
        raise LookupError(f"no table `{title}`: there are {', '.join(map(repr, tables))}")
    table = tables[str(title)]
    head = table["head"]
    if isinstance(column, str) and column not in head:
        raise LookupError(f"`{title}` has no column `{column}`: there are {head}")
    at = column if isinstance(column, int) else head.index(column)
    rows = [cells for cells in table["rows"] if cells[: len(row)] == row]
    if not rows or (row and len(rows) > 1):
        begun = [cells[: max(len(row), 1)] for cells in table["rows"]]
        raise LookupError(f"`{title}` has {len(rows)} rows {row}: there are {begun}")
    return ", ".join(cells[at].strip() for cells in rows)


def page() -> str:
    """Return the page of claims, made from the kept tables."""
    parts = [INTRODUCTION + "".join(f"| {name} | {said} |\n" for name, said in VERDICTS.items())]
    for folder, claims in experiments():
        if "claim" not in claims:
            continue
        title = (folder / "README.md").read_text().splitlines()[0].removeprefix("# ")
        kept = results(folder)
        said = f"`{kept['command']}`; [the paper's page](../papers/{folder.name}/README.md)."
        parts.append(f"\n## {title}\n\n{said}\n")
        if "note" in claims:
            parts.append("\n" + textwrap.fill(claims["note"], 100, break_on_hyphens=False) + "\n")
        parts.append("\n| The paper says | published | ours | verdict | |\n|---|---|---|---|---|\n")
        for claim in claims["claim"]:
            ours = ", ".join(select(kept, selector) for selector in claim["ours"]) or "–"
            cells = (claim["says"], claim["published"], ours, claim["verdict"], claim["reason"])
            parts.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n")
    return "".join(parts)


def plain(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in the form of the READMEs: columns two spaces apart, nothing wrapped."""
    every = [list(head), *map(list, rows)]
    widths = [max(len(row[i]) for row in every) for i in range(len(head))]
    lines = ("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in every)
    return "\n".join(line.rstrip() for line in lines)


def main() -> None:
    """Carry the experiments out, or take their results from a folder; write tables and page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--collect", type=Path, metavar="DIR", help="finished experiments")
    parser.add_argument("--show", metavar="PAPER", help="print the kept tables of a folder")
    given = parser.parse_args()
    if given.show:
        for table in results(ROOT / "papers" / given.show)["listings"]:
            print(f"{table['title']}\n{plain(table['head'], table['rows'])}\n")
        return
    for folder, claims in experiments():
        out = (given.collect or ROOT / "out") / name_of(claims)
        if not given.collect:
            command = shlex.split(claims["command"])[1:]
            program = str(Path(sys.executable).parent / "flashatlas")
            subprocess.run([program, *command, "--out", str(out)], check=True)
        found = out / f"{name_of(claims)}.json"
        if found.is_file():
            keep(folder, claims["command"], json.loads(found.read_text()))
        else:
            print(f"{found}: not there; papers/{folder.name}/results.json stays as it is")
    PAGE.write_text(page())


if __name__ == "__main__":
    main()
