"""The page: sections, tables, and what makes it one file."""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import vl_convert

import flashatlas
from flashatlas.files import write_whole
from flashatlas.report import charts, data
from flashatlas.report.charts import Chart
from flashatlas.report.words import GLOSSARY, OPERATIONS, PERCENTILES, ROLES
from flashatlas.result import Result
from flashatlas.tables import GROUPS, best, duration, number, size


def write_report(path: Path, title: str, results: Sequence[Result]) -> Path:
    """Write the report of some runs, side by side; it appears whole or not at all."""
    write_whole(path, render(title, results))
    return path


@functools.cache
def _bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script, out of the package that carries them."""
    script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return script.replace("</script", "<\\/script")


def _asset(name: str) -> str:
    return (resources.files("flashatlas.report") / name).read_text(encoding="utf-8")


def render(title: str, results: Sequence[Result]) -> str:
    """The report as HTML text. It loads nothing, and a content policy keeps it from trying."""
    found = _sections(results)
    drawn = [chart for _, _, items in found for chart in items if isinstance(chart, Chart)]
    explorer = data.explorer(results)
    content = {
        "charts": [{"id": chart.id, "spec": chart.spec} for chart in drawn],
        "explorer": explorer,
        "roles": ROLES,
    }
    scripts = [_bundle() if drawn else "", _asset("report.js")]
    policy = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    contents = "".join(f"<li><a href='#{key}'>{_e(name)}</a></li>" for key, name, _ in found)
    explorer_link = "<li><a href='#explorer'>Block explorer</a></li>" if explorer else ""
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        f"<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; style-src 'unsafe-inline'; "
        f'img-src data:; script-src {policy}">',
        f"<title>{_e(title)}</title><meta name='viewport' content='width=device-width, initial-scale=1'>",
        "<link rel='icon' href='data:,'>",
        f"<style>{_asset('report.css')}</style></head><body>",
        "<a class='skip' href='#main'>Skip to the results</a>",
        f"<header><h1>{_e(title)}</h1><button type='button' id='theme'>Dark</button>",
        f"{_introduction(results)}</header>",
        f"<nav aria-label='Contents'><ul>{contents}{explorer_link}<li><a href='#glossary'>Terms</a></li></ul></nav>",
        "<main id='main'>",
        *(_section(key, name, items) for key, name, items in found),
        _explorer(explorer),
        _glossary(),
        "</main>",
        f"<footer><p>FlashAtlas {_e(flashatlas.__version__)}. This file loads nothing.</p></footer>",
        f"<script type='application/json' id='content'>{_json(content)}</script>",
        *(f"<script>{script}</script>" for script in scripts),
        "</body></html>\n",
    ]
    return "".join(parts)


def _e(text: object) -> str:
    return html.escape(str(text), quote=True)


def _json(value: Any) -> str:
    """JSON that no closing tag ends early."""
    return json.dumps(_rounded(value), separators=(",", ":")).replace("<", "\\u003c")


def _rounded(value: Any) -> Any:
    """Nine significant digits: more than anything here is known to."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return value


Section = tuple[str, str, list["Chart | str"]]


def _sections(results: Sequence[Result]) -> list[Section]:
    """Key, name and content of each section that has any."""
    over_time = charts.over_time(results)
    untimed = "<p class='absent'>No times: the runs were untimed.</p>"
    no_series = "<p class='absent'>No time series was kept with these results.</p>"
    timed = any(result.latency for result in results)
    sections: list[tuple[str, str, Sequence[Chart | str | None]]] = [
        ("summary", "Summary", [_tiles(results) if len(results) == 1 else "", _summary(results)]),
        (
            "amplification",
            "Write amplification",
            [charts.amplification(results) or "<p class='absent'>Nothing was written.</p>"],
        ),
        ("latency", "Latency", [*charts.distributions(results), _latencies(results) if timed else untimed]),
        ("time", "Over time", over_time or [no_series if timed else untimed]),
        ("work", "Dies and channels", [charts.utilisation(results) or untimed]),
        ("wear", "Wear", [charts.wear(results)]),
        ("merges", "Merges", [charts.merges(results)]),
        ("memory", "Memory of the map", [charts.memory(results)]),
        ("runs", "What was run", [_commands(results), _configurations(results), _approximations(results)]),
    ]
    return [(key, name, [item for item in items if item]) for key, name, items in sections if any(items)]


def _section(key: str, name: str, items: Sequence[Chart | str]) -> str:
    body = "".join(_figure(item) if isinstance(item, Chart) else item for item in items)
    return f"<section id='{key}' aria-labelledby='{key}-name'><h2 id='{key}-name'>{_e(name)}</h2>{body}</section>"


def _figure(chart: Chart) -> str:
    table = ""
    if chart.rows:
        rows = ["".join(f"<td>{_e(cell)}</td>" for cell in row[1:]) for row in chart.rows]
        heads = [
            f"<tr><th scope='row'>{_e(row[0])}</th>{cells}</tr>" for row, cells in zip(chart.rows, rows, strict=True)
        ]
        table = f"<details><summary>As a table</summary>{_table(chart.head, heads)}</details>"
    note = f"<p class='note'>{_e(chart.note)}</p>" if chart.note else ""
    return (
        f"<figure><figcaption>{_e(chart.title)}</figcaption>"
        f"<div class='chart' id='chart-{chart.id}' role='img' aria-label='{_e(chart.title)}. {_e(chart.said)}'></div>"
        f"{note}<p class='said'>{_e(chart.said)}</p>{table}</figure>"
    )


def _introduction(results: Sequence[Result]) -> str:
    traces = sorted({str(result.record["trace"]["path"]) for result in results})
    oracle = [result.record["oracle"] for result in results]
    checked = sum(o["units_checked"] + o["units_swept"] for o in oracle)
    wrong = sum(o["violations"] for o in oracle)
    verdict = "none was wrong" if wrong == 0 else f"{wrong:,} were wrong"
    runs = "One run" if len(results) == 1 else f"{len(results)} runs"
    kind = "good" if wrong == 0 else "bad"
    return (
        f"<p>{runs} of {_e(', '.join(traces))}.</p><p class='verdict {kind}'>{checked:,} mapping units were compared "
        f"with what was last written to them: {verdict}.</p>"
    )


def _commands(results: Sequence[Result]) -> str:
    commands = dict.fromkeys(result.command for result in results if result.command)
    if not commands:
        return ""
    text = "\n".join(commands)
    return (
        "<h3>To run it again</h3><div class='command'>"
        f"<pre tabindex='0' id='command'>{_e(text)}</pre><button type='button' id='copy'>Copy</button></div>"
    )


def _table(head: Sequence[str], rows: Sequence[str]) -> str:
    columns = "".join(f"<th scope='col'>{_e(name)}</th>" for name in head)
    return (
        "<div class='scroll' tabindex='0' role='region' aria-label='Table, scrolls sideways'>"
        f"<table><thead><tr>{columns}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _tiles(results: Sequence[Result]) -> str:
    """The headline numbers of a single run."""
    result = results[0]
    tiles = []
    if result.waf is not None:
        tiles.append((f"{result.waf:.3f}", "write amplification"))
    for op in ("read", "write"):
        if op in result.latency:
            tiles.append((duration(result.latency[op]["p99"]), f"99 % of {op}s within"))
    if result.iops is not None:
        tiles.append((number(result.iops), "requests a second"))
    if "wear" in result.record:
        tiles.append((f"{result.record['wear']['mean']:.2f}", "erases of the mean block"))
    memory = sum(v for k, v in result.record.get("memory_bytes", {}).items() if k.startswith("map_"))
    if memory:
        tiles.append((size(memory), "memory of the map"))
    cells = "".join(f"<div><dd>{_e(value)}</dd><dt>{_e(name)}</dt></div>" for value, name in tiles)
    return f"<dl class='tiles'>{cells}</dl>"


def _summary(results: Sequence[Result]) -> str:
    rows = []
    for title, group in GROUPS:
        valued = [(row, [row.value(result.record) for result in results]) for row in group]
        filled = [(row, values) for row, values in valued if any(value is not None for value in values)]
        if not filled:
            continue
        rows.append(f"<tr class='group'><th scope='colgroup' colspan='{len(results) + 1}'>{_e(title)}</th></tr>")
        for row, values in filled:
            winners = best(row, values)
            texts = ["–" if value is None else _e(row.text(value)) for value in values]
            cells = "".join(
                f"<td class='best'>{text} <span aria-label='best'>★</span></td>" if i in winners else f"<td>{text}</td>"
                for i, text in enumerate(texts)
            )
            rows.append(f"<tr><th scope='row'>{_e(row.name)}</th>{cells}</tr>")
    legend = "<p class='note'>★ the best of its row, where one direction is better.</p>" if len(results) > 1 else ""
    return _table(["", *data.labels(results)], rows) + legend


def _latencies(results: Sequence[Result]) -> str:
    tables = []
    for op in OPERATIONS:
        timed = [pair for pair in zip(data.labels(results), results, strict=True) if op in pair[1].latency]
        if not timed:
            continue
        columns = ("mean", *(key for key, _ in PERCENTILES))
        lowest = {key: min(duration_key(result, op, key) for _, result in timed) for key in columns}
        rows = []
        for name, result in timed:
            cells = ""
            for key in columns:
                value = duration_key(result, op, key)
                winner = len(timed) > 1 and duration(value) == duration(lowest[key])
                cells += f"<td class='best'>{duration(value)}</td>" if winner else f"<td>{duration(value)}</td>"
            rows.append(f"<tr><th scope='row'>{_e(name)}</th>{cells}</tr>")
        tables.append(
            f"<h3>{op.capitalize()} percentiles</h3>" + _table(["", "mean", *(name for _, name in PERCENTILES)], rows)
        )
    return "".join(tables)


def duration_key(result: Result, op: str, key: str) -> float:
    """A latency of an operation, in nanoseconds."""
    return result.latency[op][key]


def _configurations(results: Sequence[Result]) -> str:
    names = data.labels(results)
    params = [result.record["config"]["params"] for result in results]
    keys = list(dict.fromkeys(key for p in params for key in p))
    differing = [key for key in keys if any(p.get(key) != params[0].get(key) for p in params)]
    rows = []
    heads = [
        ("drive", [r.record["config"]["drive"] for r in results]),
        ("workload", [r.record["trace"]["path"] for r in results]),
        ("mode", [r.record["config"]["mode"] for r in results]),
        ("precondition", [_words(r.record["config"]["precondition"]) for r in results]),
        ("seed", [r.record["seed"] for r in results]),
        ("configuration", [r.record["config_hash"][:12] for r in results]),
    ]
    heads += [(key, [p.get(key, "–") for p in params]) for key in differing]
    for key, values in heads:
        cells = "".join(f"<td class='text'>{_e(value)}</td>" for value in values)
        rows.append(f"<tr><th scope='row'>{_e(key)}</th>{cells}</tr>")
    shared = "".join(f"<li><code>{_e(key)} = {_e(params[0][key])}</code></li>" for key in keys if key not in differing)
    title = "Parameters" if len(results) == 1 else "Parameters that all share"
    count = len(keys) - len(differing)
    return (
        _table(["", *names], rows)
        + f"<details><summary>{title} ({count})</summary><ul class='params'>{shared}</ul></details>"
    )


def _words(precondition: Any) -> str:
    return precondition if isinstance(precondition, str) else ", ".join(f"{k}: {v}" for k, v in precondition.items())


def _approximations(results: Sequence[Result]) -> str:
    """Each once, with the runs that it concerns where those are not all."""
    names = data.labels(results)
    concerned: dict[str, list[str]] = {}
    for name, result in zip(names, results, strict=True):
        for note in result.record["approximations"]:
            concerned.setdefault(note, []).append(name)
    items = ""
    for note, of in concerned.items():
        which = "" if len(of) == len(names) else f" <em>({_e(', '.join(of))})</em>"
        items += f"<li>{_e(note)}{which}</li>"
    return f"<h3>What these runs leave out or simplify</h3><ul>{items}</ul>"


def _explorer(runs: Sequence[dict[str, Any]]) -> str:
    if not runs:
        return ""
    choices = "".join(f"<option value='{i}'>{_e(run['run'])}</option>" for i, run in enumerate(runs))
    return f"""<section id='explorer' aria-labelledby='explorer-name'><h2 id='explorer-name'>Block explorer</h2>
<p>Every block of the drive over simulated time, row by row in the order of block numbers; blocks that share their dies
stand together. Move through time with the slider, through blocks with the pointer or the arrow keys.</p>
<div class='controls'><label>Run <select id='x-run'>{choices}</select></label>
<fieldset><legend>Colour</legend>
<label><input type='radio' name='x-by' value='valid' checked> valid share</label>
<label><input type='radio' name='x-by' value='erases'> erases</label>
<label><input type='radio' name='x-by' value='role'> role</label></fieldset>
<button type='button' id='x-play' aria-pressed='false'>Play</button></div>
<label class='time'>Time <input type='range' id='x-time' min='0' value='0' step='1'> <output id='x-at'></output></label>
<canvas id='x-blocks' tabindex='0' role='img' aria-label='Blocks as a grid; arrow keys move through it'></canvas>
<div id='x-legend' class='legend'></div>
<p id='x-cell' aria-live='polite'></p><p id='x-sum'></p>
<p id='x-failed' hidden>This browser cannot unpack the data of the explorer (it lacks DecompressionStream).</p>
</section>"""


def _glossary() -> str:
    terms = "".join(f"<dt>{_e(term)}</dt><dd>{_e(meaning)}</dd>" for term, meaning in GLOSSARY)
    return (
        "<section id='glossary' aria-labelledby='glossary-name'><h2 id='glossary-name'>Terms</h2>"
        f"<dl class='terms'>{terms}</dl></section>"
    )
