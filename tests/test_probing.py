"""The probe of a drive: its detectors on made-up numbers, and whole drives drawn at random."""

from __future__ import annotations

import json
import random

import probed_drives
import pytest
from conftest import ONE_IN
from flashatlas.probing import amplification, buffer, curves, dies, reach, refresh, slc
from flashatlas.probing.amplification import Flash, Phase
from flashatlas.probing.found import Finding
from flashatlas.probing.host import PAGE, Simulated, Times


def noisy(values, share=0.02, seed=1):
    """Return the values, each off by up to a share of itself."""
    draw = random.Random(seed)
    return [value * (1 + draw.uniform(-share, share)) for value in values]


@pytest.mark.parametrize("share", [0.0, 0.02])
def test_two_levels_are_found_in_noise_and_none_in_one_level(share):
    found = curves.two_levels(noisy([0.1] * 50 + [0.9] * 50, share), 0.2)
    assert found is not None
    assert found.low == pytest.approx(0.1, rel=0.02) and found.high == pytest.approx(0.9, rel=0.02)
    assert curves.two_levels(noisy([0.5] * 100, share), 0.2) is None
    assert curves.two_levels([], 0.2) is None and curves.two_levels([1.0], 0.2) is None


def test_the_uppermost_gap_is_not_always_the_widest():
    values = [0.0] * 10 + [0.67] * 10 + [1.0] * 10
    assert curves.two_levels(values, 0.2).between == pytest.approx(0.335)
    assert curves.two_levels(values, 0.2, uppermost=True).between == pytest.approx(0.835)


def test_a_few_outliers_are_no_level():
    values = [0.001] + [0.1] * 400
    assert curves.two_levels(values, 0.05) is not None
    assert curves.two_levels(values, 0.05, few=0.01) is None


@pytest.mark.parametrize("share", [0.0, 0.02])
def test_a_step_is_found_where_it_is(share):
    found = curves.step(noisy([100.0] * 30 + [50.0] * 70, share), 1.15)
    assert found is not None and found.at == 30
    assert found.ratio == pytest.approx(2, rel=0.03)


@pytest.mark.parametrize(
    "values",
    [
        [100.0] * 100,
        noisy([100.0] * 100, 0.1),
        [100.0 - 0.4 * n for n in range(100)],
        noisy([100.0] * 50 + [95.0] * 50),
        [1.0, 2.0],
    ],
    ids=["flat", "noise", "slope", "too small a step", "too few numbers"],
)
def test_no_step_is_found_where_there_is_none(values):
    assert curves.step(values, 1.15) is None


def test_the_smallest_number_that_several_agree_on():
    assert curves.lowest_agreed([90, 100, 101, 102, 140], 0.03, 3) == 101
    assert curves.lowest_agreed([90, 100, 111, 125, 140], 0.03, 3) is None


def on_dies(count, channels=1):
    """Return the score of pairs of sectors on a drive with this number of dies in turn."""

    def score(a, b):
        if a % count == b % count:
            return 0.9
        return 0.1 if a % channels == b % channels else 0.0

    return score


@pytest.mark.parametrize("count", [1, 2, 7, 64])
def test_classes_of_conflicting_sectors_are_counted(count):
    draw = random.Random(3)
    known = dies.classes(on_dies(count), 0.5, lambda: draw.randrange(10**6), 4096)
    assert known is not None and len(known) == count
    assert len({page % count for page in known}) == count


def test_more_classes_than_the_limit_are_not_counted():
    draw = random.Random(3)
    assert dies.classes(on_dies(64), 0.5, lambda: draw.randrange(10**6), 20) is None


def test_a_chunk_and_a_stripe_are_read_from_the_places_of_one_die():
    same = [n // 4 % 8 == 0 for n in range(128)]
    assert dies.chunk(same) == 4 and dies.period(same, 4) == 32
    assert dies.chunk([True] * 128) is None
    assert dies.period([True] * 4 + [False] * 124, 4) is None


def test_the_pages_of_a_program_are_a_step_of_longer_reads():
    # 5 µs for each page of 4 KiB, and 45 µs more for each program of 4 pages
    latencies = [50e-6 + 5e-6 * n + 45e-6 * (n // 4) for n in range(64)]
    pages, transfer = dies.boundary(latencies)
    assert pages == 4 and transfer == pytest.approx(5e-6)
    assert dies.boundary([50e-6 + 5e-6 * n for n in range(64)]) is None
    assert dies.boundary([50e-6]) is None


def at_speeds(parts, size):
    """Return the times of writes of ``size`` bytes; each part has bytes and bytes per second."""
    now, times = 0.0, []
    for total, speed in parts:
        for _ in range(total // size):
            times.append(Times(now, now + size / speed))
            now += size / speed
    return times


def test_the_fast_part_of_a_burst_ends_at_the_first_write_that_waits():
    found = buffer.fast_part(at_speeds([(4 << 20, 2e9), (12 << 20, 50e6)], 1 << 14), 1 << 14)
    assert found is not None and found.accepted == 4 << 20
    assert found.sustained == pytest.approx(50e6, rel=0.01)
    assert buffer.fast_part(at_speeds([(16 << 20, 2e9)], 1 << 14), 1 << 14) is None
    assert buffer.fast_part(at_speeds([(1 << 16, 2e9)], 1 << 14), 1 << 14) is None


CAPACITY = 256 << 20
BUFFER = 1 << 20


@pytest.mark.parametrize("cache", [8 << 20, 40 << 20, 120 << 20])
def test_an_slc_cache_ends_where_the_speed_falls(cache):
    size = slc.write_size(CAPACITY)
    times = at_speeds(
        [(BUFFER, 3e9), (cache, 400e6), (CAPACITY - cache - BUFFER, 100e6)],
        size,
    )
    found = slc.slc_cache(times, CAPACITY, BUFFER)
    assert found.value == pytest.approx(cache, rel=0.02)


def test_a_drive_without_a_step_has_no_slc_cache():
    times = at_speeds([(BUFFER, 3e9), (CAPACITY - BUFFER, 100e6)], slc.write_size(CAPACITY))
    assert slc.slc_cache(times, CAPACITY, BUFFER).value == 0


def test_a_cache_behind_a_slow_link_and_an_unknown_buffer_are_not_told():
    times = at_speeds([(CAPACITY, 500e6)], slc.write_size(CAPACITY))
    behind = slc.slc_cache(times, CAPACITY, BUFFER)
    assert behind.value is None and "the speed of the link" in behind.evidence
    unknown = slc.slc_cache(times, CAPACITY, None)
    assert unknown.value is None and "write buffer is unknown" in unknown.evidence


@pytest.mark.parametrize(("later", "told"), [(300e6, "yes"), (105e6, None)])
def test_a_cache_that_is_fast_after_idle_time_was_folded(later, told):
    size = slc.write_size(CAPACITY)
    part = CAPACITY // slc.PART
    batches = (
        at_speeds([(BUFFER, 3e9), (part - BUFFER, 100e6)], size),
        at_speeds([(BUFFER, 3e9), (part - BUFFER, later)], size),
    )
    cache = Finding("SLC cache", float(8 << 20), "bytes", "")
    assert slc.folding(batches, cache, BUFFER, CAPACITY).value == told
    none = Finding("SLC cache", 0.0, "bytes", "")
    assert slc.folding(batches, none, BUFFER, CAPACITY).value is None


class MapHost:
    """A host of a drive that keeps the most recently used map entries; a miss takes as long again.

    With ``share`` the latencies are noisy; with ``entries=None`` the whole map is in memory.
    """

    depth = 1
    sector = 512
    volume = 0

    def __init__(self, capacity, entries, share=0.0):
        self.capacity, self._entries, self._share = capacity, entries, share
        self._used, self._draw = {}, random.Random(5)

    def play(self, commands, depth=1):
        times = []
        for command in commands:
            slow = False
            last = command.offset + max(command.size, 1) - 1
            for page in range(command.offset // PAGE, last // PAGE + 1):
                slow |= self._used.pop(page, None) is None
                self._used[page] = True
                if self._entries is not None and len(self._used) > self._entries:
                    del self._used[next(iter(self._used))]
            latency = 50e-6 * (1 + (slow and self._entries is not None))
            times.append(Times(0.0, latency * (1 + self._draw.uniform(0, self._share))))
        return times


@pytest.mark.parametrize("share", [0.0, 0.05])
@pytest.mark.parametrize("entries", [700, 2500])
def test_the_reach_of_the_map_is_where_reads_get_slower(entries, share):
    found = reach.map_reach(MapHost(32 << 20, entries, share))
    assert found.value == pytest.approx(entries * PAGE, rel=0.1)


def test_a_map_that_is_in_memory_reaches_the_whole_drive():
    found = reach.map_reach(MapHost(32 << 20, None, 0.05))
    assert found.value == 32 << 20


def test_reads_that_always_miss_tell_no_reach():
    found = reach.map_reach(MapHost(32 << 20, 1))
    assert found.value is None or found.value < 32 << 20


FLASH = Flash(
    dies=8,
    frame_pages=4,
    read_s=60e-6,
    occupied_s=55e-6,
    channels=4,
    transfer_s=5e-6,
    misses=0.0,
)


def waits(count, busy, wait):
    """Return the waits of reads of which a share finds its die busy."""
    draw = random.Random(9)
    return [wait(draw) if draw.random() < busy else 0.0 for _ in range(count)]


def test_reads_that_all_wait_alike_suspend_programs_and_erases():
    first = Phase(1e8, waits(4000, 0.95, lambda draw: 20e-6 + draw.uniform(0, 0.3e-6)))
    time, (programs, erases) = amplification.suspension(first, FLASH)
    assert time == pytest.approx(20e-6, rel=0.02)
    assert (programs.value, erases.value) == ("yes", "yes")


def test_reads_that_wait_for_erases_suspend_programs_alone():
    def wait(draw):
        return draw.uniform(0, 3e-3) if draw.random() < 0.1 else 20e-6

    time, (programs, erases) = amplification.suspension(Phase(1e8, waits(4000, 0.95, wait)), FLASH)
    assert time == pytest.approx(20e-6, rel=0.02)
    assert (programs.value, erases.value) == ("yes", "no")


def test_waits_from_nothing_to_a_program_suspend_nothing():
    first = Phase(1e8, waits(4000, 0.95, lambda draw: draw.uniform(0, 600e-6)))
    time, (programs, erases) = amplification.suspension(first, FLASH)
    assert time == 0.0 and programs.value == "no"
    assert erases.value is None, "an erase may be as short as a program"


def test_waits_that_are_neither_alike_nor_even_are_not_told():
    first = Phase(1e8, waits(4000, 0.95, lambda draw: 20e-6 * draw.uniform(1, 1.5)))
    time, (programs, erases) = amplification.suspension(first, FLASH)
    assert time is None and programs.value is None and erases.value is None


@pytest.mark.parametrize("true", [1.5, 3.0, 6.0])
def test_the_busy_time_of_a_byte_tells_the_write_amplification(true):
    """The waits are made from times by hand: 8 dies, programs of 500 µs, reads of 50 µs + 5 µs."""
    program, sense, transfer, slots = 500e-6, 50e-6, 5e-6, 4
    # per frame: programs, a read of each frame of a victim with a valid slot, transfers of copies
    frames = [
        a * program + a * (1 - a**-slots) * sense + (a - 1) * slots * transfer for a in (1.0, true)
    ]
    phases = []
    for each, busy in zip(frames, (0.95, 0.7), strict=True):
        speed = busy * 8 * slots * PAGE / each
        # suspension takes 20 µs; the channels are hardly used
        phases.append(Phase(speed, waits(40000, busy, lambda _: 20e-6)))
    flash = FLASH._replace(channels=10**6)
    found, _ = amplification.solve(*phases, 10e-6, flash)
    assert found == pytest.approx(true, rel=0.03)


def test_refresh_makes_old_data_fast_again():
    def curve(*microseconds):
        return [(float(day), time * 1e-6) for day, time in enumerate(microseconds)]

    assert refresh.told(curve(50, 60, 80, 52, 61)).value == "yes"
    assert refresh.told(curve(217, 212, 156, 114, 131)).value == "yes"
    assert refresh.told(curve(50, 60, 80, 90, 99)).value == "no"
    assert refresh.told(curve(50, 50, 51, 50, 50)).value is None


@pytest.mark.parametrize(("share", "told"), [(0, "no"), (0.3, "yes")])
def test_a_refresh_is_told_by_the_reads_of_a_worn_drive(share, told):
    worn = {"errors.model": "tlc-72l", "errors.cycles": 3000, "ftl.refresh": share}
    small = {"drive.blocks": 16, "drive.pages": 48, "drive.logical_pages": 25000}
    host = Simulated("tlc-small", set=small | worn)
    slc.fill(host)
    assert refresh.refresh(host).value == told


SEEDS = range(probed_drives.COUNT) if ONE_IN == 1 else (0, 3, 5, 10)
"""The random drives that are probed: all with FLASHATLAS_PROOFS=1."""


@pytest.fixture(scope="module")
def probed():
    """Return the deviations of each random drive."""
    rows = {}
    for seed in SEEDS:
        drive = probed_drives.settings(seed)
        rows[seed] = probed_drives.deviations(drive, probed_drives.probed(drive))
    return rows


@pytest.mark.parametrize("name", probed_drives.TOLERANCE)
def test_random_drives_are_told_from_outside(probed, name):
    told = {seed: row[name] for seed, row in probed.items() if row[name] is not None}
    wrong = {seed: off for seed, off in told.items() if not probed_drives.is_right(name, off)}
    few = len(probed) < probed_drives.COUNT
    assert len(wrong) <= (0 if few else 1), wrong
    assert len(told) - len(wrong) >= len(probed) - (1 if few else 2), sorted(probed)


def test_the_command_prints_a_table_and_json(cli):
    small = ["-d", "tiny", "--set", "drive.blocks=48", "-q"]
    table = cli("probe", "drive", *small)
    assert table.returncode == 0 and "cannot tell" in table.stdout
    done = cli("probe", "drive", *small, "--json", "-")
    found = json.loads(done.stdout)
    assert found["schema"] == "flashatlas.probe.drive/1"
    values = {finding["name"]: finding["value"] for finding in found["findings"]}
    # two channels with two dies each, and pages of 2 KiB in turn over all of them
    assert (values["dies"], values["channels"]) == (4, 2)
    assert (values["chunk"], values["stripe"]) == (2048, 8192)
    assert all(finding["evidence"] for finding in found["findings"])


def test_a_drive_that_cannot_be_probed_is_refused(cli):
    large = cli("probe", "drive", "-d", "tlc-nvme-1tb", "-q")
    assert large.returncode == 2 and "writes all of them about ten times" in large.stderr
    alone = cli("probe", "drive", "-d", "tiny", "--set", "host.queue_depth=1", "-q")
    assert alone.returncode == 2 and "the probe sends at least two" in alone.stderr
    unknown = cli("probe", "drive", "-d", "tinny", "-q")
    assert unknown.returncode == 2 and "tiny" in unknown.stderr
