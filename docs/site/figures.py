"""Figures of the papers' pages: the results of an experiment, drawn by Vega-Lite into an SVG."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from flashatlas.drawing import charts

ROOT = Path(__file__).resolve().parents[2]


def found(usage: str | None, experiment: str) -> dict[str, Any]:
    """Return the numbers of an experiment, from the folder that the command line names.

    Raises:
        SystemExit: The command line names no folder; the message is ``usage``.

    """
    if len(sys.argv) != 2:
        raise SystemExit(usage)
    text = (Path(sys.argv[1]) / f"{experiment}.json").read_text(encoding="utf-8")
    numbers: dict[str, Any] = json.loads(text)
    return numbers


def save(path: Path, specification: dict[str, Any]) -> None:
    """Draw a figure on white, and save it."""
    whole = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": "#ffffff",
        "padding": 8,
        "config": {"font": "sans-serif", "axis": {"gridColor": "#e8ebf0"}},
        **specification,
    }
    path.write_text(charts.library().vegalite_to_svg(whole) + "\n", encoding="utf-8")
    print(path)
