"""Mistakes of newcomers: the messages name the option and what was expected."""

from __future__ import annotations

import re
import shutil

import flashatlas
import flashatlas.fetch
import pyarrow as pa
import pytest
from flashatlas import InputError, Result
from flashatlas.results.frame import table_of
from flashatlas.results.runs import load_all, save_all

W = ("-w", "uniform:requests=200,size=2KiB", "-q")
FILES = {
    "bare.toml": "[drive]\nbase = tiny\n",
    "empty.toml": "",
    "planes.toml": '[drive]\nbase = "tiny"\nframe_planes = 3\n',
    "twice.toml": '[drive]\nbase = "tiny"\n[timing]\nt_read = { us = 50, ms = 1 }\n',
    "latin.fio": b"[a]\nsize=64k\n# \xe9\n",
    "ok.fio": "[a]\nsize=64k\nrw=write\n",
    "msr.csv": "128166372003061629,hm,0,Write,8192,4096,100\n"
    "128166372003061630,hm,0,Write,-8192,4096,100\n",
    "latin.toml": b"# \xff\n",
}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return tmp_path


SAID = {
    ("compare", *W, "--vary", "ftl.victim=greedy", "--vary", "ftl.victim=fifo"): (
        "--vary: ftl.victim is given twice; write one --vary ftl.victim=A,B,C"
    ),
    ("compare", *W, "--vary", "ftl.victim=greedy,fifo", "--set", "ftl.victim=random"): (
        "--vary: ftl.victim is given with --set as well; give one of the two"
    ),
    ("compare", *W, "--vary", "workload=uniform;zipf"): (
        "--workload: the option is also varied with --vary; give one of the two"
    ),
    ("compare", *W, "--vary", "drive=tiny,tlc-small"): (
        "--vary drive: drives are compared with --drive A --drive B"
    ),
    ("compare", *W, "--vary", "seed=1..5"): (
        "--vary seed=1..5: --seed: `1..5` is not a whole number; give a number such as "
        "20000, 100k or 1e6"
    ),
    ("compare", *W, "--vary", "ftl.victim=greedy,lru"): "(in `lru`)",
    ("compare", *W, "--schemes", "fast,page", "--set", "ftl.victm=fifo"): (
        "--set: ftl.victm: no such key; did you mean `ftl.victim`?"
    ),
    ("run", *W, "--set", "timing.channel_rate=200"): (
        "--set: timing.channel_rate: `200` has no unit, and would mean bytes a second (allowed: 0, "
        "or bytes a second such as 200MB)"
    ),
    ("run", *W, "-d", "twice.toml"): (
        "twice.toml:4:1: timing.t_read: `us` and `ms` are both given: give one of the two"
    ),
    ("run", *W, "-d", "bare.toml"): 'bare.toml:2:8: syntax: text needs quotes: base = "tiny"',
    ("run", *W, "-d", "empty.toml"): (
        "empty.toml: drive.channels: is not given: channels; give it, or begin with a preset (base "
        '= "tiny" in [drive])'
    ),
    ("run", *W, "-d", "planes.toml"): "planes.toml:3:1: drive.frame_planes: 3 does not divide",
    ("run", *W, "-d", "latin.toml"): (
        "latin.toml: the file is not UTF-8 at byte 2; drive files must be UTF-8 text"
    ),
    ("run", *W, "-d", "tiny.toml"): ("tiny.toml: No such file or directory; `tiny` is a preset"),
    ("run", "--job", "latin.fio"): "latin.fio: not UTF-8 at byte 15; job files are UTF-8 text",
    ("run", *W, "--job", "ok.fio"): (
        "--workload: a job file is also given: give only one of `--trace`, `--workload` and `--job`"
    ),
    ("run", "--job", "ok.fio", "--json", "-", "--fio-json", "-"): (
        "--fio-json and --json: only one of them can go to standard output"
    ),
    ("run", *W, "--extent", "1MiB"): "--extent: this option has an effect only with `--fit "
    "compact`, which packs extents",
    ("run", *W, "--speed", "nan", "--mode", "open"): "--speed: nan is not a number above 0",
    ("run", *W, "--set", "ftl.scheme=dftl"): (
        "--set: ftl.scheme: scheme `dftl` is not known; `dftl` is a map store (map.store=dftl)"
    ),
    ("explain", "ftl.victim=lru"): "set: ftl.victim: victim policy `lru` is not known",
    ("lookup", "--files", "100", "--shift", "5"): (
        "--shift: this option changes how a trace is read, but no trace is given"
    ),
    ("lookup", "--files", "100", "--banks", "2", "--set", "lookup.banks=4"): (
        "--set lookup.banks: the option for lookup.banks is given as well; give one of the two"
    ),
    ("trace", "info", "msr.csv"): (
        "the content begins like the format msr (`--format msr`), whose reader stops at 2:31"
    ),
    ("trace", "convert", "msr.csv", "msr.csv", "--to-format", "csv"): (
        "msr.csv: this is the trace that is read; write to another file"
    ),
    ("trace", "convert", "demo.fatr", "out.xyz"): (
        "out.xyz: no format is named: end the name with one of"
    ),
    ("trace", "convert", "demo.fatr", "out.csv", "--to-format", "fat"): (
        "--to-format: trace format `fat` is not known (allowed: atlas, blkreplay, csv, iolog, "
        "mqsim, msr, spc)"
    ),
    ("trace", "slice", "demo.fatr", "out.fatr", "--from", "5min", "--to", "1min"): (
        "--from: 5min is not before `--to`, which is 1min"
    ),
    ("trace", "slice", "demo.fatr", "out.fatr", "--skip", "99999999"): (
        "the slice holds no request: 20054 requests have times within the slice, but the first "
        "99999999 are left out"
    ),
    ("trace", "reuse", "demo.fatr", "--entry", "8KiB"): (
        "--entry: a map page of 4KiB (--map-page) is not a whole number of entries of 8KiB"
    ),
    ("trace", "reuse", "demo.fatr", "--page", "3000"): (
        "--page: 3000 bytes are not a whole number of sectors; give a multiple of 512"
    ),
    ("trace", "reuse", "demo.fatr", "--page", "4foo"): "--page: `foo` is not a unit of size",
    ("trace", "fetch", "dem"): "public trace `dem` is not known; did you mean `demo`?",
    ("formats", "msrr"): "trace format `msrr` is not known; did you mean `msr`?",
    ("crash", "--scheme", "fast", "--store", "dftl"): "only page mapping has stores",
    (
        "probe",
        "superpage",
        "-d",
        "tiny",
    ): "tiny: the drive exports 1310720 bytes, but probing writes to 67108864",
    ("table", "."): ".: the folder holds no results (run.json or compare.json); give a folder that",
}


@pytest.mark.parametrize(("arguments", "said"), SAID.items(), ids=[" ".join(a[:6]) for a in SAID])
def test_what_is_said(cli, files, arguments, said):
    if "demo.fatr" in arguments:
        flashatlas.fetch.fetch("demo", files)
    before = sorted(p.name for p in files.rglob("*"))
    done = cli(*arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    text = " ".join(done.stderr.split())
    assert said in text, text
    assert text.startswith("error: ") and "Traceback" not in text
    assert sorted(p.name for p in files.rglob("*")) == before, "nothing is left behind"


def test_the_layers_none_and_options_by_their_names(cli):
    assert cli("run", *W, "--layers", "none").returncode == 0
    assert "option of a run" in cli("explain", "depth").stdout


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study") / "st"
    results = flashatlas.compare(
        [{"label": v, "set": {"ftl.victim": v}} for v in ("greedy", "fifo")],
        workload="uniform:requests=200,size=2KiB",
    )
    save_all(results, folder)
    return folder


def test_a_folder_holds_a_run_or_a_comparison(cli, study, tmp_path):
    folder = tmp_path / "X"
    shutil.copytree(study, folder)
    done = cli("run", *W, "--out", str(folder), "--force")
    assert "2 runs of an earlier comparison were removed" in done.stderr
    assert not list(folder.glob("0*")) and not (folder / "compare.json").exists()
    done = cli("compare", *W, "--vary", "seed=1,2", "--out", str(folder), "--force")
    assert "a run of an earlier comparison was removed" in done.stderr
    assert not (folder / "run.json").exists()
    table = cli("table", str(folder)).stdout
    assert len(table.splitlines()) == 3
    shutil.copy(folder / "01" / "run.json", folder)
    done = cli("report", str(folder))
    assert "holds both a run (run.json) and a comparison (compare.json)" in " ".join(
        done.stderr.split()
    )


def test_a_comparison_is_whole(cli, study, tmp_path):
    folder = tmp_path / "X"
    shutil.copytree(study, folder)
    shutil.copytree(study / "01", folder / "zz")
    assert len(load_all([folder])) == 2, "other runs are not loaded"
    shutil.rmtree(folder / "02")
    with pytest.raises(InputError, match=r"02: run `fifo` of .*compare\.json is missing"):
        load_all([folder])
    (folder / "compare.json").write_text("{}")
    done = cli("table", str(folder))
    assert (
        done.returncode == 2
        and "compare.json: damaged: `runs` must be a list of runs" in done.stderr
    )
    with pytest.raises(InputError, match="the folder holds several runs: load one of"):
        Result.load(study)


def test_records_that_lack_something_are_named(cli, study, tmp_path):
    record = (study / "01" / "run.json").read_text()
    (tmp_path / "run.json").write_text(re.sub(r'"ftl.scheme": "page",', "", record))
    done = cli("cite", str(tmp_path))
    assert done.returncode == 2 and "config.params.ftl.scheme is missing" in done.stderr
    (tmp_path / "run.json").write_text(record.replace('"greedy"', '"lru"'))
    done = cli("rerun", str(tmp_path))
    assert done.returncode == 2
    assert "config.params of the record: ftl.victim: victim policy `lru`" in done.stderr


def test_significance_of_what_cannot_differ(study):
    results = load_all([study])
    for arguments, said in (
        (
            ("waf", "ftl.victim", "ftl.victim"),
            "each: `ftl.victim` is already the factor of `between`",
        ),
        (("ftl.victim", "waf"), "between: `waf` is a result of runs, not a factor"),
        (("waf", "seed"), "between: the runs do not differ in `seed`"),
    ):
        with pytest.raises(InputError, match=re.escape(said)):
            flashatlas.significance(results, *arguments)
    with pytest.raises(InputError, match="one run: a difference needs at least two"):
        flashatlas.significance(results[:1], "waf", "ftl.victim")


def test_significance_names_what_keeps_runs_apart():
    def refused(*runs):
        rows = [({"map.store": store, **more}, {"waf": 1.0 + at})
                for at, (store, more) in enumerate(runs)]  # fmt: skip
        with pytest.raises(InputError) as caught:
            flashatlas.significance(flashatlas.Frame(table_of(rows)), "waf", "map.store")
        return str(caught.value)

    said = refused(("dram", {"map.entry_bytes": 4}), ("dftl", {"map.entry_bytes": 8}))
    assert said.endswith(": map.entry_bytes is 4 B with dram and 8 B with dftl")
    # seeds 1 and 2 and queues 1 and 2 are on both sides, in other pairs
    crossed = [("dram", 1, 1), ("dram", 2, 2), ("dftl", 1, 2), ("dftl", 2, 1)]
    said = refused(*((store, {"seed": a, "host.queue_depth": b}) for store, a, b in crossed))
    assert "each of " in said and "seed" in said and "never all together" in said


def test_what_is_varied_is_blamed_and_a_study_is_named(cli):
    caches = ("--vary", "map.cache_bytes=64KiB,128KiB")
    said = cli("compare", "-d", "tlc-small", "--vary", "map.store=dram,dftl", *caches).stderr
    assert "--vary map.cache_bytes: the key belongs to map.store = demand, dftl, cdftl" in said
    assert "in `dram 64KiB` map.store is dram" in said and "flashatlas sweep" in said
    assert "--set" not in said
    # a study takes the condition that the message offers
    condition = re.search(r"when = '(map.store in [^']*)'", said)[1]
    axes = {
        "map.store": ["dram", "dftl"],
        "map.cache_bytes": {"values": ["64KiB", "128KiB"], "when": condition},
    }
    study = flashatlas.Study(axes, drive="tlc-small", workload="uniform:requests=10")
    # dram, and dftl with two caches
    assert len(study.plan().runs) == 3
    said = cli("compare", "-d", "tlc-small", *caches).stderr
    assert "--vary: map.cache_bytes: belongs to" in said and "--set" not in said
    said = cli("compare", "--case", "a:", *caches).stderr
    assert "--case cannot be mixed with" in said and "flashatlas sweep" in said
    # layers are a list: a key of one of them applies
    found = cli("compare", "-d", "superpage-sata", "-w", "uniform:requests=5", "--set",
                "layers=hard", "--vary", "hard.trim=true,false", "-q")  # fmt: skip
    assert found.returncode == 0, found.stderr


PYTHON = {
    "a folder for results": (
        lambda study: flashatlas.frame(str(study)),
        r"is of type str, but must be a Result; Result\.load\('.*'\) reads a folder",
    ),
    "no results": (lambda _: flashatlas.frame([]), "there are no results: give at least one"),
    "a seed below 0": (
        lambda _: flashatlas.run(workload="uniform", seed=-1),
        "seed: -1 is out of range: give 0 to 18446744073709551615",
    ),
    "a seed of None": (
        lambda _: flashatlas.run(workload="uniform", seed=None),
        "seed: the value is None; leave the option out to use its default 1",
    ),
    "a text for a number": (
        lambda _: flashatlas.run(workload="uniform", shift="3"),
        "shift: '3' is of type str, but must be a whole number",
    ),
    "an empty path": (lambda _: flashatlas.run(trace=""), "trace: an empty path"),
    "bytes for a path": (lambda _: flashatlas.run(trace=b"x"), "trace: b'x' is of type bytes"),
    "a text for cases": (
        lambda _: flashatlas.compare("fifo"),
        "cases: 'fifo' is not a list of cases such as",
    ),
    "texts for cases": (lambda _: flashatlas.compare(["x"]), "cases: 'x' is not a mapping"),
    "no cases": (lambda _: flashatlas.compare([]), "cases: the list is empty; give at least one"),
    "labels that are the same": (
        lambda _: flashatlas.compare([{"label": "a"}, {"label": "a"}], workload="uniform"),
        "cases: `a` is the label of two",
    ),
    "jobs": (lambda _: flashatlas.compare([{}], jobs="2"), "jobs: '2' is not a whole number"),
    "a height": (
        lambda study: flashatlas.figure(
            load_all([study]),
            "f.svg",
            x="ftl.victim",
            y="waf",
            height=10**6,
        ),
        "height: 1000000 points are out of range; give 20 to 2000",
    ),
}


@pytest.mark.parametrize("what", PYTHON)
def test_what_python_is_told(what, study):
    call, said = PYTHON[what]
    with pytest.raises(InputError, match=said):
        call(study)


def test_layers_and_near_names_in_python():
    with pytest.raises(TypeError, match="`layers` is a parameter of the drive: set="):
        flashatlas.run("tiny", workload="uniform", layers="hard")
    with pytest.raises(TypeError, match="did you mean `label`"):
        flashatlas.compare([{"lable": "a"}], workload="uniform")


def test_a_figure_says_what_it_averages_over(cli, study, tmp_path):
    done = cli("figure", str(study), "--x", "seed", "-o", str(tmp_path / "f.svg"))
    assert "(averaged over ftl.victim)" in " ".join(done.stdout.split())


def test_columns_of_a_table_need_no_header():
    table = pa.table({"op": ["W"], "at": [0], "size": [4096]})
    spec = "columns:op=op,offset=at:bytes,size=size:bytes"
    assert flashatlas.Trace(table, format=spec).info()["writes"] == 1


def test_files_of_others_are_left_alone(cli, study, tmp_path):
    mine = tmp_path / "X"
    (mine / "2024").mkdir(parents=True)
    foreign = [mine / "2024" / "latency.parquet", mine / "jobs.json"]
    for file in foreign:
        file.write_text("mine")
    shutil.copytree(study / "01", mine / "7")
    assert cli("compare", *W, "--vary", "seed=1,2", "--out", str(mine)).returncode == 0
    assert cli("run", *W, "--out", str(mine), "--force").returncode == 0
    assert (mine / "7" / "run.json").exists(), "this run belongs to no comparison"
    assert foreign[0].read_text() == "mine" and not (mine / "02").exists()
