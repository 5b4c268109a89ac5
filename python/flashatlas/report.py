"""A plain report: one HTML file, no script, no network, light and dark."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

from flashatlas.files import write_whole
from flashatlas.result import Result
from flashatlas.tables import best, duration, filled_rows

CAUSES = {
    "host": ("host", "#4c78a8"),
    "cache_evict": ("write cache", "#72b7b2"),
    "rmw": ("partial units", "#54a24b"),
    "gc": ("collection", "#e45756"),
    "map": ("map", "#b279a2"),
    "merge": ("merges", "#f58518"),
    "idle": ("idle time", "#eeca3b"),
    "wear": ("wear levelling", "#9d755d"),
}

PERCENTILES = (("p50", "50"), ("p90", "90"), ("p99", "99"), ("p99_9", "99.9"), ("p99_99", "99.99"), ("max", "max"))

STYLE = """
:root { color-scheme: light dark; --line: #8884; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 75rem; padding: 1rem; }
h1 { line-height: 1.2; } h2 { margin-top: 2.5rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .8rem; text-align: right; white-space: nowrap; }
th[scope=row], thead th:first-child { text-align: left; font-weight: normal; white-space: pre; }
.best { font-weight: bold; color: light-dark(#0a6b2d, #6ee797); }
.bar { display: flex; height: 1.4rem; margin: .2rem 0 .8rem; }
.bar span { display: block; min-width: 1px; }
.key span { display: inline-block; margin-right: 1rem; }
.key i { display: inline-block; width: .9em; height: .9em; margin-right: .3em; vertical-align: -.1em; }
code, pre { font-size: .9em; } pre { white-space: pre-wrap; border: 1px solid var(--line); padding: .6rem; }
@media print { body { max-width: none; } .scroll { overflow: visible; } }
"""


def write_report(path: Path, title: str, results: Sequence[Result], command: str) -> Path:
    """Write the report of some runs, side by side. ``command`` is what reruns them."""
    write_whole(path, render(title, results, command))
    return path


def render(title: str, results: Sequence[Result], command: str) -> str:
    """The report as HTML text."""
    parts = [
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{_e(title)}</title>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<style>{STYLE}</style></head><body><main><h1>{_e(title)}</h1>",
        _introduction(results, command),
        "<h2>Side by side</h2>",
        _summary(results),
        "<h2>Write amplification by cause</h2>",
        _amplification(results),
        "<h2>Latency percentiles</h2>",
        _latencies(results),
        "<h2>What was run</h2>",
        _configurations(results),
        "</main></body></html>\n",
    ]
    return "\n".join(parts)


def _e(text: object) -> str:
    return html.escape(str(text), quote=True)


def _name(result: Result) -> str:
    return result.label or result.record["config"]["drive"]


def _introduction(results: Sequence[Result], command: str) -> str:
    traces = sorted({result.record["trace"]["path"] for result in results})
    checked = sum(
        result.record["oracle"]["units_checked"] + result.record["oracle"]["units_swept"] for result in results
    )
    wrong = sum(result.violations for result in results)
    verdict = "none was wrong" if wrong == 0 else f"<strong>{wrong:,} were wrong</strong>"
    return (
        f"<p>{len(results)} runs of {_e(', '.join(traces))}. {checked:,} mapping units were compared with what was "
        f"last written to them; {verdict}.</p><p>To run it again:</p><pre>{_e(command)}</pre>"
    )


def _table(head: Sequence[str], rows: Sequence[str]) -> str:
    columns = "".join(f"<th scope='col'>{_e(name)}</th>" for name in head)
    return f"<div class='scroll'><table><thead><tr>{columns}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"


def _summary(results: Sequence[Result]) -> str:
    rows = []
    for row, values in filled_rows(results):
        winners = best(row, values)
        texts = ["–" if value is None else _e(row.text(value)) for value in values]
        cells = "".join(
            f"<td class=best>{text} ★</td>" if i in winners else f"<td>{text}</td>" for i, text in enumerate(texts)
        )
        rows.append(f"<tr><th scope='row'>{_e(row.name)}</th>{cells}</tr>")
    return _table(["", *map(_name, results)], rows) + "<p>★ the best of its row, where one direction is better.</p>"


def _amplification(results: Sequence[Result]) -> str:
    largest = max((result.waf or 0.0 for result in results), default=0.0)
    if largest == 0:
        return "<p>Nothing was written.</p>"
    key = "".join(f"<span><i style='background:{color}'></i>{_e(name)}</span>" for name, color in CAUSES.values())
    bars = []
    for result in results:
        parts = result.record.get("waf_parts", {})
        pieces = "".join(
            f"<span style='width:{100 * value / largest:.3f}%;background:{CAUSES[cause][1]}' "
            f"title='{_e(CAUSES[cause][0])}: {value:.4f}'></span>"
            for cause, value in parts.items()
            if cause in CAUSES
        )
        spoken = ", ".join(f"{CAUSES[c][0]} {v:.3f}" for c, v in parts.items() if c in CAUSES)
        bars.append(
            f"<div>{_e(_name(result))}: <b>{result.waf or 0:.3f}</b></div>"
            f"<div class='bar' role='img' aria-label='{_e(spoken)}'>{pieces}</div>"
        )
    return f"<p class='key'>{key}</p>{''.join(bars)}"


def _latencies(results: Sequence[Result]) -> str:
    tables = []
    for op in ("read", "write", "flush", "trim"):
        timed = [result for result in results if op in result.latency]
        if not timed:
            continue
        rows = []
        for result in timed:
            cells = "".join(
                f"<td>{duration(result.latency[op][key])}</td>" for key in ("mean", *(k for k, _ in PERCENTILES))
            )
            rows.append(f"<tr><th scope='row'>{_e(_name(result))}</th>{cells}</tr>")
        tables.append(f"<h3>{op.capitalize()}</h3>" + _table(["", "mean", *(p for _, p in PERCENTILES)], rows))
    return "".join(tables) or "<p>The runs were untimed.</p>"


def _configurations(results: Sequence[Result]) -> str:
    shared = results[0].record["config"]["params"]
    same = {k: v for k, v in shared.items() if all(r.record["config"]["params"].get(k) == v for r in results)}
    blocks = []
    for result in results:
        record = result.record
        own = {k: v for k, v in record["config"]["params"].items() if k not in same}
        listed = (
            "".join(f"<li><code>{_e(k)} = {_e(v)}</code></li>" for k, v in own.items()) or "<li>nothing differs</li>"
        )
        notes = "".join(f"<li>{_e(note)}</li>" for note in record["approximations"])
        blocks.append(
            f"<h3>{_e(_name(result))}</h3><p>Drive {_e(record['config']['drive'])}, configuration "
            f"<code>{record['config_hash'][:12]}</code>, seed {record['seed']}. What sets it apart:</p>"
            f"<ul>{listed}</ul><p>Approximations:</p><ul>{notes}</ul>"
        )
    common = "".join(f"<li><code>{_e(k)} = {_e(v)}</code></li>" for k, v in same.items())
    return (
        "".join(blocks)
        + f"<details><summary>Parameters that all share ({len(same)})</summary><ul>{common}</ul></details>"
    )
