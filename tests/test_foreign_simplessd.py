"""Drives of SimpleSSD's configuration."""

from __future__ import annotations

import flashatlas
import pytest
from flashatlas import Drive, InputError
from flashatlas.foreign import NoCounterpart, drive_file, simplessd
from flashatlas.foreign.keys import Does

SECTIONS = {
    "pal": {
        "Channel": "2",
        "Package": "1",
        "Die": "2",
        "Plane": "2",
        "Block": "64",
        "Page": "32",
        "PageSize": "8192",
        "EnableMultiPlaneOperation": "1",
        "NANDType": "2",
        "LSBRead": "40000000",
        "LSBWrite": "500000000",
        "CSBRead": "50000000",
        "CSBWrite": "900000000",
        "MSBRead": "65000000",
        "MSBWrite": "1300000000",
        "Erase": "3500000000",
        "DMASpeed": "400",
        "DMAWidth": "16",
        "SuperblockSize": "C",
        "PageAllocation": "CWDP",
    },
    "ftl": {
        "MappingMode": "0",
        "OverProvisioningRatio": "0.25",
        "EraseThreshold": "1000",
        "EvictPolicy": "3",
        "DChoiceParam": "5",
        "GCThreshold": "0.05",
        "GCMode": "0",
        "GCReclaimBlocks": "1",
        "EnableRandomIOTweak": "1",
    },
    "icl": {"CacheSize": "1048576   # 1 MiB", "EnableWriteCache": "1", "EvictPolicy": "2"},
    "nvme": {
        "PCIEGeneration": "1",
        "PCIELane": "2",
        "AXIBusWidth": "2",
        "AXIClock": "250000000",
        "DefaultNamespace": "1",
        "DiskImageFile1": "nvme.img",
    },
    "sata": {
        "PCIEGeneration": "2",
        "PCIELane": "4",
        "AXIBusWidth": "2",
        "AXIClock": "250000000",
        "SATAMode": "1",
    },
    "ufs": {"AXIBusWidth": "0", "AXIClock": "50000000", "MPHYMode": "2", "MPHYLane": "2"},
}


@pytest.fixture
def config(tmp_path):
    """Write a configuration that differs in some options, and name it as a drive."""

    def written(changes: dict[str, str | None] | None = None, interface: str = "") -> str:
        found = {f"{at}.{name}": text for at, of in SECTIONS.items() for name, text in of.items()}
        found |= changes or {}
        lines = ["# a comment"]
        for section in dict.fromkeys(name.partition(".")[0] for name in found):
            lines.append(f"[{section}]")
            lines += [
                f"{name.partition('.')[2]} = {text}"
                for name, text in found.items()
                if name.startswith(f"{section}.") and text is not None
            ]
        (tmp_path / "ssd.cfg").write_text("\n".join(lines) + "\n")
        option = f",interface={interface}" if interface else ""
        return f"simplessd:{tmp_path / 'ssd.cfg'}{option}"

    return written


def lines_of(name: str) -> list[str]:
    """Return the lines of a drive file, without the sources of the values."""
    text = drive_file(name)
    assert text is not None
    return [line.partition("  #")[0] for line in text.splitlines()]


def test_simplessds_drive_is_ours(config):
    found = lines_of(config())
    expected = [
        "channels = 2",
        "ways = 1",
        "dies = 2",
        "planes = 2",
        # a superpage lies on both channels and both planes; its unit is a page of both planes
        "frame_channels = 2",
        "frame_planes = 2",
        "unit = 16384",
        # a quarter of the flash is a third of the exported part
        "over_provisioning = 0.333333333",
        't_read_middle = "50000000ps"',
        't_program_upper = "1300000000ps"',
        't_erase = "3500000000ps"',
        # 400 x 2^20 transfers of two bytes; seven of them take 8.344 ns
        'channel_rate = "838860800"',
        't_command = "8344ps"',
        "endurance = 1000",
        'victim = "d-choices"',
        "d = 5",
        # below 3.2 blocks are 3
        "low_water = 3",
        "bytes = 1048576",
        'mode = "write-back"',
    ]
    assert [line for line in expected if line not in found] == []
    drive = Drive(config())
    # 8 planes x 64 blocks x 32 pages x 8 KiB, in units of 16 KiB
    assert drive.layout["physical_units"] == 8192
    assert drive.layout["logical_units"] == pytest.approx(0.75 * 8192, abs=1)
    work = "uniform:requests=2000,size=16KiB"
    assert flashatlas.run(drive, workload=work, precondition="steady").waf > 1


def test_each_page_of_a_cell_has_its_time(config):
    mlc = lines_of(config({"pal.NANDType": "1"}))
    assert 't_read_middle = "65000000ps"' in mlc
    assert not [line for line in mlc if "upper" in line]
    slc = lines_of(config({"pal.NANDType": "0"}))
    assert 'cell = "slc"' in slc and not [line for line in slc if "middle" in line]


def test_the_slowest_bus_is_the_link(config):
    """Two lanes of 5 GT/s coded 8 to 10, SATA of 3 Gb/s, and 32 bits at 50 MHz."""
    for interface, lines in {
        "": ('link_rate = "1000MB"', "full_duplex = true"),
        "nvme": ('link_rate = "1000MB"', "full_duplex = true"),
        "sata": ('link_rate = "300MB"', "full_duplex = false"),
        "ufs": ('link_rate = "200MB"', "full_duplex = true"),
    }.items():
        found = lines_of(config(interface=interface))
        assert [line for line in lines if line not in found] == [], interface
    assert not [line for line in lines_of(config(interface="none")) if "link_rate" in line]
    lanes = lines_of(config({"ufs.AXIClock": "500000000"}, "ufs"))
    # two lanes of a bit of 8 in 10 each 0.1603 ns
    assert f'link_rate = "{round(2 * 1e6 / 1603 * 0.8)}MB"' in lanes


def test_units_and_frames_follow_planes_and_superblocks(config):
    whole = lines_of(config({"ftl.EnableRandomIOTweak": "0"}))
    assert "unit = 32768" in whole, "the whole superpage"
    single = lines_of(config({"pal.EnableMultiPlaneOperation": "0", "pal.SuperblockSize": "WD"}))
    for line in ("unit = 8192", "frame_ways = 1", "frame_dies = 2"):
        assert line in single
    assert not [line for line in single if line.startswith(("frame_planes", "frame_channels"))]


CHANGED = {
    "pal.EnableMultiPlaneOperation": "0",
    "pal.NANDType": "0",
    "pal.SuperblockSize": "WD",
    "pal.PageAllocation": "PDWC",
    "pal.DMAWidth": "8",
    "ftl.OverProvisioningRatio": "0.5",
    "ftl.EvictPolicy": "1",
    "ftl.GCThreshold": "0.5",
    "ftl.EnableRandomIOTweak": "0",
    "icl.EnableWriteCache": "0",
    "nvme.PCIEGeneration": "0",
    "nvme.PCIELane": "1",
    "nvme.AXIBusWidth": "0",
    "nvme.AXIClock": "1000000",
}


def test_each_option_does_what_its_class_says(config):
    plain = drive_file(config())
    for name, key in simplessd.KEYS.items():
        changed = config({name: CHANGED.get(name, "7")})
        if name.startswith(("sata.", "ufs.")):
            assert drive_file(changed) == plain, name
        elif key.does is Does.REFUSED:
            with pytest.raises(InputError, match=f"{name} = '7' is not possible"):
                drive_file(changed)
        elif key.does is Does.LEFT_OUT:
            with pytest.warns(NoCounterpart, match=f"{name}$"):
                drive_file(changed)
        elif name not in ("nvme.AXIBusWidth",):  # the other bus is slower
            assert (drive_file(changed) == plain) is (key.does is Does.NOTHING), name


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"pal.Chanel": "2"}, "`pal.Chanel` is not known; did you mean `pal.Channel`?"),
        ({"ufs.MPHYMod": "2"}, "`ufs.MPHYMod` is not known; did you mean `ufs.MPHYMode`?"),
        ({"pal.Channel": "two"}, "pal.Channel = 'two' is not a number of at least 1"),
        ({"pal.NANDType": "3"}, "pal.NANDType = '3' is not known"),
        ({"pal.SuperblockSize": "CX"}, "pal.SuperblockSize has the letter 'X'"),
        ({"pal.PageAllocation": None}, "<pal.PageAllocation> is missing"),
        ({"ftl.OverProvisioningRatio": "1"}, "is not a share below 1"),
        ({"ftl.FillRatio": "x", "pal.Die": "0"}, "pal.Die = '0' is not a number of at least 1"),
    ],
)
@pytest.mark.filterwarnings("ignore::flashatlas.foreign.NoCounterpart")
def test_what_makes_no_drive_is_refused(config, changes, said):
    with pytest.raises(InputError) as error:
        drive_file(config(changes))
    assert said in str(error.value)


def test_other_files_and_interfaces_are_refused(config, tmp_path):
    (tmp_path / "other.cfg").write_text("[global]\nMode = 0\n")
    (tmp_path / "twice.cfg").write_text("[pal]\nDie = 1\nDie = 2\n")
    (tmp_path / "no.cfg").write_text("Die = 1\n")
    bad = {
        "simplessd:": "no file is named",
        f"simplessd:{tmp_path / 'other.cfg'}": "there is no [pal] section",
        f"simplessd:{tmp_path / 'twice.cfg'}": "already exists",
        f"simplessd:{tmp_path / 'no.cfg'}": "give a .cfg file of SimpleSSD",
        config(interface="stat"): "did you mean `sata`?; write interface= and one of nvme",
    }
    for name, said in bad.items():
        with pytest.raises(InputError) as error:
            drive_file(name)
        assert said in str(error.value), name
