"""The command that creates the project of a part of your own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flashatlas import scaffold
from flashatlas.cli.console import out, say

NEXT = {
    "rust": ["cargo test --release", "cargo run --release", "pip install ."],
    "c": ["make check", "make run"],
    "python": ["flashatlas check {name} --plugin ./{ident}.py", "pytest"],
}


def new(
    kind: Annotated[
        str,
        typer.Argument(help=f"Kind of the part: {', '.join(scaffold.KINDS)}.", show_default=False),
    ],
    name: Annotated[str, typer.Argument(help="Name of the part in settings.", show_default=False)],
    language: Annotated[
        str, typer.Option("--lang", "-l", help="Language of the part: rust, c or python.")
    ] = "rust",
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="DIR", help="Folder to create; by default NAME."),
    ] = None,
    crates: Annotated[
        str | None,
        typer.Option(
            "--crates",
            metavar="PATH|VERSION",
            help="For Rust: folder or version of the crates of FlashAtlas; by default the crates "
            "in this installation.",
        ),
    ] = None,
) -> None:
    """Create the project of a part of your own, outside FlashAtlas, with tests.

    For example: `flashatlas new victim mine --lang python`, `flashatlas new scheme mine --lang c`
    """
    folder = to or Path(name)
    for path in scaffold.new(kind, name, language, folder, crates):
        out.print(str(path), highlight=False, markup=False)
    say(f"\ncd {folder}")
    for line in NEXT[language]:
        say(line.format(name=name, ident=name.replace("-", "_")))
