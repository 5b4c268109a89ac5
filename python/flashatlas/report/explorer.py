"""The block explorer: every block of the drive over time, packed small enough for a page.

A run's table of blocks becomes four planes of bytes: the valid share in percent, the low and the
high byte of the erases, and the role. Each plane has all frames one after the other. A frame is
stored as its difference to the frame before, modulo 256: most cells do not change, and deflate
packs the zeros well. The page's script adds the differences up again.
"""

from __future__ import annotations

import base64
import math
import zlib
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flashatlas.report.chart import Absent, Section
from flashatlas.report.html import text
from flashatlas.report.palette import Runs
from flashatlas.results import arrow
from flashatlas.results.result import Result

FRAMES, CELLS = 64, 4096
"""The largest number of frames and of cells in a table of blocks."""

BUDGET = 1_000_000
"""The largest number of characters that the explorers of all runs take together."""

_NOTHING = arrow.scalar(0.0, pa.float64())
ROLES = ("free", "open", "closed", "leaving", "bad", "data", "log", "map", "slc")
"""Roles in the order of their colours; others follow."""


class Unfit(ValueError):
    """The table does not consist of whole frames."""


@dataclass(frozen=True)
class Packed:
    """The blocks of one run."""

    times: list[int]
    timed: bool
    blocks: list[list[int]]
    """Pairs: a number of blocks in a cell, and the number of consecutive cells with that number."""
    roles: list[str]
    erase_scale: float
    """The factor from the mean erases of a cell to the stored number."""
    every: int
    """One frame in ``every`` was kept."""
    planes: str
    """Base64 of the deflated planes."""

    def payload(self, run: int) -> dict[str, Any]:
        """Return the data that the script needs."""
        return {
            "run": run,
            "times": self.times,
            "timed": self.timed,
            "blocks": self.blocks,
            "roles": self.roles,
            "eraseScale": self.erase_scale,
            "planes": self.planes,
        }


def pack(table: pa.Table, most: int) -> Packed:
    """Pack a table of blocks into at most ``most`` characters.

    Frames are left out if there is no other way.

    Raises:
        Unfit: Frames differ in their cells, there are too many frames, or a column is missing.

    """
    time = "time_ns" if "time_ns" in table.column_names else "request"
    missing = {"frame", "cell", "blocks", "valid", "erases", "role", time} - set(table.column_names)
    if missing:
        raise Unfit(f"without {', '.join(sorted(missing))}")
    frame = table["frame"].combine_chunks()
    cells = pc.sum(pc.equal(frame, frame[0])).as_py() if len(frame) else 0
    frames = len(frame) // cells if cells else 0
    if not 0 < cells <= CELLS or not 0 < frames <= FRAMES or frames * cells != len(frame):
        raise Unfit(f"{len(frame)} rows are not up to {FRAMES} frames of up to {CELLS} cells each")
    for name in ("cell", "blocks"):
        column = table[name].combine_chunks()
        if not column.slice(cells).equals(column.slice(0, len(column) - cells)):
            raise Unfit(f"`{name}` is not the same in every frame")
    packed = _packed(table, time, cells, range(frames), 1)
    while len(packed.planes) > most and packed.every < frames:
        # drop frames by the factor by which the text is too long: one more attempt mostly suffices
        every = max(
            2 * packed.every, 2 ** math.ceil(math.log2(packed.every * len(packed.planes) / most))
        )
        packed = _packed(table, time, cells, range(0, frames, every), every)
    return packed


def _packed(table: pa.Table, time: str, cells: int, frames: range, every: int) -> Packed:
    if every > 1:
        table = pa.concat_tables([table.slice(f * cells, cells) for f in frames])
    column = {name: table[name].combine_chunks() for name in ("valid", "erases", "role", "blocks")}
    erases = pc.fill_null(column["erases"].cast(pa.float64()), _NOTHING)
    top = pc.max(erases).as_py() or 0.0
    scale = min(100.0, 65535 / top) if top else 100.0
    stored = pc.round(pc.multiply(erases, arrow.scalar(scale, pa.float64()))).cast(pa.uint16())
    shares = pc.fill_null(column["valid"].cast(pa.float64()), _NOTHING)
    valid = pc.round(pc.multiply(shares, arrow.scalar(100.0, pa.float64()))).cast(pa.uint8())
    roles, codes = _roles(column["role"])
    low = pc.bit_wise_and(stored, arrow.scalar(255, pa.uint16())).cast(pa.uint8())
    high = pc.shift_right(stored, arrow.scalar(8, pa.uint16())).cast(pa.uint8())
    raw = b"".join(_deltas(plane, cells) for plane in (valid, low, high, codes))
    times = [
        int(value.as_py())
        for value in table[time].take(arrow.column(range(0, table.num_rows, cells), pa.int64()))
    ]
    runs: list[list[int]] = []
    for blocks in column["blocks"].slice(0, cells).to_pylist():
        if runs and runs[-1][0] == blocks:
            runs[-1][1] += 1
        else:
            runs.append([blocks, 1])
    packed = base64.b64encode(zlib.compress(raw, 6)).decode("ascii")
    return Packed(times, time == "time_ns", runs, roles, scale, every, packed)


def _roles(column: pa.Array) -> tuple[list[str], pa.Array]:
    words = column.cast(pa.string())
    found = [word or "unknown" for word in pc.unique(words).to_pylist()]
    roles = [role for role in ROLES if role in found] + sorted(set(found) - set(ROLES))
    codes = pc.index_in(
        pc.fill_null(words, arrow.scalar("unknown", pa.string())), arrow.column(roles, pa.string())
    )
    return roles, codes.cast(pa.uint8())


def _deltas(plane: pa.Array, cells: int) -> bytes:
    """Return the first frame, then the differences between frames, modulo 256."""
    later, earlier = plane.slice(cells), plane.slice(0, len(plane) - cells)
    differences = pc.subtract(later, earlier)  # not `subtract_checked`: differences wrap
    return _bytes(plane.slice(0, cells)) + _bytes(differences)


def _bytes(array: pa.Array) -> bytes:
    data = array.buffers()[1]
    return data.slice(array.offset, len(array)).to_pybytes() if data else b""


def section(runs: Runs) -> tuple[Section, list[dict[str, Any]]]:
    """Return the explorer, and its data for the script."""
    made = Section(
        "blocks",
        "Block explorer",
        "Every block of the drive, in the order of addresses, over the run. Use the slider to "
        "move through time, and the pointer to move over the map; once the map has the focus, use "
        "the arrow keys.",
    )
    able = [(i, result) for i, result in enumerate(runs.results) if _has_blocks(result)]
    packed, reasons = [], []
    for i, result in able:
        try:
            packed.append((i, pack(result.tables["blocks"], BUDGET // len(able))))
        except (Unfit, pa.ArrowException) as error:
            reasons.append(f"{runs.names[i]}: {error}")
    if not packed:
        why = (
            f"its table cannot be read ({'; '.join(reasons)})."
            if reasons
            else "no run has a table of blocks."
        )
        made.parts = [Absent("Block explorer", why)]
        return made, []
    shown = {i for i, _ in packed}
    notes = [
        f"{runs.names[i]} has no table of blocks"
        for i in range(len(runs))
        if i not in shown and not reasons
    ]
    notes += reasons
    for every in sorted({p.every for _, p in packed if p.every > 1}):
        who = [runs.names[i] for i, p in packed if p.every == every]
        named = (
            "" if runs.single else f" of {'all runs' if len(who) == len(runs) else ', '.join(who)}"
        )
        notes.append(f"for lack of room, only one in {every} pictures{named} is shown")
    made.parts = [
        _markup(runs, [i for i, _ in packed]),
        f'<p class="note">{text("; ".join(notes))}</p>' if notes else "",
    ]
    return made, [p.payload(i) for i, p in packed]


def _has_blocks(result: Result) -> bool:
    return "blocks" in result.tables and result.tables["blocks"].num_rows > 0


def _markup(runs: Runs, shown: list[int]) -> str:
    options = "".join(
        f'<option value="{k}">{text(runs.names[i])}</option>' for k, i in enumerate(shown)
    )
    choose = (
        ""
        if runs.single
        else f'<label class="field"><span>Run</span><select id="ex-run">{options}</select></label>'
    )
    return f"""<div class="explorer wide" id="explorer">
<div class="controls">{choose}
<label class="field"><span>Colour by</span><select id="ex-by">
<option value="valid">valid share</option><option value="erases">erases</option>
<option value="role">role</option>
</select></label>
<div class="field grow"><label for="ex-frame">Time</label><div class="slider">
<button type="button" id="ex-play" aria-pressed="false">Play</button>
<input type="range" id="ex-frame" min="0" max="0" value="0" step="1">
<output id="ex-time" for="ex-frame"></output></div></div></div>
<p class="fallback" id="ex-fallback" hidden></p>
<canvas id="ex-map" tabindex="0" role="application" aria-roledescription="block map"
 aria-label="Map of blocks. Arrow keys move from cell to cell." aria-describedby="ex-live"></canvas>
<p class="cell" id="ex-cell" aria-live="polite">
Point at a cell, or focus the map, for its values.</p>
<div class="legend" id="ex-legend"></div>
<p class="live" id="ex-live" aria-live="polite"></p></div>"""
