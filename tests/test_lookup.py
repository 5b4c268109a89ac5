"""The lookup engine alone, its experiment, and the engine in a drive."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from math import prod
from statistics import fmean

import flashatlas
import pyarrow.parquet as pq
import pytest
from flashatlas import InputError, lookup, reproduce
from flashatlas.cli import main
from flashatlas.reproduce.lpmt import page as lpmt_page
from flashatlas.reproduce.lpmt import tables as lpmt_tables
from flashatlas.reproduce.lpmt.plan import PAPER
from flashatlas.reproduce.workloads import load


def clocks(*settings: str, lookups: int = 20_000) -> float:
    return lookup(sets={"lookups": lookups}, set=settings)["clocks_per_lookup"]


def test_a_set_of_eight_takes_what_the_recurrence_says():
    # 7 x CCD + RTP + RP + RCD in one bank; 8 x CCD if six other reads hide the rest
    assert clocks("lookup.policy=single", "dram.constraints=none") == pytest.approx(
        28 + 23, abs=0.05
    )
    assert clocks("lookup.policy=dynamic", "dram.constraints=none") == pytest.approx(32, abs=0.05)
    # with refresh, banks rest for 174 of 5,200 clocks, and their rows are opened again
    rest = clocks("lookup.policy=dynamic") / clocks(
        "lookup.policy=dynamic", "dram.constraints=ras,rrd,faw,ccd_l"
    )
    assert 1 / (1 - 174 / 5200) < rest < 1.06


def test_waiting_lookups_have_latencies():
    # each lookup begins after the last read of the one before
    found = lookup(
        sets={"lookups": 5000},
        set=["lookup.policy=single", "dram.constraints=none", "lookup.look_ahead=1"],
    )
    # PRE waits for RTP after the last read: 5 + 9 + 9, 7 x 4 to the last read, 9 + 4 to the end of
    # its data
    assert found["latency_clocks"]["p50"] == 23 + 28 + 13
    assert "latency_clocks" not in lookup(sets={"lookups": 10})


def test_files_are_found_again_and_chains_are_counted():
    found = lookup(
        files={"files": 500, "lookups": 300},
        set=[
            "lookup.la_bits=10",
            "lookup.sets=64",
            "lookup.hash=mixer",
            "lookup.block_tables_count=16",
        ],
    )
    assert (found["lookups"], found["hits"], found["entries"]) == (800, 300, 500)
    assert sum(found["chains"]) == 64 and found["secondary_sets_used"] == sum(
        i * n for i, n in enumerate(found["chains"])
    )
    assert found["chains"][0] < 64 and 0.8 < found["primary_share"] < 1
    assert sum(found["classes"].values()) == pytest.approx(1)
    assert sum(t["lookups"] for t in found["tenths"]) == 800
    assert found == lookup(
        files={"files": 500, "lookups": 300},
        set=[
            "lookup.la_bits=10",
            "lookup.sets=64",
            "lookup.hash=mixer",
            "lookup.block_tables_count=16",
        ],
    )


def test_a_trace_is_looked_up_by_its_addresses(trace):
    found = lookup(trace, unit_sectors=8)
    assert (found["lookups"], found["hits"], found["entries"]) == (4, 0, 4)
    with pytest.raises(InputError, match=r"address 8 .* is wider than lookup.la_bits = 3"):
        lookup(trace, address="exact", set=["lookup.la_bits=3", "lookup.sets=4"])
    assert lookup(trace, address="dense", set=["lookup.la_bits=2", "lookup.sets=4"])["entries"] == 4
    with pytest.raises(
        InputError, match=r"more than 2 distinct addresses do not fit lookup.la_bits = 1"
    ):
        lookup(trace, address="dense", set=["lookup.la_bits=1", "lookup.sets=4"])


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        (
            "lookup.sets=100",
            "lookup.sets: 100 is not a power of two (allowed: 64 or 128)",
        ),
        (
            "lookup.secondary_sets=200000",
            "are more than the 131072 primary sets",
        ),
        ("lookup.banks=3", "lookup.banks=3: fine"),
        ("lookup.banks=17", "the device has 16 (dram.device_banks) (allowed: 1 to 16)"),
        (
            "lookup.spread=3",
            "lookup.spread: 4 banks (lookup.banks) do not make groups of 3 (allowed: 1, 2, 4)",
        ),
        (
            "lookup.ways=2",
            "lookup.spread: 2 ways (lookup.ways) leave some of the 4 banks of a set without a way",
        ),
        (
            "lookup.divisor=0",
            "lookup.divisor: the divisor 0 does not give a key for each of 131072 sets",
        ),
        ("lookup.radix_to=12", "lookup.radix_to: digits in base 10 cannot be read in base 12"),
        (
            "lookup.hash=md5",
            "hash function `md5` is not known (allowed: shifting, division, folding, radix, mixer)",
        ),
        ("lookup.policy=dynamc", "did you mean `dynamic`?"),
        (
            "dram.ras=8",
            "dram.ras: the value 8 contradicts dram.rcd = 9: a row closes after its first read "
            "(allowed: 9 or more)",
        ),
        (
            "dram.ccd_s=3",
            "dram.ccd_s: the value 3 contradicts dram.dl = 4: bursts would overlap on the data bus",
        ),
        ("dram.ccd_l=3", "dram.ccd_l: the value 3 contradicts dram.ccd_s = 4"),
        ("dram.faw=3", "dram.faw: the value 3 contradicts dram.rrd_s = 4"),
        ("dram.refi=200", "dram.refi: the value 200 contradicts dram.rfc"),
        (
            "dram.groups=3",
            "dram.groups: 16 banks do not make 3 groups of one size (allowed: a divisor of 16)",
        ),
        ("dram.rows=10", "dram.rows: the tables take"),
        (
            "dram.constraints=ras,raf",
            "dram.constraints: constraint `raf` is not known; did you mean `ras`?",
        ),
        ("lookup.bank=4", "lookup.bank: no such key; did you mean `lookup.banks`?"),
    ],
)
def test_bad_settings_name_the_key_and_what_is_allowed(setting, says):
    needs = {
        "lookup.divisor": ["lookup.hash=division"],
        "lookup.radix_to": ["lookup.hash=radix"],
        "lookup.banks": ["lookup.policy=set-mod"],
    }
    settings = [*needs.get(setting.split("=")[0], []), setting]
    if says.endswith("fine"):
        assert lookup(sets={"lookups": 100}, set=settings)["reads_per_lookup"] == 8
        return
    with pytest.raises(InputError) as error:
        lookup(sets={"lookups": 100}, set=settings)
    assert says in str(error.value)


def test_tables_that_are_too_small_stop_the_study():
    small = ["lookup.la_bits=10", "lookup.sets=4", "lookup.secondary_sets=1"]
    with pytest.raises(
        InputError, match=r"the LPMT has no place for address .* all 1 secondary sets are in use"
    ):
        lookup(files={"files": 1000}, set=small)
    rows = ["lookup.la_bits=10", "lookup.block_tables_count=2", "lookup.rows=16"]
    with pytest.raises(InputError, match="every block table holds valid pages"):
        lookup(files={"files": 1000}, set=rows)
    with pytest.raises(InputError, match="300 files do not fit: addresses of 10 bits"):
        lookup(files={"files": 300, "stride": 4}, set=["lookup.la_bits=10"])
    with pytest.raises(InputError, match="a study needs one source"):
        lookup()


def test_a_flat_array_is_one_read_a_lookup():
    flat = ["lookup.table=flat", "lookup.policy=single", "lookup.la_bits=16"]
    found = lookup(files={"files": 1000}, set=flat)
    # 2^16 entries of 4 bytes, two in a burst of 8 bytes
    assert (found["reads_per_lookup"], found["bytes"]["lpmt"]) == (1, 4 << 16)
    # entries of 3 bytes: two in a burst as well
    assert (
        lookup(files={"files": 10}, set=[*flat, "lookup.flat_bytes=3"])["bytes"]["lpmt"] == 4 << 16
    )
    with pytest.raises(InputError, match=r"the LPMT takes 20 banks, but the device has 16"):
        lookup(files={"files": 10}, set=["lookup.table=flat", "lookup.banks=20"])
    with pytest.raises(InputError, match="a flat array cannot look up all pages"):
        lookup(files={"files": 10}, set=[*flat, "lookup.pages=all"])
    with pytest.raises(InputError, match="only the LPMT has sets to scan"):
        lookup(sets={"lookups": 10}, set=flat)


def test_timed_changes_take_time_and_the_next_lookup_waits_for_them():
    def per_lookup(*settings: str) -> float:
        return lookup(files={"files": 2000}, set=["dram.constraints=none", *settings])[
            "clocks_per_lookup"
        ]

    free, timed = per_lookup(), per_lookup("lookup.changes=timed")
    # an insertion begins when the data is there, 13 clocks after the last read, and opens the row
    # of its block table
    assert timed > free + 13 + 18
    found = lookup(files={"files": 2000}, set=["lookup.changes=timed", "lookup.look_ahead=1"])
    assert found["sets_scanned"] == 2000, "the insertion reuses the lookup's result"
    assert found["latency_clocks_mean"] < 300


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (
            {"files": {"files": 10, "again": 1.0}},
            "again = 1 is out of range; give a share from 0 to 0.9",
        ),
        ({"files": {"files": 10, "stride": 0}}, "stride = 0"),
        (
            {"sets": {"lookups": 10, "repeat": -0.5}},
            "-0.5 is out of range; give a share from 0 to 1",
        ),
        ({"sets": {"lookups": 10**10}}, "a study holds at most 100000000 requests"),
        ({"sets": {"lookups": 10}, "limit": 0}, "limit = 0 is too small; give at least 1"),
        (
            {"sets": {"lookups": 10}, "unit_sectors": 0},
            "unit_sectors = 0 is too small; give at least 1",
        ),
        (
            {"files": {"files": 10}, "set": ["lookup.la_bits=30"]},
            "do not fit the simulator's memory",
        ),
        (
            {"files": {"files": 10}, "set": ["lookup.block_tables_count=16777216"]},
            "lookup.block_tables_count: ",
        ),
        ({"sets": {"lookups": 10}, "set": ["dram.constraints=all,ras"]}, "all alone"),
    ],
)
def test_sources_and_sizes_that_make_no_sense_are_refused(source, says):
    with pytest.raises(InputError) as error:
        lookup(**source)
    assert says in str(error.value)


def test_requests_for_known_files_come_on_top():
    found = lookup(files={"files": 1000, "again": 0.5, "lookups": 1500})
    assert found["entries"] == 1000 and found["hits"] > 1500 + 800
    assert len(lookup(files={"files": 11})["tenths"]) == 10


def test_a_drive_looks_its_pages_up_in_timed_dram():
    options = {
        "drive": "tiny",
        "workload": "uniform:requests=3000,size=2KiB,read=1",
        "precondition": "fill",
        "depth": 1,
    }
    settings = [
        "map.store=lpmt",
        "lookup.policy=single",
        "dram.preset=table-1",
        "dram.constraints=none",
    ]
    settings.append("lookup.extent_pages=1")
    result = flashatlas.run(set=settings, **options)
    assert result.violations == 0
    found = result.record["lookup"]
    assert found["lookup_ns"]["count"] == result.record["map"]["lookups"] == 3000
    # entries of 10 + 10 + 2 bits: two in a burst of 64
    assert found["bursts"] == 4 * 3000
    # the lookup uses one idle bank with another row open: RP, RCD, four reads, CL, DL. It begins at
    # the next clock
    lookup_clocks = 9 + 9 + 12 + 9 + 4
    assert found["lookup_ns"]["p50"] == pytest.approx((lookup_clocks + 0.5) * 1.5, abs=0.8)
    slower = flashatlas.run(set=[*settings, "dram.tck_ps=150000"], **options)
    gain = slower.latency["read"]["mean"] - result.latency["read"]["mean"]
    assert gain == pytest.approx(99 * result.record["lookup"]["lookup_ns"]["mean"], rel=0.02)


@pytest.fixture(scope="module")
def made():
    return reproduce.carry_out("lpmt", stand_ins=True, limit=3000, sweep=False)


def test_what_the_paper_published_is_worked_out_again(made):
    published = made.experiment["published"]
    gains = [[100 * (1 - row[i] / row[0]) for row in published["table_6"].values()] for i in (1, 2)]
    assert [round(fmean(g), 2) for g in gains] == [
        published["improvement"][p] for p in ("set-mod", "dynamic")
    ]
    averages = lpmt_tables.table_6(made)
    assert averages.rows[-2][-2:] == averages.rows[-1][-2:] == ("11.91", "16.28")
    assert [row[3] for row in lpmt_tables.figure_6(made).rows] == ["same"] * 6
    per_read = {row[0]: row[1] for row in lpmt_tables.table_5_to_6(made).rows}
    assert per_read == {"single": "5.718", "set-mod": "4.813", "dynamic": "4.608"}


def test_the_literal_table_contradicts_itself(made):
    rows = {row[0]: row for row in lpmt_tables.checks(made).rows}
    engine, literal = 2, 7
    assert float(rows["dynamic, ABCDABCD"][engine]) < float(rows["single bank"][engine])
    assert float(rows["dynamic, ABCDABCD"][literal]) > float(rows["single bank"][literal])


@pytest.mark.long
def test_the_report_and_the_command(made, monkeypatch, tmp_path, capsys):
    html = lpmt_page.page(made, "flashatlas reproduce lpmt")
    assert "Figure 8: latency over progress" in html
    monkeypatch.setattr(
        "sys.argv",
        [
            "flashatlas",
            "reproduce",
            "lpmt",
            "--stand-ins",
            "--no-store",
            "-q",
            "--limit",
            "400",
            "--out",
            str(tmp_path / "lpmt"),
        ],
    )
    with pytest.raises(SystemExit) as done:
        main()
    assert done.value.code == 0
    numbers = json.loads((tmp_path / "lpmt" / "lpmt.json").read_text())
    kinds = {table["kind"] for table in numbers["tables"]}
    assert kinds == {
        lpmt_tables.DERIVED,
        lpmt_tables.REPRODUCED,
        lpmt_tables.CALIBRATED,
        lpmt_tables.NOT,
    }
    axes = load(PAPER)["sweep"]
    orders = [(order, n) for order in axes["orders"] for n in axes["banks"]]
    placed = sum(order.startswith("set-mod") or n > 1 for order, n in orders)
    others = ("ways", "hashes", "scans", "load")
    each = len(axes["banks"]) + placed * prod(len(axes[name]) for name in others)
    traces = {point["application"] for point in numbers["sweep"]}
    assert len(numbers["sweep"]) == each * len(traces) > 3000
    assert "Nanoseconds against bytes" in (tmp_path / "lpmt" / "report.html").read_text()
    assert "not reproducible without the original trace" in capsys.readouterr().out


def test_the_command_prints_a_study(cli):
    done = cli("lookup", "--sets", "20000", "--policy", "single", "--set", "dram.constraints=none")
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("clocks a lookup"))
    assert float(line.split()[3]) == pytest.approx(51, abs=0.03)
    assert "ns a lookup in each tenth: 76.5" in done.stdout
    listed = cli("lookup", "--parameters").stdout
    assert "set-mod" in listed and "lpddr5-6400" in listed and "dram.constraints" in listed
    wrong = cli("lookup", "--sets", "10", "--banks", "20", "--policy", "set-mod")
    assert wrong.returncode == 2 and "lookup.banks: the tables need 20 banks" in wrong.stderr


SPC = """\
0,0,4096,r,0.0
0,8,4096,R,0.1
0,16,8192,w,0.2
0,32,4096,W,0.3
1,12,4096,r,0.4
"""
MSR = """\
128166372003061629,hm,0,Read,4096,4096,100
128166372016382155,hm,0,Write,8192,512,100
"""


@pytest.mark.long
def test_whole_traces_stand_beside_what_was_published(tmp_path):
    (tmp_path / "Financial1.spc").write_text(SPC * 20)
    (tmp_path / "hm_0.csv").write_text(MSR)
    (tmp_path / "notes.txt").write_text("not a trace")
    made = reproduce.carry_out(
        "lpmt", stand_ins=True, whole=tmp_path, limit=200, sweep=False, jobs=2
    )
    names = ["Financial 1, whole", "MSR hm_0, whole"]
    # two of five requests are sequential: the second read and the second write. No request ended
    # where the read of the other device begins. When the five come again, the first three are not
    # sequential.
    rows = {row[0]: row[1:] for row in lpmt_tables.table_3(made).rows}
    assert rows[names[0]] == ("4.80", "60.00", "20.00", "20.00")
    assert rows[names[1]] == ("2.25", "50.00", "0.00", "0.00")
    # four addresses of device 0, and one of device 1
    assert made.studies[f"trace/{names[0]}/single"]["entries"] == 5
    for table in (
        lpmt_tables.table_4(made),
        lpmt_tables.table_5(made),
        lpmt_tables.table_6_traces(made),
        lpmt_tables.figure_8(made),
        lpmt_tables.queues(made),
    ):
        text = " ".join(row[0] for row in table.rows)
        assert all(name in text for name in names), table.title
    deviation = {row[0]: row[-1] for row in lpmt_tables.table_6_traces(made).rows}
    ours = made.studies[f"trace/{names[0]}/single"]["ns_per_lookup"]
    published = made.experiment["published"]["table_6"]["Financial 1"][0]
    assert float(deviation[f"{names[0]}, Table I alone"].rstrip(" %")) == pytest.approx(
        100 * (ours - published) / published, abs=0.06
    )


def test_a_folder_without_whole_traces_says_what_it_looked_for(cli, tmp_path):
    said = cli("reproduce", "lpmt", "--whole", str(tmp_path / "none"), "-q")
    assert said.returncode == 2 and "there is no such folder of whole traces" in said.stderr
    said = cli("reproduce", "lpmt", "--whole", str(tmp_path), "-q")
    assert said.returncode == 2 and "financial1, financial2" in said.stderr
    for name in ("WebSearch1.spc", "websearch1.spc.gz"):
        (tmp_path / name).write_text(SPC)
    said = cli("reproduce", "lpmt", "--whole", str(tmp_path), "-q")
    assert said.returncode == 2 and "is the same trace as WebSearch1.spc" in said.stderr


def test_a_queue_changes_which_order_of_banks_is_shortest(made):
    rows = {row[0]: row for row in lpmt_tables.queues(made).rows}
    assert rows["random sets, in order"][-1] == "dynamic, striped"
    assert rows["random sets, queue of 32"][-1] == "set-mod"
    assert rows["database, queue of 32"][-1] == "set-mod"


class _Device:
    """A checker of the commands to a device; it shares no code with the engine."""

    def __init__(self, timings):
        self.timings, self.faults = timings, []
        self.banks = defaultdict(lambda: {"row": None, "ACT": -999, "PRE": -999, "RD": -999})
        self.activations, self.columns, self.clock = [], [], -1

    def least(self, name, since):
        if since and self.clock < since[0] + self.timings[name]:
            self.faults.append(f"{self.clock}: t{name} after {since[0]}")

    def expect(self, good, why):
        if not good:
            self.faults.append(f"{self.clock}: {why}")

    def take(self, clock, command, bank, row, **_):
        self.expect(clock > self.clock, "two commands on the bus")
        self.clock, state = clock, self.banks[bank]
        if handle := getattr(self, f"on_{command.lower()}", None):
            handle(state, row)
        state[command] = clock

    def on_act(self, bank, row):
        self.expect(bank["row"] is None, "a row is open")
        self.least("rp", [bank["PRE"]])
        self.least("rrd_s", self.activations[-1:])
        self.least("faw", self.activations[-4:] if len(self.activations) > 3 else [])
        self.activations.append(self.clock)
        bank["row"] = row

    def on_pre(self, bank, _):
        self.least("ras", [bank["ACT"]])
        self.least("rtp", [bank["RD"]])
        bank["row"] = None

    def on_rd(self, bank, row):
        self.expect(bank["row"] == row, "the row is not open")
        self.least("rcd", [bank["ACT"]])
        self.least("ccd_s", self.columns[-1:])
        self.columns.append(self.clock)

    def on_prea(self, *_):
        for bank in self.banks.values():
            bank["row"], bank["PRE"] = None, self.clock


def _faults(commands, timings):
    device = _Device(timings)
    for command in commands:
        device.take(**command)
    return device.faults


@pytest.mark.parametrize("queue", [0, 8])
def test_every_command_can_be_checked(tmp_path, queue):
    where = tmp_path / "commands.parquet"
    found = lookup(sets={"lookups": 3000}, set={"lookup.queue": queue}, commands=where)
    commands = pq.read_table(where)
    listed = commands.to_pylist()
    assert [c["clock"] for c in listed] == sorted(c["clock"] for c in listed)
    counts = Counter(c["command"] for c in listed)
    assert counts["RD"] == found["reads_per_lookup"] * 3000
    assert (counts["ACT"], counts["REF"]) == (found["activations"], found["refreshes"])
    assert counts["REF"] > 10 and found["timings"]["rcd"] > 0
    assert _faults(listed, found["timings"]) == []
    # the checker finds commands that come too early, and rows that are not open
    assert len(_faults(listed, {**found["timings"], "rcd": 20})) > 1000
    assert len(_faults([c for c in listed if c["command"] != "ACT"], found["timings"])) > 1000
    # a study that keeps no commands has the same record
    assert found == lookup(sets={"lookups": 3000}, set={"lookup.queue": queue})


def test_commands_are_refused_before_anything_is_looked_up(cli, tmp_path):
    done = cli("lookup", "--sets", "10", "--commands", "c.txt")
    assert (
        done.returncode == 2
        and "c.txt: the name of a table ends in .csv, .jsonl or .parquet" in done.stderr
    )
    assert cli("lookup", "--sets", "10", "-q", "--commands", "c.csv").returncode == 0
    first = (tmp_path / "c.csv").read_text().splitlines()[:2]
    assert first[0].replace('"', "") == "clock,command,group,bank,row" and '"ACT"' in first[1]
