"""The picture of the README: every map of `examples/field.toml`, memory against amplification.

python docs/site/picture.py        after `make demo`, which carries the study out
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from flashatlas import Study
from flashatlas.report import vega
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs/maps.svg"
LOADS = ("random 4 KiB", "pgbench")
FAMILIES = {
    "the whole map in DRAM": ("page", "page, map flushed", "page, map flushed whole", "DRAM+NVM"),
    "a part of the map in SRAM": (
        "demand", "DFTL", "CDFTL", "S-FTL", "TPFTL", "LeaFTL", "LearnedFTL", "LPMT",
    ),
    "a layer in the host": ("HPB", "HARD", "HARD, demand", "HARD, HPB", "HARD, MAST"),
    "block mapping, log blocks": (
        "block", "BAST", "SAST", "FAST", "FASTer", "LAST", "Superblock", "MAST",
    ),
}  # fmt: skip
SHORT = {"page, map flushed": "map flushed", "page, map flushed whole": "map flushed whole"}
NEAR = 1.04
"""Points whose coordinates differ by less have one label."""
HEIGHT = 380
COLOURS = ("#2563c9", "#0f8a6a", "#c2571a", "#8a4bb8")


def points() -> list[dict[str, Any]]:
    """Return a point for each map and load of the study.

    Raises:
        SystemExit: The study is not complete.

    """
    family = {name: kind for kind, names in FAMILIES.items() for name in names}
    runs = Study.load(ROOT / "examples/field.toml").results()
    found = [
        {
            "map": row["mapping"],
            "family": family[row["mapping"]],
            "load": row["load"],
            "kib": row["memory_bytes.map"] / 1024,
            "waf": row["waf"],
            "steady": steady,
        }
        for row, steady in zip(runs.rows(), runs.steady(), strict=True)
        if row["load"] in LOADS
    ]
    if len(found) != len(family) * len(LOADS):
        raise SystemExit(f"examples/field.toml: {len(found)} points; carry it out: make demo")
    return found


def named(name: str) -> str:
    """Return the name of a map as the picture has it: a stack of two with a plus sign."""
    return SHORT.get(name, name.replace(", ", "+"))


def labels(values: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the points of one load, each with its label: one for all that lie within 4 %."""
    groups: list[list[dict[str, Any]]] = []
    for value in sorted(values, key=lambda value: (value["kib"], value["waf"])):
        for group in groups:
            first = group[0]
            if value["kib"] / first["kib"] < NEAR and 1 / NEAR < value["waf"] / first["waf"] < NEAR:
                group.append(value)
                break
        else:
            groups.append([value])
    return [
        {**value, "label": ", ".join(named(one["map"]) for one in group) * (not place)}
        for group in groups
        for place, value in enumerate(group)
    ]


def panel(load: str, offset: int, values: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the panel of one load, as a group of Vega."""
    size = {"width": 400, "height": HEIGHT}
    ticks = {"gridColor": "#e8ebf0", "domainColor": "#aab2bf", "tickColor": "#aab2bf"}
    colour = {"scale": "colour", "field": "family"}
    mark = {
        "x": {"scale": "x", "field": "kib"},
        "y": {"scale": "y", "field": "waf"},
        "stroke": colour,
        "strokeWidth": {"value": 1.6},
        "fill": [{"test": "datum.steady", **colour}, {"value": "#ffffff"}],
        "size": {"value": 46},
    }
    label = {
        "type": "label",
        "size": [size["width"] + 60, size["height"]],
        "anchor": ["right", "left", "top", "bottom", "top-right", "bottom-right", "top-left",
                   "bottom-left"],
        "offset": [3, 5, 9],
        "avoidMarks": [f"marks-{offset}"],
        "padding": 30,
    }  # fmt: skip
    return {
        "type": "group",
        "encode": {
            "enter": {
                "x": {"value": offset},
                "width": {"value": size["width"]},
                "height": {"value": size["height"]},
            }
        },
        "data": [{"name": f"values-{offset}", "values": labels(values)}],
        "axes": [
            {"scale": "x", "orient": "bottom", "title": "memory of the map, KiB", "grid": True,
             "values": [1, 4, 16, 64, 256], "format": "d", **ticks},
            {"scale": "y", "orient": "left", "title": "write amplification", "grid": True,
             "values": [1, 2, 4, 8, 16, 32], "format": "d", **ticks},
        ],
        "marks": [
            {"type": "text", "encode": {"enter": {
                "text": {"value": load}, "y": {"value": -10}, "fontSize": {"value": 14},
                "fontWeight": {"value": "bold"}, "fill": {"value": "#1a2230"}}}},
            {"type": "symbol", "name": f"marks-{offset}", "from": {"data": f"values-{offset}"},
             "encode": {"enter": mark}},
            {"type": "text", "from": {"data": f"marks-{offset}"}, "transform": [label],
             "encode": {"enter": {"text": {"field": "datum.label"}, "fontSize": {"value": 10.5},
                                  "fill": {"field": "stroke"}}}},
        ],
    }  # fmt: skip


def picture(values: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the picture as a specification of Vega."""

    def scale(name: str, domain: list[float], range_: list[float]) -> dict[str, Any]:
        return {"name": name, "type": "log", "domain": domain, "range": range_}

    return {
        "$schema": "https://vega.github.io/schema/vega/v5.json",
        "width": 960,
        "height": HEIGHT,
        "padding": 12,
        "background": "#ffffff",
        "config": {"text": {"font": "sans-serif"}, "title": {"font": "sans-serif"}},
        "scales": [
            scale("x", [0.8, 512], [0, 400]),
            scale("y", [1, 40], [HEIGHT, 0]),
            {"name": "colour", "type": "ordinal", "domain": list(FAMILIES), "range": COLOURS},
        ],
        "legends": [
            {"stroke": "colour", "fill": "colour", "orient": "bottom", "direction": "horizontal",
             "symbolType": "circle", "labelFontSize": 12, "columnPadding": 18, "offset": 14}
        ],
        "marks": [
            panel(load, 490 * index, [value for value in values if value["load"] == load])
            for index, load in enumerate(LOADS)
        ],
    }  # fmt: skip


def drawn(specification: dict[str, Any]) -> str:
    """Return the picture as SVG. Chromium draws it: labels that avoid marks need a canvas."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        page = browser.new_page()
        page.set_content("<div id=picture></div>")
        page.add_script_tag(content=vega.bundle())
        svg = page.evaluate(
            "async spec => (await vegaEmbed('#picture', spec, {renderer: 'none'})).view.toSVG()",
            specification,
        )
        browser.close()
    return str(svg)


def main() -> None:
    """Draw the picture."""
    PICTURE.write_text(drawn(picture(points())) + "\n", encoding="utf-8")
    print(PICTURE)


if __name__ == "__main__":
    main()
