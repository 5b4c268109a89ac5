"""The report of the MAST experiment: the paper's figures beside its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flashatlas.report import chart
from flashatlas.report.bars import BAR
from flashatlas.report.html import section, table, table_rows, text
from flashatlas.report.palette import TABLE_COLOURS, colour_key
from flashatlas.reproduce.mast.plan import MERGED, Mast
from flashatlas.reproduce.mast.tables import (
    NUMBERS,
    VARIANTS,
    numbers_of,
    variant_rows,
    varied,
)
from flashatlas.reproduce.page import Part, report

TITLE = "MAST against FAST and LAST"

APPLICATION = ("application", "Application", "text")
SCHEME = ("scheme", "Scheme", "text")


def page(mast: Mast, command: str) -> str:
    """Return the report as HTML text; ``command`` runs everything again."""
    experiment = mast.experiment
    known = [
        ("Drive", text(f"{experiment['drive']}, {', '.join(experiment['set'])}")),
        ("Preconditioning", text(experiment["precondition"])),
        *(
            (f"Application {i}", text(f"{a.name}: {a.source}"))
            for i, a in enumerate(mast.applications, 1)
        ),
        (
            "Efficiency",
            "pages that the host writes, divided by the time that the flash works for them (array "
            "times)",
        ),
    ]
    figures = chart.Section(
        "figures",
        "The paper's figures",
        "Ours, on the applications named above; the paper does not name its own.",
        [utilisation(mast), classes(mast), efficiency(mast)],
    )
    parts: list[Part] = [
        ("claims", "Published and ours", _claims(mast)),
        figures,
        ("numbers", "All numbers", _numbers(mast)),
    ]
    if any(row.variant for row in mast.rows):
        parts.append(("variants", "What the paper leaves open", _variants(mast)))
    aside = f"Reproduction in {len(mast.rows)} runs"
    return report(TITLE, aside, [row.result for row in mast.rows], known, parts, command)


def _claims(mast: Mast) -> str:
    margin = mast.experiment["published"]["margin"]
    claims = [
        (
            claim.application,
            claim.over,
            f"{claim.published:+g} %",
            f"{claim.ours:+.1f} %",
            f"{claim.deviation:+.1f}",
            "same" if (claim.ours > margin) == (claim.published > margin) else "other",
        )
        for claim in mast.claims()
    ]
    head = [
        "Application",
        "MAST over",
        "Published",
        "Ours",
        "Deviation, points",
        f"Gain above {margin} %",
    ]
    orders = [
        (o.application, o.kind, o.published, o.ours or "nothing merged", "yes" if o.same else "no")
        for o in mast.orders()
    ]
    return section(
        "claims",
        "Published and ours",
        '<p class="lead">Efficiency of MAST over each other scheme, and all schemes by shares '
        "of merges.</p>",
        table("Efficiency, published and ours", head, [("", table_rows(claims))]),
        table(
            "Orders, published and ours",
            ["Application", "Share", "Published, largest first", "Ours", "The same"],
            [("", table_rows(orders))],
        ),
    )


def _numbers(mast: Mast) -> str:
    bodies = [
        (
            text(a.name),
            table_rows([(row.scheme, *numbers_of(mast, row)) for row in mast.of(a.name)]),
        )
        for a in mast.applications
    ]
    lead = (
        "Efficiency with FAST as 1; classes as shares of the log blocks that were merged or dead; "
        "tables in memory."
    )
    return section(
        "numbers",
        "All numbers",
        f'<p class="lead">{lead}</p>',
        table("All numbers", ["Scheme", *(name[0].upper() + name[1:] for name in NUMBERS)], bodies),
    )


def _variants(mast: Mast) -> str:
    head = ["Scheme and switch", *(text(name) for name in varied(mast))]
    return section(
        "variants",
        "What the paper leaves open",
        f'<p class="lead">{VARIANTS}</p>',
        table("Variants", head, [("", table_rows(variant_rows(mast)))]),
    )


def _panels(mast: Mast, names: Sequence[str], data: str, build: Any) -> dict[str, Any]:
    """Return one panel for each application, with a bar for each name."""
    panels = []
    for application in mast.applications:
        y = chart.a_row_each("scheme", names)
        panels.append(
            {
                "title": application.name,
                "height": {"step": BAR},
                "data": {"name": data},
                "transform": [{"filter": {"field": "application", "equal": application.name}}],
                **build(y),
            }
        )
    return chart.stack(panels)


def classes(mast: Mast) -> chart.Chart:
    """Return figure 3: the classes of merges."""
    logs = [row for row in mast.rows if row.shares and not row.variant and sum(row.shares.values())]
    rows = [
        (row.application, row.scheme, name, share, order)
        for row in logs
        for order, (name, share) in enumerate(row.shares.items())
    ]
    data = chart.columns_of(("application", "scheme", "part", "value", "order"), rows)
    colours = {name: f"var(--table-{i % TABLE_COLOURS})" for i, name in enumerate(MERGED)}

    def build(y: dict[str, Any]) -> dict[str, Any]:
        return {
            "mark": {"type": "bar", "height": BAR - 6},
            "encoding": {
                "y": y,
                "x": {
                    "field": "value",
                    "type": "quantitative",
                    "stack": "zero",
                    "axis": chart.axis("share", tickCount=5),
                },
                "color": chart.coloured("part", colours),
                "order": {"field": "order", "type": "quantitative"},
                "tooltip": [
                    chart.text_field("scheme", "scheme"),
                    chart.text_field("part", "class"),
                    chart.number_field("value", "share", "share"),
                ],
            },
        }

    names = list(dict.fromkeys(row.scheme for row in logs))
    said = "; ".join(
        f"{row.application}, {row.scheme}: "
        + ", ".join(f"{name} {100 * share:.0f} %" for name, share in row.shares.items())
        for row in logs
        if not row.reference
    )
    columns = [APPLICATION, SCHEME, ("part", "Class", "text"), ("value", "Share", "share")]
    return chart.Chart(
        "classes",
        "Figure 3: log blocks by class of their merge",
        f"Merge classes. {said}",
        _panels(mast, names, "classes", build),
        {"classes": data},
        {"classes": ("Merge classes", columns)},
        lead="Log blocks whose valid pages moved to others are not included.",
        key=colour_key("Classes", list(colours.items())),
        left="names",
    )


def efficiency(mast: Mast) -> chart.Chart:
    """Return figure 4: efficiency with FAST as 1, and the paper's values."""
    over = mast.experiment["published"]["over"]
    published: dict[tuple[str, str], float] = {}
    for i, application in enumerate(each for each in mast.applications if each.published):
        own = 1 + over["FAST"][i] / 100
        published[application.name, "FAST"] = 1.0
        published[application.name, "MAST"] = own
        published[application.name, "LAST"] = own / (1 + over["LAST"][i] / 100)
    rows = [row for row in mast.rows if not row.variant]
    data: chart.Columns = {
        "application": [row.application for row in rows],
        "scheme": [row.scheme for row in rows],
        "value": [chart.rounded(mast.relative(row)) for row in rows],
        "published": [chart.rounded(published.get((row.application, row.scheme))) for row in rows],
    }
    top = max([*data["value"], *(value for value in data["published"] if value)])

    def build(y: dict[str, Any]) -> dict[str, Any]:
        def x(name: str) -> dict[str, Any]:
            return {
                "field": name,
                "type": "quantitative",
                "scale": {"domain": [0, top * 1.05], "nice": False},
                "axis": chart.axis("short", tickCount=6),
            }

        tooltip = [
            chart.text_field("scheme", "scheme"),
            chart.number_field("value", "ours", "ratio"),
            chart.number_field("published", "published", "ratio"),
        ]
        mark = {
            "type": "point",
            "shape": "diamond",
            "size": 90,
            "strokeWidth": 2,
            "color": "var(--ink)",
        }
        return {
            "layer": [
                {
                    "mark": {"type": "bar", "height": BAR - 6, "color": "var(--run-0)"},
                    "encoding": {"y": y, "x": x("value"), "tooltip": tooltip},
                },
                {
                    "transform": [{"filter": "isValid(datum.published)"}],
                    "mark": mark,
                    "encoding": {"y": y, "x": x("published"), "tooltip": tooltip},
                },
            ]
        }

    names = list(dict.fromkeys(row.scheme for row in rows))
    said = "; ".join(f"{row.application}, {row.scheme}: {mast.relative(row):.3f}" for row in rows)
    columns = [APPLICATION, SCHEME, ("value", "Ours", "ratio"), ("published", "Published", "ratio")]
    return chart.Chart(
        "efficiency",
        "Figure 4: efficiency, with FAST as 1",
        f"Efficiency over FAST. {said}",
        _panels(mast, names, "efficiency", build),
        {"efficiency": data},
        {"efficiency": ("Efficiency", columns)},
        lead="Bars are our results. Diamonds are the results of the paper. It compares LAST with "
        "MAST only, so its results for LAST are computed by way of MAST.",
        left="names",
    )


def utilisation(mast: Mast) -> chart.Chart:
    """Return figure 2: the share of valid pages of each area of MAST's log."""
    rows = [
        (application.name, area, chart.rounded(mean))
        for application in mast.applications
        for area, mean in mast.row(application.name, "MAST").utilisation().items()
    ]
    data = chart.columns_of(("application", "scheme", "value"), rows)

    def build(y: dict[str, Any]) -> dict[str, Any]:
        return {
            "mark": {"type": "bar", "height": BAR - 6, "color": "var(--run-0)"},
            "encoding": {
                "y": y,
                "x": {
                    "field": "value",
                    "type": "quantitative",
                    "scale": {"domain": [0, 1]},
                    "axis": chart.axis("share", tickCount=5),
                },
                "tooltip": [
                    chart.text_field("scheme", "area"),
                    chart.number_field("value", "valid pages", "share"),
                ],
            },
        }

    names = list(dict.fromkeys(data["scheme"]))
    parts = zip(data["application"], data["scheme"], data["value"], strict=True)
    said = "; ".join(
        f"{application}, {area}: {100 * value:.0f} %" for application, area, value in parts
    )
    return chart.Chart(
        "utilisation-areas",
        "Figure 2: valid pages by area of MAST's log",
        f"Valid pages by area. {said}",
        _panels(mast, names, "areas", build),
        {"areas": data},
        {
            "areas": (
                "Valid pages by area",
                [APPLICATION, ("scheme", "Area", "text"), ("value", "Valid pages", "share")],
            )
        },
        lead="Share of all pages of an area's blocks; the mean over the run.",
        left="names",
    )
