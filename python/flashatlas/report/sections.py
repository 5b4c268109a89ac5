"""The parts of a report that are text and tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flashatlas.drawing.tables import JOBS, job_rows, ranked_rows, unlike
from flashatlas.report.html import facts, section, table, table_rows, text
from flashatlas.report.palette import Runs
from flashatlas.results import steadiness
from flashatlas.results.notes import by_note
from flashatlas.results.rows import GROUPS
from flashatlas.results.units import duration, number, percent, size, speed

ARROWS = {"low": ("↓", "lower is better"), "high": ("↑", "higher is better")}


def verdict(runs: Runs) -> str:
    """Return the oracle's verdict, as a sentence that stands out."""
    oracles = [result.record.get("oracle", {}) for result in runs.results]
    checked, swept, wrong = (
        sum(o.get(key, 0) for o in oracles)
        for key in ("units_checked", "units_swept", "violations")
    )
    examples = [
        f"{name}: {example}"
        for name, o in zip(runs.names, oracles, strict=True)
        for example in o.get("examples", [])
    ]
    return verdict_of(checked, swept, wrong, examples, single=runs.single)


def verdict_of(
    checked: int, swept: int, wrong: int, examples: Sequence[str], *, single: bool
) -> str:
    """Return the verdict from counts of units: compared when read, compared at the end, wrong."""
    compared = (
        f"{checked:,} mapping units were compared when they were read, {swept:,} more at the end "
        "of the run"
    )
    compared += "." if single else "s."
    if not wrong:
        return f'<p class="verdict good"><b>All data was right.</b> {compared}</p>'
    items = "".join(f"<li>{text(example)}</li>" for example in examples)
    return (
        f'<div class="verdict bad" role="alert"><p><b>{wrong:,} units held wrong data:</b> a '
        f"bug of FlashAtlas, and "
        f"nothing else on this page can be trusted. "
        f"{compared}</p><ul>{items}</ul></div>"
    )


def steady(runs: Runs) -> str:
    """Return a warning about unsteady runs with their reasons; empty if all runs were steady."""
    found = steadiness.unsteady(runs.results)
    unlike = steadiness.compares_unlike(runs.results)
    if not found and not unlike:
        return ""
    names = dict(zip(map(id, runs.results), runs.names, strict=True))
    lines = [
        ("" if runs.single else f"{names[id(result)]}: ") + "; ".join(reasons)
        for result, reasons in found
    ]
    lines += [steadiness.UNLIKE] if unlike else []
    items = "".join(f"<li>{text(line)}</li>" for line in lines)
    moves = text(steadiness.MOVES.format("Its" if runs.single else "Their"))
    advice = text(steadiness.advice([result for result, _ in found]))
    head = "The run was" if runs.single else f"{len(found)} of {len(runs)} runs were"
    return (
        f'<div class="verdict warn" role="note"><p><b>{head} not steady:</b> '
        f"{moves}. {advice}</p><details><summary>Reasons</summary><ul>{items}</ul></details></div>"
    )


def command(line: str) -> str:
    """Return the command that runs everything again, with a button that copies it."""
    return (
        '<div class="command"><div class="scroll" role="group" tabindex="0" '
        'aria-label="Command that runs everything again">'
        f'<pre><code id="command">{text(line)}</code></pre></div>'
        '<button type="button" id="copy">Copy</button><span class="said" id="copied" '
        'role="status"></span></div>'
    )


def introduction(runs: Runs, line: str) -> str:
    """Return the facts about the runs, the command that repeats them, and the verdict."""
    return (
        '<section id="run" aria-labelledby="run-title"><h2 id="run-title">What was run</h2>'
        f"{facts(_facts(runs))}{command(line)}{verdict(runs)}{steady(runs)}{tiles(runs)}</section>"
    )


def _facts(runs: Runs) -> list[tuple[str, str]]:
    """Return facts about the runs; a fact shows at most four values and the number of others."""
    wanted: list[tuple[str, Callable[[dict[str, Any]], str]]] = [
        ("Workload", _workload),
        ("Requests", lambda r: number(r["trace"].get("requests", 0))),
        ("Drive", lambda r: str(r["config"].get("drive", ""))),
        ("Mode", _mode),
        ("Preconditioning", lambda r: _precondition(r["config"].get("precondition", "none"))),
        ("Fit", lambda r: str(r["config"].get("fit", ""))),
        ("Warm-up", lambda r: f"{r['config'].get('warmup', 0):,} requests"),
        ("Simulated", lambda r: duration(r["simulated_ns"]) if "simulated_ns" in r else "untimed"),
        ("Seed", lambda r: str(r.get("seed", ""))),
        ("FlashAtlas", lambda r: str(r.get("version", ""))),
        ("Digest of the trace", lambda r: str(r["trace"].get("digest", ""))),
    ]
    pairs = [] if runs.single else [("Runs", str(len(runs)))]
    for name, find in wanted:
        values = list(dict.fromkeys(find(result.record) for result in runs.results))
        if any(values):
            shown = ", ".join(text(value) for value in values[:4])
            pairs.append(
                (name, shown + (f" and {len(values) - 4} more" if len(values) > 4 else ""))
            )
    if runs.single:
        pairs.append(
            (
                "Configuration",
                f"<code>{text(runs.results[0].record.get('config_hash', '')[:16])}</code>",
            )
        )
    return pairs


def _workload(record: dict[str, Any]) -> str:
    trace = record["trace"]
    return f"{trace['path']}" + (
        "" if trace.get("format") == "generator" else f" ({trace.get('format')})"
    )


def _mode(record: dict[str, Any]) -> str:
    config = record["config"]
    depth = f", {config['depth']} in flight" if config.get("depth") else ""
    speed = f", {config['speed']:g} times as fast" if config.get("speed", 1) != 1 else ""
    return f"{config.get('mode', '')}{depth}{speed}"


def _precondition(value: Any) -> str:
    return (
        value
        if isinstance(value, str)
        else ", ".join(f"{kind} {path}" for kind, path in value.items())
    )


def tiles(runs: Runs) -> str:
    """Return the headline numbers: a single run's own, or the best of each kind."""
    made = _own(runs) if runs.single else _bests(runs)
    cells = "".join(
        f'<li><span class="name">{text(name)}</span><b>{text(value)}</b><span '
        f'class="more">{text(more)}</span></li>'
        for name, value, more in made
    )
    columns = len(made) if len(made) < 6 else -(-len(made) // 2)
    style = f"--columns:{columns}"
    return (
        f'<ul class="tiles" style="{style}" aria-label="Headline numbers">{cells}</ul>'
        if made
        else ""
    )


def _own(runs: Runs) -> list[tuple[str, str, str]]:
    record = runs.results[0].record
    made: list[tuple[str, str, str]] = []
    if record.get("waf") is not None:
        collected = sum(
            record.get("waf_parts", {}).get(cause, 0) for cause in ("gc", "idle", "wear", "merge")
        )
        made.append(
            ("Write amplification", f"{record['waf']:.3f}", f"of which {collected:.3f} moved data")
        )
    if "iops" in record:
        made.append(
            (
                "Requests a second",
                number(record["iops"]),
                f"in {duration(record.get('simulated_ns', 0))}",
            )
        )
    if "bandwidth_bytes_per_s" in record:
        made.append(("Bandwidth", speed(record["bandwidth_bytes_per_s"]), "reads and writes"))
    for op in ("read", "write"):
        latency = record.get("latency_ns", {}).get(op)
        if latency and "p99" in latency:
            made.append(
                (
                    f"{op.capitalize()} p99",
                    duration(latency["p99"]),
                    f"mean {duration(latency['mean'])}",
                )
            )
    dies = record.get("utilisation", {}).get("dies", {})
    if "mean" in dies:
        made.append(("Dies busy", percent(dies["mean"]), f"of {dies.get('count', 0)} dies"))
    erases = sum(record.get("nand", {}).get("erases", {}).values())
    if "wear" in record:
        made.append(
            (
                "Erases",
                number(erases),
                f"most of one block: {record['wear'].get('max', 0):,}, over its life",
            )
        )
    tables = record.get("memory_bytes", {}).get("tables", {})
    if tables:
        made.append(("Table memory", size(sum(tables.values())), f"{len(tables)} tables"))
    return made


BESTS = {
    "write amplification": "Least write amplification",
    "requests a second": "Most requests a second",
    "read p99": "Least read p99",
    "write p99": "Least write p99",
    "wear: most erases": "Least wear of one block",
    "map memory": "Least map memory",
}


def _bests(runs: Runs) -> list[tuple[str, str, str]]:
    made = []
    for row, values, winners in ranked_rows(runs.results):
        first = sorted(winners)
        if row.name in BESTS and first:
            who = runs.names[first[0]] + (f" and {len(first) - 1} more" if len(first) > 1 else "")
            value = values[first[0]]
            made.append((BESTS[row.name], row.text(value) if value is not None else "", who))
    return made


def summary(runs: Runs) -> str:
    """Return all numbers, with a column for each run and the best of each row marked."""
    groups: dict[str, list[str]] = {group: [] for group in [name for name, _ in GROUPS]}
    for row, values, first in ranked_rows(runs.results):
        cells = "".join(
            "<td>–</td>"
            if value is None
            else f'<td class="best">{text(row.text(value))} <span aria-label="best">★</span></td>'
            if i in first
            else f"<td>{text(row.text(value))}</td>"
            for i, value in enumerate(values)
        )
        arrow, meaning = ARROWS.get(row.better, ("", ""))
        sign = (
            f' <span class="arrow" role="img" aria-label="{meaning}" '
            f'title="{meaning}">{arrow}</span>'
            if arrow
            else ""
        )
        inner = ' class="inner"' if row.name.startswith(" ") else ""
        groups[row.group].append(
            f'<tr><th scope="row"{inner}>{text(row.name.strip())}{sign}</th>{cells}</tr>'
        )
    head = ["Measure", *(_column(runs, i) for i in range(len(runs)))]
    title = "All numbers" if runs.single else "Side by side"
    stars = (
        ""
        if runs.single
        else f" No best is marked: the runs differ in {apart}."
        if (apart := unlike(runs.results))
        else " ★ marks the best of a row; rows without an arrow have no better direction."
    )
    lead = f'<p class="lead">↓ lower is better, ↑ higher is better.{stars}</p>'
    bodies = [(group, rows) for group, rows in groups.items() if rows]
    if runs.single:  # one column is narrow: the groups stand beside each other
        parts = (
            table(group, [text(group), "Value"], [("", rows)], "summary") for group, rows in bodies
        )
        made = f'<div class="groups">{"".join(parts)}</div>'
    else:
        made = table(title, head, bodies, "summary")
    heading = f'<h2 id="summary-title">{title}</h2>'
    return f'<section id="summary" aria-labelledby="summary-title">{heading}{lead}{made}</section>'


def jobs(runs: Runs) -> str:
    """Return the jobs of fio job files, run by run; empty if no run had one."""
    parts = [
        table(
            f"Jobs of {name}",
            [text(column) for column in (name, *JOBS[1:])],
            [("", table_rows(job_rows(result.jobs)))],
        )
        for name, result in zip(runs.names, runs.results, strict=True)
        if result.jobs is not None
    ]
    lead = '<p class="lead">Statistics of each job of the job file, as fio reports them.</p>'
    return section("jobs", "Jobs", lead, *parts) if parts else ""


def _column(runs: Runs, i: int) -> str:
    return text(runs.names[i]) if runs.single else f"{runs.swatch(i)}<br>{text(runs.names[i])}"


def approximations(runs: Runs) -> str:
    """Return the runs' simplifications, each once with the runs that have it."""
    concerned = by_note(runs.results)
    items = "".join(f"<li>{text(note)}{_who(runs, who)}</li>" for note, who in concerned.items())
    body = f'<ul class="notes">{items}</ul>' if items else "<p>The runs have none.</p>"
    return (
        '<section id="approximations" aria-labelledby="approximations-title"><h2 '
        'id="approximations-title">'
        f"Approximations</h2>{body}</section>"
    )


def added_parts(runs: Runs) -> str:
    """Return the parts that did not come with the project, each once; empty if there are none."""
    concerned: dict[tuple[str, ...], list[int]] = {}
    for i, result in enumerate(runs.results):
        for part in result.record.get("parts", []):
            named = tuple(part[key] for key in ("kind", "name", "distribution", "version"))
            concerned.setdefault((*named, part["digest"]), []).append(i)
    rows = "".join(
        f'<tr><th scope="row"><code>{text(name)}</code>{_who(runs, who)}</th><td>{text(kind)}</td>'
        f"<td>{text(distribution)} {text(version)}</td><td><code>{text(digest)}</code></td></tr>"
        for (kind, name, distribution, version, digest), who in concerned.items()
    )
    lead = '<p class="lead">They did not come with FlashAtlas; the oracle checked their data.</p>'
    made = table("Added parts", ["Part", "Kind", "From", "Source"], [("", [rows])])
    return section("parts", "Added parts", lead, made) if rows else ""


def _who(runs: Runs, who: Sequence[int]) -> str:
    if runs.single:
        return ""
    names = "all runs" if len(who) == len(runs) else ", ".join(runs.names[i] for i in who)
    return f' <span class="who">({text(names)})</span>'


def parameters(runs: Runs, *, side_by_side: bool = True) -> str:
    """Return the parameters that differ, side by side, and the shared parameters.

    Without ``side_by_side`` the differing parameters are left out: the table of runs has them.
    """
    given = [result.record.get("config", {}).get("params", {}) for result in runs.results]
    keys = sorted(set().union(*given))
    shared = [key for key in keys if all(key in p and p[key] == given[0].get(key) for p in given)]
    differing = [key for key in keys if key not in set(shared)]
    rows = [
        f'<tr><th scope="row"><code>{text(key)}</code></th>'
        + "".join(f"<td>{text(parameter(p[key])) if key in p else '–'}</td>" for p in given)
        + "</tr>"
        for key in differing
    ]
    head = ["Parameter", *(_column(runs, i) for i in range(len(runs)))]
    parts = ""
    if side_by_side and not runs.single:
        parts = (
            table("Parameters that differ", head, [("", rows)], "differing")
            if rows
            else "<p>The runs have the same parameters.</p>"
        )
        parts = f"<h3>That differ</h3>{parts}"
    same = [
        f'<tr><th scope="row"><code>{text(key)}</code></th>'
        f"<td>{text(parameter(given[0][key]))}</td></tr>"
        for key in shared
    ]
    title = "Parameters" if runs.single else "Parameters that all runs share"
    hidden = table(title, ["Parameter", "Value"], [("", same)], "parameters")
    parts += f"<details><summary>{title} ({len(shared)})</summary>{hidden}</details>"
    return (
        '<section id="parameters" aria-labelledby="parameters-title"><h2 '
        'id="parameters-title">Parameters</h2>'
        f"{parts}</section>"
    )


def parameter(value: Any) -> str:
    """Return a parameter's value as a drive file would have it."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,}" if isinstance(value, int) else str(value)
