"""The tables of the MAST experiment."""

from __future__ import annotations

from flashatlas.reproduce.mast.plan import MERGED, Mast, Row
from flashatlas.reproduce.table import Listing
from flashatlas.results.units import size


def numbers_of(mast: Mast, row: Row) -> tuple[str, ...]:
    """Return the cells of a row."""
    record, shares = row.result.record, row.shares
    return (
        f"{mast.relative(row):.3f}",
        f"{row.result.waf:.3f}",
        *(f"{100 * shares[name]:.1f} %" if shares else "–" for name in MERGED),
        f"{row.moved:,}",
        f"{record.get('merges', {}).get('copies', 0):,}",
        f"{sum(record['nand']['erases'].values()):,}",
        size(row.table_bytes),
    )


NUMBERS = ("efficiency", "WAF", *MERGED, "moved", "copies", "erases", "tables")


def varied(mast: Mast) -> list[str]:
    """Return the applications on which the paper's open points were tried."""
    return [a.name for a in mast.applications if a.variants]


def variant_rows(mast: Mast) -> list[tuple[str, ...]]:
    """Return efficiency and shares on the varied applications, for each variant of a scheme."""
    names = varied(mast)
    kinds = dict.fromkeys((row.scheme, row.variant) for row in mast.rows if not row.reference)
    return [
        (
            f"{scheme}, {variant}" if variant else scheme,
            *(
                _short(mast, row)
                for row in mast.rows
                if row.application in names and (row.scheme, row.variant) == (scheme, variant)
            ),
        )
        for scheme, variant in kinds
    ]


def _short(mast: Mast, row: Row) -> str:
    dead, full = (100 * row.shares.get(name, 0.0) for name in ("dead", "full"))
    return f"{mast.relative(row):.3f} ({dead:.1f} / {full:.1f})"


def figure_2(mast: Mast) -> Listing:
    """Return figure 2: the share of valid pages of each area, the mean over the run."""
    shares = {
        a.name: next(row for row in mast.of(a.name) if row.scheme == "MAST").utilisation()
        for a in mast.applications
    }
    areas = list(dict.fromkeys(area for found in shares.values() for area in found))
    rows = [
        (name, *(f"{found[area]:.2f}" if area in found else "–" for area in areas))
        for name, found in shares.items()
    ]
    return Listing("Figure 2: share of valid pages in each area", "", ["", *areas], rows)


VARIANTS = (
    "Efficiency with FAST as 1; in brackets the shares of dead and of full merges, in per cent."
)


def listings(mast: Mast) -> list[Listing]:
    """Return the tables for the terminal."""
    made = [
        Listing(
            a.name,
            a.source,
            ["", *NUMBERS],
            [(row.scheme, *numbers_of(mast, row)) for row in mast.of(a.name)],
        )
        for a in mast.applications
    ]
    claims = [
        (c.application, c.over, f"{c.published:+g} %", f"{c.ours:+.1f} %", f"{c.deviation:+.1f}")
        for c in mast.claims()
    ]
    head = ["", "over", "published", "ours", "deviation, points"]
    made.append(Listing("MAST's gain in efficiency", "", head, claims))
    orders = [
        (o.application, o.kind, o.published, o.ours or "nothing merged") for o in mast.orders()
    ]
    head = ["", "share of", "published", "ours"]
    made.append(Listing("Schemes by share of merges, the largest first", "", head, orders))
    made.append(figure_2(mast))
    if any(row.variant for row in mast.rows):
        head = ["", *varied(mast)]
        made.append(Listing("What the paper leaves open", VARIANTS, head, variant_rows(mast)))
    return made
