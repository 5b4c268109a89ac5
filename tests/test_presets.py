"""Presets that stand for products: their numbers have sources, and they run at their real size."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import flashatlas
import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEVICES = Path(__file__).parents[1] / "devices"
PUBLISHED = DEVICES / "published"
PRODUCTS = sorted(file.stem for file in PUBLISHED.glob("*.toml"))

NEVER_ASSUMED = re.compile(
    r"timing\.t_(read|program)|drive\.(channels|ways|dies|blocks|logical_pages|capacity"
    r"|over_provisioning)|cache\.bytes|ftl\.slc"
)
"""Keys whose values nobody may assume: tR, tPROG, dies, capacity and caches."""

UNITS = {"gb": 10**9, "tb": 10**12}

USES = ("tuned", "predicted", "held back")

STATES = ("fresh", "behind-cache", "steady", "unsaid")


def values(name: str) -> dict[str, dict[str, Any]]:
    """Return the values of a preset by key, each with its source."""
    sections = tomllib.loads((DEVICES / f"{name}.toml").read_text())
    return {
        f"{section}.{key}": value
        for section, keys in sections.items()
        for key, value in keys.items()
        if key != "summary"
    }


def assumed(name: str) -> list[str]:
    """Return the keys of a preset whose values are assumed."""
    return [key for key, value in values(name).items() if "assumed" in value["source"]]


def test_there_are_ten_products_and_each_is_a_preset():
    assert len(PRODUCTS) >= 10
    presets = {preset["name"] for preset in flashatlas.registries()["drives"]}
    assert set(PRODUCTS) <= presets


def test_names_of_presets_are_names_of_parts():
    """A name of a part has neither capitals nor dots, and begins with a letter."""
    presets = [preset["name"] for preset in flashatlas.registries()["drives"]]
    assert [name for name in presets if not re.fullmatch(r"[a-z][a-z0-9_-]*", name)] == []


@pytest.mark.parametrize("name", PRODUCTS)
def test_every_number_has_a_source_and_few_are_assumed(name):
    for key, value in values(name).items():
        assert value["source"].strip(), key
    assert len(assumed(name)) <= 5
    assert [key for key in assumed(name) if NEVER_ASSUMED.match(key)] == []


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_drive_exports_what_its_name_says(name):
    number, unit = re.search(r"([\d.]+)(gb|tb)$", name).groups()
    exported = flashatlas.Drive(name).layout["exported_bytes"]
    assert exported == pytest.approx(float(number) * UNITS[unit], rel=0.001)


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_drive_has_more_flash_than_it_exports_but_not_half_more(name):
    layout = flashatlas.Drive(name).layout
    assert 1.07 < layout["physical_units"] / layout["logical_units"] < 1.5


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_drive_runs_at_its_real_size(name):
    cached = "ftl.slc" in values(name)
    workload = "uniform:requests=300,size=64KiB,read=0.5"
    run = flashatlas.run(name, workload=workload, precondition="steady" if cached else "fill")
    assert run.record["host"]["reads"] + run.record["host"]["writes"] == 300
    codes = {note["code"] for note in run.record["approximations"]}
    assert "held-in-tables" not in codes, "memory would grow with the size of the drive"


@pytest.mark.parametrize("name", PRODUCTS)
def test_published_numbers_say_what_they_are_and_whether_they_were_used(name):
    published = tomllib.loads((PUBLISHED / f"{name}.toml").read_text())
    assert published["preset"] == name
    assert len(published["number"]) >= 2
    for number in published["number"]:
        assert number["state"] in STATES
        assert number["unit"] in ("MB/s", "IOPS", "us")
        assert number["used"] in USES
        assert number["value"] > 0 and number["source"]
        assert ("by_hand" in number) == ("how" in number)
    ends = [part["until_gb"] for part in published.get("curve", [])]
    assert ends == sorted(ends)
    for part in published.get("curve", []):
        assert {part["used_until"], part["used_rate"]} <= set(USES)
        assert part["source"]


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_cache_ends_where_its_curve_says(name):
    published = tomllib.loads((PUBLISHED / f"{name}.toml").read_text())
    if "curve" not in published:
        pytest.skip("nobody published a write curve")
    layout, preset = flashatlas.Drive(name).layout, values(name)
    parts = [preset.get(f"ftl.slc_{part}", {"value": 0}) for part in ("static", "dynamic")]
    blocks = layout["lanes"] * sum(part["value"] for part in parts)
    bits = {"tlc": 3, "qlc": 4}[preset["drive.cell"]["value"]]
    block_bytes = layout["frames_per_block"] * layout["slots_per_frame"] * layout["unit_bytes"]
    first = published["curve"][0]
    close = 0.01 if first["used_until"] == "tuned" else 0.2
    assert blocks * block_bytes / bits == pytest.approx(first["until_gb"] * 1e9, rel=close)


def test_more_flash_may_be_what_the_other_settings_need(cli):
    """20 blocks of each lane in SLC mode do not fit into 88 blocks, but into 200."""
    static = ["--set", "ftl.slc=hybrid", "--set", "ftl.slc_static=20"]
    run = ["run", "-d", "tlc-slc-small", "-w", "uniform:requests=10,size=4KiB", *static]
    refused = cli(*run)
    assert refused.returncode == 2
    assert "88 blocks" in refused.stderr
    taken = cli(*run, "--set", "drive.blocks=200")
    assert taken.returncode == 0, taken.stderr
