"""Notes have codes: no code depends on their sentences."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import flashatlas
import pytest
from flashatlas.cli.console import out
from flashatlas.results import steadiness
from flashatlas.results.notes import by_note, declared, note, rank
from flashatlas.results.result import Result, digest_of

ROOT = Path(__file__).parent.parent


def _run(*notes: Any) -> Result:
    record = {"config": {}, "trace": {}, "oracle": {}, "approximations": list(notes)}
    return Result(record)


def test_notes_that_differ_in_their_numbers_are_one() -> None:
    left = [note("units-in-cache", units=units) for units in (175, 60, 189)]
    within = [
        note("duplicates-dropped", records=n, within=time) for n, time in ((2, "1ms"), (6, "5ms"))
    ]
    runs = [_run(note("no-ecc-time"), left[0]), _run(left[1], within[0]), _run(left[2], within[1])]
    tail = "units were still in the write cache at the end: their programs are not counted"
    assert by_note(runs) == {
        "2 records that repeated the previous record within 1ms were dropped": [1],
        "6 records that repeated the previous record within 5ms were dropped": [2],
        "the spare area's transfer, ECC decoding and read retries take no time": [0],
        f"60 to 189 {tail}": [0, 1, 2],
    }


def test_what_matters_most_comes_first_and_old_notes_last() -> None:
    old = {"code": None, "text": "12 of the units read had never been written", "values": {}}
    of_a_part = {"code": "my-store", "text": "no time passes", "values": {}}
    codes = ("no-ecc-time", "times-ignored", "open-loop", "unmapped-reads")
    given = [old, *(note(c, **({"units": 12} if c == "unmapped-reads" else {})) for c in codes)]
    found = list(by_note([_run(*given, of_a_part)]))
    order = [given[4], given[2], given[3], of_a_part, given[1], old]
    assert found == [each["text"] for each in order]


def test_every_note_has_its_code_once_a_text_and_advice() -> None:
    known = json.loads(flashatlas._core.notes())
    assert len(declared()) == len(known) > 60
    for each in known:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", each["code"]) or each["code"] in (
            "untimed",
            "backlog",
        ), each["code"]
        assert each["text"] and each["advice"].endswith("."), each["code"]
    assert rank("unmapped-reads") < rank("open-loop") < rank("units-in-cache") < rank(None)


@pytest.mark.parametrize(("rate", "told"), [("0.006", True), ("0.004", False)])
def test_new_data_with_more_wrong_bits_than_the_share_of_refresh_is_told(
    rate: str, told: bool
) -> None:
    """Of 8192 bits 49.2 or 32.8 are wrong, and 72 can be corrected: 68 % or 46 %."""
    errors = ["errors.model=tlc-72l", "errors.a=0", "errors.block_spread=0", "ftl.refresh=0.5"]
    load = "uniform:requests=100,size=2KiB"
    run = flashatlas.run(drive="tiny", set=[*errors, f"errors.e={rate}"], workload=load)
    notes = run.record["approximations"]
    (found,) = [each for each in notes if each["code"] == "refresh-below-wear"] or [None]
    assert (found is not None) == told
    if found:
        assert found["values"] == pytest.approx({"lasting": 100 * 8192 * 0.006 / 72, "share": 50})
        assert "up to 68 % of the wrong bits" in found["text"]


def test_a_value_that_is_missing_is_named() -> None:
    with pytest.raises(flashatlas.InputError, match="`units` is missing"):
        note("units-in-cache")


RUNS = [
    {"label": "a", "set": {"ftl.victim": "greedy"}},
    {"label": "b", "set": {"ftl.victim": "fifo"}},
]
COMMON = {"drive": "tiny", "workload": "uniform:requests=300,size=2KiB,read=0.3", "depth": 2}


def test_with_codes_for_texts_all_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Digests, ranking, shared preconditions and steadiness depend on no sentence."""
    same = [{"set": {"timing.t_program": f"{t}us"}, "label": str(t)} for t in (200, 400)]

    def found() -> Any:
        results = [
            *flashatlas.compare(RUNS, precondition="fill", **COMMON),
            *flashatlas.compare(same, precondition="steady", **COMMON),
        ]
        notes = [[n["code"] for n in r.record["approximations"]] for r in results]
        return (
            notes,
            [digest_of(r.record, r.tables, r.jobs) for r in results],
            [(r.name, len(why)) for r, why in steadiness.unsteady(results)],
            list(by_note(results).values()),
            list(by_note(results)),
        )

    plain = found()
    monkeypatch.setenv("FLASHATLAS_NOTES", "codes")
    coded = found()
    assert coded[:-1] == plain[:-1]
    assert any("precondition-shared" in codes for codes in plain[0])
    assert plain[2], "some runs are unsteady, so reasons are compared"
    assert set(coded[-1]) <= set(declared()) and not set(plain[-1]) & set(declared())


def test_no_code_looks_for_a_sentence() -> None:
    """Texts of notes stand only in their declaration."""
    texts = [re.split(r"[{(`]", each["text"])[0].strip() for each in declared().values()]
    sentences = [text for text in texts if len(text) > 25]
    assert len(sentences) > 30
    for file in [*ROOT.glob("python/flashatlas/**/*.py"), *ROOT.glob("crates/*/src/**/*.rs")]:
        if file.name == "notes.rs":
            continue
        source = re.sub(r"\\?\n\s*", " ", file.read_text(encoding="utf-8"))
        for sentence in sentences:
            assert sentence not in source, (file, sentence)


def test_a_study_says_what_its_runs_approximate(cli: Any, tmp_path: Path) -> None:
    """A map in DRAM writes nothing to flash: two of four runs have that note, for two seeds each.

    Every run leaves its 20 units, fewer than the cache holds, in the write cache.
    """
    (tmp_path / "s.toml").write_text(
        'name = "s"\n[run]\ndrive = "tlc-small"\nworkload = "uniform:requests=20,size=4KiB"\n'
        '[axes]\n"map.store" = ["dram", "dftl"]\nseed = [1, 2]\n'
    )
    swept = cli("sweep", "s.toml", "-q", "--jobs", "1")
    shown = cli("results", "show", "flashatlas-results:s")
    for found in (swept, shown):
        assert found.returncode == 0, found.stderr
        said = found.stdout.partition("Approximations, the most important first")[2].splitlines()
        codes = {line.split(": ")[1]: line.split(": ")[0].strip() for line in said[1:] if line}
        assert codes["no-map-on-flash"] == "2 of 4 runs"
        assert codes["no-ecc-time"] == codes["units-in-cache"] == "all runs"
        assert "20 units were still in the write cache" in found.stdout
        ranks = [rank(code) for code in codes]
        assert ranks == sorted(ranks)
    # the message names a broken record
    (record,) = list(tmp_path.glob("flashatlas-results/runs/*/*/run.json"))[:1]
    content = json.loads(record.read_text())
    record.write_text(json.dumps({**content, "approximations": 7}))
    found = cli("results", "show", "flashatlas-results:s")
    assert found.returncode == 2 and "approximations" in found.stderr


def test_each_note_of_a_run_has_a_line(cli: Any) -> None:
    """A note is printed whole, because it may list options of a job file."""
    record = json.loads(cli("run", "-w", "uniform:requests=20", "--json", "-", "-q").stdout)
    lines = cli("run", "-w", "uniform:requests=20", "-q").stdout.splitlines()
    for each in record["approximations"]:
        assert sum(line.strip().endswith(each["text"]) for line in lines) == 1


def test_nobody_is_advised_what_was_done_already() -> None:
    """A drive that began in its steady state needs more requests, not another beginning."""

    def advice(precondition: Any) -> str:
        reasons = [note("free-blocks-change", programmed=9, erased=1, share=0.8, most=0.1)]
        record = {"config": {"precondition": precondition}, "steadiness": {"reasons": reasons}}
        return steadiness.advice([Result(record)])

    assert "--precondition steady" in advice("none") and "--precondition steady" in advice("fill")
    assert "--precondition" not in advice("steady") and "more requests" in advice("steady")
    for code in ("iops-unsteady", "waf-unsteady", "backlog"):
        assert "--precondition steady" not in declared()[code]["advice"], code


def test_headings_of_a_study_are_whole_on_a_narrow_terminal(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(out, "_width", 40)
    (tmp_path / "s.toml").write_text(
        'name = "s"\n[run]\ndrive = "tlc-small"\nworkload = "uniform:requests=20,size=4KiB"\n'
        '[axes]\n"map.store" = ["dftl"]\n"map.cache_bytes" = ["64KiB", "128KiB"]\n'
    )
    cli("sweep", "s.toml", "-q", "--jobs", "1")
    asked = ("waf", "memory_bytes.map", "latency_ns.write.p99")
    shown = cli("results", "show", "flashatlas-results:s", *(f"--of={one}" for one in asked))
    (heads,) = [line for line in shown.stdout.splitlines() if "latency_ns.write.p99" in line]
    assert heads.split() == ["map.store", "map.cache_bytes", "runs", *asked]
