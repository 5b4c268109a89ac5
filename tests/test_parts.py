"""Added parts in this process: plug-ins in C, and policies in Python."""

from __future__ import annotations

import inspect
import json
import pydoc
import re
import subprocess
import sys
from pathlib import Path

import flashatlas
import numpy as np
import pytest
from conftest import ROOT, Finished
from flashatlas import parts
from flashatlas.report.page import page

LOAD = {"drive": "tiny", "precondition": "fill", "mode": "untimed"}
WRITES = "uniform:requests=20000,size=2KiB,read=0.2"


def cli(*arguments: object) -> Finished:
    """Run a command in a process of its own, because added parts stay in their process."""
    command = [sys.executable, "-m", "flashatlas", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return Finished(done.returncode, done.stdout, done.stderr)


def compiled(folder: Path, source: str, name: str = "plugin.c") -> Path:
    """Compile a C source; return its shared library."""
    (folder / name).write_text(source)
    out = (folder / name).with_suffix(".so")
    command = ["cc", "-O2", "-shared", "-fPIC", "-I", str(parts.INCLUDE), "-o", str(out)]
    subprocess.run([*command, str(folder / name)], check=True)
    return out


PAGE = (ROOT / "python/flashatlas/templates/c/page.c").read_text()


def page_with(good: str, bad: str) -> str:
    assert PAGE.count(good) == 1
    return PAGE.replace(good, bad)


@pytest.mark.long
def test_a_plugin_is_run_recorded_and_run_again(tmp_path):
    library = compiled(tmp_path, PAGE)
    run = ["run", "-d", "tiny", "--plugin", str(library), "--set", "ftl.scheme=page-c"]
    out = tmp_path / "out"
    done = cli(*run, "-w", WRITES, "--precondition", "fill", "--out", str(out))
    assert done.returncode == 0, done.stderr
    record = json.loads((out / "run.json").read_text())
    (part,) = record["parts"]
    assert (part["kind"], part["name"], part["distribution"], part["version"]) == (
        "scheme",
        "page-c",
        "page",
        "1.0",
    )
    assert record["oracle"]["violations"] == 0
    assert record["oracle"]["units_checked"] > 1000
    again = cli("rerun", str(out), "--check")
    assert again.returncode == 2
    assert "scheme `page-c` of page 1.0 (sha256:" in again.stderr
    assert "is not loaded: give its file with --plugin" in again.stderr
    assert cli("rerun", str(out), "--check", "--plugin", str(library)).returncode == 0
    other = compiled(tmp_path, PAGE.replace("two frontiers a lane", "2 frontiers"), "other.c")
    again = cli("rerun", str(out), "--check", "--plugin", str(other))
    assert again.returncode == 2 and "has changed: its digest is sha256:" in again.stderr


@pytest.mark.long
def test_a_checkpoint_says_which_parts_it_needs(tmp_path):
    library = compiled(tmp_path, PAGE)
    drive = ["-d", "tiny", "--set", "ftl.scheme=page-c", "--precondition"]
    made = tmp_path / "aged.ckpt"
    done = cli("checkpoint", made, *drive, "fill", "--plugin", library)
    assert done.returncode == 0, done.stderr
    run = ["run", *drive, f"checkpoint:{made}", "-w", "uniform:requests=500,size=2KiB"]
    assert cli(*run, "--plugin", library).returncode == 0
    other = compiled(tmp_path, PAGE.replace("two frontiers a lane", "2 frontiers"), "page.c")
    said = cli(*run, "--plugin", other)
    assert said.returncode == 2
    assert "the file needs scheme `page-c` of page 1.0 with digest" in said.stderr
    # a policy only decides where pages go, so a mount does not need the policy
    said = cli("checkpoint", made, "-d", "tiny", "--precondition", "fill")
    assert said.returncode == 0, said.stderr


@pytest.mark.long
def test_a_plugin_has_names_and_help_as_others(tmp_path):
    library = ["--plugin", str(compiled(tmp_path, PAGE))]
    assert "page mapping in C" in cli("schemes", *library).stdout
    assert "ftl.page_c_low_water" in cli("schemes", "page-c", *library).stdout
    said = cli("run", *library, "--set", "ftl.scheme=pages-c", "-w", "uniform").stderr
    assert "did you mean `page-c`?" in said
    said = cli("run", *library, "--set", "ftl.scheme=page-c", "--set", "ftl.page_c_low_water=1")
    assert "1 is out of range (allowed: 3 to 1000)" in said.stderr and said.returncode == 2
    other = compiled(tmp_path, PAGE.replace('"page", "1.0"', '"mine", "2.0"'), "mine.c")
    said = cli("run", *library, "--plugin", other, "-w", "uniform")
    assert "two parts are called `page-c`: one is from page 1.0, and one" in said.stderr
    assert (
        cli("run", "--plugin", "nothing.so").stderr.count("nothing.so: there is no such file") == 1
    )


def test_a_firmware_that_goes_wrong_has_an_exit_code_of_its_own(tmp_path):
    bad = compiled(tmp_path, page_with("*page = ftl->l2p[lpn];", "*page = ftl->l2p[0];"))
    out = tmp_path / "out"
    said = cli("run", "--plugin", str(bad), "--set", "ftl.scheme=page-c", "-w", WRITES, "-o", out)
    assert said.returncode == 5, said.stderr
    assert "error: plug-in page: page-c: `locate` at " in said.stderr
    assert "its newest version is " in said.stderr
    assert not out.exists()


HANGS = "*page = ftl->l2p[lpn]; for (volatile int i = 1; i;) {}"
CRASHES = "*page = ftl->l2p[lpn]; *(volatile int *)8 = 0;"
ABORTS = "*page = ftl->l2p[lpn]; __builtin_trap();"


@pytest.mark.parametrize(
    ("bad", "expected", "code"),
    [
        (HANGS, "`locate`, called at simulated time 0 ps, has not returned for 500ms", 70),
        (
            CRASHES,
            "`locate`, called at simulated time 0 ps: an invalid memory access ended the process",
            -11,
        ),
        (ABORTS, "`locate`, called at simulated time 0 ps: an illegal instruction ended", -4),
    ],
)
def test_what_ends_a_process_is_named(tmp_path, bad, expected, code):
    library = compiled(tmp_path, page_with("*page = ftl->l2p[lpn];", bad))
    program = (
        "import flashatlas; from flashatlas import parts;"
        f"parts.load({str(library)!r}, patience=0.5);"
        f"flashatlas.run('tiny', set={{'ftl.scheme': 'page-c'}}, workload={WRITES!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, expected in done.stderr) == (code, True), done.stderr
    assert "plug-in page: page-c" in done.stderr


def test_crash_survives_a_plugin_that_ends_its_process(tmp_path):
    library = compiled(tmp_path, page_with("*page = ftl->l2p[lpn];", CRASHES))
    crash = ["crash", "--scheme", "page-c", "--workload", "random", "--one-in", "50", "-q"]
    done = cli(*crash, "--plugin", str(library))
    assert done.returncode == 5, done.stderr
    assert "page-c: callback `locate`" in done.stderr
    assert "the process of the plug-in was ended by SIGSEGV: see above" in done.stderr


class Emptiest(parts.Victim):
    """A policy that picks the closed block with the fewest valid pages, by number if equal."""

    name = "test-emptiest"

    def pick(self, lane):
        blocks = lane.candidates()
        if not len(blocks):
            return None
        order = np.lexsort((blocks, lane.valid[blocks]))
        return blocks[order[0]]


class Batched(Emptiest):
    """A policy that picks the eight closed blocks with the fewest valid pages at a time."""

    name = "test-batched"

    def pick(self, lane):
        blocks = lane.candidates()
        return blocks[np.lexsort((blocks, lane.valid[blocks]))][:8]


class CostBenefit(parts.Victim):
    """Rosenblum's cost-benefit."""

    name = "test-cost-benefit"
    weight = parts.real("ftl.test_weight", 0, 10, 1, "exponent of the age")

    def setup(self):
        assert self.weight == 2.0 and self.seed >= 0
        assert len(self.lane.valid) == len(self.lane.erases) == 32

    def pick(self, lane):
        blocks = lane.candidates()
        if not len(blocks):
            return None
        used = lane.valid[blocks] / lane.slots
        age = (lane.clock - lane.changed_at[blocks].astype(float)) ** (self.weight / 2)
        return blocks[np.argmax((1 - used) / (1 + used) * age)]


class Raises(parts.Victim):
    """A policy that raises an error."""

    name = "test-raises"

    def pick(self, lane):
        raise ZeroDivisionError(f"slots: {lane.slots}")


class Astray(parts.Victim):
    """A policy that picks a block that is not closed."""

    name = "test-astray"

    def pick(self, lane):
        return int(np.flatnonzero(lane.closed_at == 2**64 - 1)[0])


class Halves(parts.Classifier):
    """A classifier that treats the lower half of the pages as hot."""

    name = "test-halves"

    def written(self, lpn, clock, age, stream):
        return int(lpn < self.pages // 2)

    moved = written

    def memory(self):
        return 17


class Learner(parts.Classifier):
    """A classifier that treats pages as hot if a batch writes them at least twice."""

    name = "test-learner"
    streams = (2, 2)
    history = True
    batch = 512

    def learn(self, lpns, ages, clock):
        assert len(lpns) == len(ages) == 512 and clock > 0
        assert lpns.max() < self.pages
        pages, times = np.unique(lpns, return_counts=True)
        self.host[pages] = times > 1
        self.collection[:] = self.host


class Ghost(parts.CachePolicy):
    """A policy that keeps a map page if it was among the last misses, or if there is room."""

    name = "test-ghost"
    limit = parts.whole("map.test_limit", 1, 1000, 64, "pages that are remembered")

    def setup(self):
        self.queue = []

    def admit(self, page, clock, change, room):
        if page in self.queue:
            self.queue.remove(page)
            return True
        if not room and not change:
            self.queue = [*self.queue, page][-self.limit :]
        return room


class Readahead(parts.CachePolicy):
    """A policy that prefetches at sequential misses, and doubles the number of pages each time."""

    name = "test-readahead"

    def setup(self):
        self.follows, self.window = -1, 0

    def prefetch(self, page, clock, change, most):
        self.window = min(max(2 * self.window, 1), 8, most) if page == self.follows else 0
        self.follows = page + 1 + self.window
        return range(page + 1, min(self.follows, self.pages))


class Blocker(parts.CachePolicy):
    """A policy that keeps pages missed at least twice in a batch, and prefetches two at a miss."""

    name = "test-blocker"
    batch = 64
    hits = True
    heard = 0

    def learn(self, pages, clocks, clock):
        assert len(pages) == len(clocks) == 64 and (np.diff(clocks.astype(int)) > 0).all()
        numbers, times = np.unique(pages, return_counts=True)
        self.keep[numbers] = times > 1
        self.ahead[numbers] = 2

    def used(self, page, clock, change):
        Blocker.heard += 1


class Beyond(parts.CachePolicy):
    """A policy that wants a map page that does not exist."""

    name = "test-beyond"

    def prefetch(self, page, clock, change, most):
        return [self.pages]


@pytest.fixture(scope="module", autouse=True)
def added():
    of_caches = (Ghost, Readahead, Blocker, Beyond)
    for cls in (Emptiest, Batched, CostBenefit, Raises, Astray, Halves, Learner, *of_caches):
        parts.add(cls)


def waf(victim: str, **more: str) -> float:
    result = flashatlas.run(**LOAD, workload=WRITES, set={"ftl.victim": victim, **more})
    assert result.violations == 0
    return result.waf


def test_a_policy_in_python_does_what_the_same_in_rust_does():
    greedy = waf("greedy")
    assert waf("test-emptiest") == pytest.approx(greedy, rel=0.02)
    assert waf("test-batched") == pytest.approx(greedy, rel=0.1)
    own = waf("test-cost-benefit", **{"ftl.test_weight": "2"})
    assert own == pytest.approx(waf("cost-benefit"), rel=0.05)


def of_map(policy: str, workload: str) -> dict[str, int]:
    own = {"map.store": "demand", "map.page_bytes": 64, "map.cache_bytes": 512}
    run = {**LOAD, "workload": workload, "set": {**own, "map.policy": policy}}
    result = flashatlas.run(**run)
    assert result.violations == 0
    return {key: result.record["map"][key] for key in ("hits", "misses", "loads", "pages_ahead")}


def test_a_policy_of_the_cache_in_python_does_what_the_same_in_rust_does():
    zipf = "zipf:requests=5000,size=2KiB,read=0.7,theta=0.9"
    runs = "mixed:requests=2000,sizes=2KiB/64KiB,read=0.7"
    ghost = of_map("test-ghost", zipf)
    assert ghost == of_map("ghost", zipf) != of_map("keep", zipf)
    readahead = of_map("test-readahead", runs)
    assert readahead == of_map("readahead", runs) and readahead["pages_ahead"] > 100


def test_a_policy_of_the_cache_may_keep_tables():
    found = of_map("test-blocker", "zipf:requests=5000,size=2KiB,read=0.7,theta=0.9")
    assert found["pages_ahead"] > 100 and Blocker.heard >= found["hits"] > 100
    with pytest.raises(flashatlas.PartError) as raised:
        of_map("test-beyond", WRITES)
    assert "`prefetch` returned map page 40, but the map pages are 0 to 39" in str(raised.value)


def test_a_policy_is_recorded_with_the_digest_of_its_source():
    result = flashatlas.run(**LOAD, workload=WRITES, set={"ftl.victim": "test-emptiest"})
    (part,) = result.record["parts"]
    assert part["kind"] == "victim policy" and part["name"] == "test-emptiest"
    assert part["digest"].startswith("sha256:") and part["distribution"] == "test_parts"
    assert "parts" not in flashatlas.run(**LOAD, workload=WRITES).record
    html = page("t", [result], "flashatlas run")
    assert "Added parts" in html and part["digest"] in html and 'href="#parts"' in html
    assert "Added parts" not in page("t", [flashatlas.run(**LOAD, workload=WRITES)], "")
    again = flashatlas.rerun(result)
    assert again.record == result.record


def test_an_exception_ends_the_run_with_its_traceback():
    with pytest.raises(flashatlas.PartError) as raised:
        waf("test-raises")
    text = str(raised.value)
    assert text.startswith("victim policy `test-raises` (test_parts): `pick` at 0ps raised\n")
    assert "in pick\n    raise ZeroDivisionError" in text and "slots: 8" in text
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_a_block_that_is_not_closed_is_refused():
    with pytest.raises(flashatlas.PartError, match="is not one of the closed blocks"):
        waf("test-astray")


def test_the_arrays_cannot_be_written():
    class Writes(parts.Victim):
        """A policy that writes into arrays that it may only read."""

        name = "test-writes"

        def pick(self, lane):
            lane.valid[0] = 0

    parts.add(Writes)
    with pytest.raises(flashatlas.PartError, match="read-only"):
        waf("test-writes")


def test_classifiers_are_asked_or_keep_tables():
    load = "hotcold:requests=30000,size=2KiB"
    small = {"drive.blocks": "64", "drive.over_provisioning": "0.5"}
    runs = {}
    for name, more in [
        ("none", {}),
        ("test-halves", {"ftl.streams": "2"}),
        ("address", {"ftl.streams": "2", "ftl.hot_space": "0.5"}),
        ("test-learner", {}),
    ]:
        settings = {**small, "ftl.classifier": name, **more}
        runs[name] = flashatlas.run("tiny", mode="untimed", workload=load, set=settings)
        assert runs[name].violations == 0
    # the classifier `address` is the same rule in Rust
    assert runs["test-halves"].waf == runs["address"].waf
    assert runs["test-halves"].record["memory_bytes"]["tables"]["classifier"] == 17
    assert runs["test-learner"].waf != runs["none"].waf


def test_what_cannot_be_added_is_said(tmp_path):
    with pytest.raises(flashatlas.InputError, match="is not a subclass of"):
        parts.add(int)
    nameless = type("Nameless", (parts.Victim,), {})
    with pytest.raises(flashatlas.InputError, match='such as name = "emptiest"'):
        parts.add(nameless)
    with pytest.raises(flashatlas.InputError, match="two parts are called `test-emptiest`"):
        parts.add(type("Other", (Emptiest,), {}))
    parts.add(Emptiest)  # the same source as before is no error
    empty = tmp_path / "nothing.py"
    empty.write_text("import flashatlas\n")
    with pytest.raises(flashatlas.InputError, match="no subclass of"):
        parts.load(empty)
    empty.write_text("1 / 0\n")
    with pytest.raises(flashatlas.InputError, match=r"nothing\.py: ZeroDivisionError"):
        parts.load(empty)
    with pytest.raises(flashatlas.InputError, match="is not a positive number of seconds"):
        parts.load(compiled(tmp_path, PAGE), patience=0)


@pytest.mark.long
def test_a_python_file_is_a_plugin(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "import numpy as np\n"
        "from flashatlas import parts\n"
        "__version__ = '1.2'\n"
        "class Emptiest(parts.Victim):\n"
        "    'The emptiest block.'\n"
        "    name = 'emptiest'\n"
        "    def pick(self, lane):\n"
        "        blocks = lane.candidates()\n"
        "        return blocks[np.argmin(lane.valid[blocks])] if len(blocks) else None\n"
    )
    run = ["run", "--plugin", str(file), "--set", "ftl.victim=emptiest", "-w", WRITES]
    done = cli(*run, "--precondition", "fill", "--json", "-")
    assert done.returncode == 0, done.stderr
    (part,) = json.loads(done.stdout)["parts"]
    assert (part["distribution"], part["version"]) == ("mine", "1.2")
    crash = ["crash", "--scheme", "page", "--store", "dram", "--geometry", "mini"]
    assert cli(*crash, "--one-in", "50", "--plugin", str(file)).returncode == 0


def test_help_names_every_array_of_a_lane():
    shown = pydoc.plain(pydoc.render_doc(parts.Lane))
    read_in_init = inspect.getsource(parts.Lane.__init__)
    for name in ("slots", "valid", "erases", "closed_at", "changed_at"):
        assert f"self.{name}" in read_in_init, "there is no such attribute"
        assert re.search(rf"\|\s+{name}: \S", shown), name
