"""Drives of the headers of NVMeVirt and ConZone: pages, blocks, and blocks in SLC mode."""

from __future__ import annotations

from pathlib import Path

import flashatlas
import pytest
from flashatlas import Drive, InputError
from flashatlas.foreign import NoCounterpart, conzone, drive_file
from flashatlas.foreign.keys import Does

MACROS = {
    "CELL_MODE": "(CELL_MODE_TLC)",
    "NAND_CHANNELS": "(2)",
    "LUNS_PER_NAND_CH": "(1)",
    "PLNS_PER_LUN": "(2)",
    "FLASH_PAGE_SIZE": "KB(16)",
    "ONESHOT_PAGE_SIZE": "(FLASH_PAGE_SIZE * (CELL_MODE))",
    "BLKS_PER_PLN": "0",
    "BLK_SIZE": "KB(768ULL)",
    "NAND_CHANNEL_BANDWIDTH": "(1422ull)",
    "PCIE_BANDWIDTH": "(3000ull)",
    "NAND_ERASE_LATENCY": "(3500000)",
    "FW_READ_LATENCY": "(13000)",
    "OP_AREA_PERCENT": "(0.7)",
    "WRITE_EARLY_COMPLETION": "1",
}

NVMEVIRT = {
    **MACROS,
    "NS_SSD_TYPE_0": "SSD_TYPE_CONV",
    "NAND_READ_LATENCY_LSB": "(41000)",
    "NAND_READ_LATENCY_MSB": "(42000)",
    "NAND_READ_LATENCY_CSB": "(43000)",
    "NAND_PROG_LATENCY": "(900000)",
    "GLOBAL_WB_SIZE": "KB(512)",
}

CONZONE = {
    **MACROS,
    "NR_NAMESPACES": "(2ULL)",
    "NS_SSD_TYPE_0": "SSD_TYPE_CONZONE_META",
    "NS_SSD_TYPE_1": "SSD_TYPE_CONZONE_ZONED",
    "NS_CAPACITY_1": "(0ULL)",
    "MQES": "(63)",
    "SLC_BYPASS": "(0)",
    "NORMAL_ONLY": "(0)",
    "PG_SIZE": "KB(4ULL)",
    "SLC_NAND_PROG_LATENCY": "(75000)",
    "TLC_NAND_PROG_LATENCY": "(937500)",
    "QLC_NAND_PROG_LATENCY": "(6098000)",
    "SLC_NAND_READ_LATENCY_LSB": "(20000)",
    "TLC_NAND_READ_LATENCY_LSB": "(41000)",
    "TLC_NAND_READ_LATENCY_MSB": "(42000)",
    "TLC_NAND_READ_LATENCY_CSB": "(43000)",
    "QLC_NAND_READ_LATENCY_LSB": "(85000)",
    "QLC_NAND_READ_LATENCY_MSB": "(86000)",
    "QLC_NAND_READ_LATENCY_CSB": "(87000)",
    "QLC_NAND_READ_LATENCY_TSB": "(88000)",
    "ZONE_WB_SIZE": "KB(384ULL)",
    "L2P_ENTRY_SIZE": "(4)",
    "L2P_CACHE_SIZE": "KB(64ULL)",
    "DATA_pSLC_INIT_BLKS": "(4)",
    "pSLC_BLK_SIZE": "(BLK_SIZE / CELL_MODE)",
}

ONLY_ZONES = "ignore::flashatlas.foreign.NoCounterpart"


@pytest.fixture
def header(tmp_path: Path):
    """Write a header with one model, and name it as a drive of 96 MiB."""

    def written(kind: str, macros: dict[str, str], **other: str | None) -> str:
        lines = {**macros, **other}
        inside = "".join(f"#define {name} {text}\n" for name, text in lines.items() if text)
        (tmp_path / "ssd_config.h").write_text(f"#if (BASE_SSD == ONE)\n{inside}#endif\n")
        return f"{kind}:{tmp_path / 'ssd_config.h'},capacity=96MiB"

    return written


def lines_of(name: str) -> list[str]:
    """Return the lines of a drive file, without the sources of the values."""
    text = drive_file(name)
    assert text is not None
    return [line.partition("  #")[0] for line in text.splitlines()]


def test_a_program_of_a_page_for_each_bit_is_a_word_line(header):
    """Of three flash pages, in the order LSB, MSB, CSB of ``ssd.h``."""
    found = lines_of(header("nvmevirt", NVMEVIRT))
    expected = [
        'program_unit = "word-line"',
        "page_bytes = 16384",
        # 768 KiB hold 16 programs of 48 KiB; 4 planes of such blocks make 96 MiB with 32 blocks
        "pages = 48",
        "blocks = 32",
        't_read = "41000ns"',
        't_read_middle = "42000ns"',
        't_read_upper = "43000ns"',
        't_program = "900000ns"',
    ]
    assert [line for line in expected if line not in found] == []
    assert Drive(header("nvmevirt", NVMEVIRT)).layout["physical_units"] == (96 << 20) // 4096


def test_a_program_of_fewer_pages_than_bits_is_a_page(header):
    found = lines_of(header("nvmevirt", NVMEVIRT, ONESHOT_PAGE_SIZE="(FLASH_PAGE_SIZE * 2)"))
    assert "page_bytes = 32768" in found and "pages = 24" in found
    assert not [line for line in found if line.startswith("program_unit")]


def test_nvmevirt_has_no_time_for_a_fourth_page(header):
    with pytest.raises(InputError, match="CELL_MODE is QLC, and NVMeVirt has no time"):
        drive_file(header("nvmevirt", NVMEVIRT, CELL_MODE="(CELL_MODE_QLC)"))
    with pytest.raises(InputError, match="CELL_MODE is not one of CELL_MODE_SLC"):
        drive_file(header("nvmevirt", NVMEVIRT, CELL_MODE="(CELL_MODE_UNKNOWN)"))


@pytest.mark.filterwarnings(ONLY_ZONES)
def test_conzones_drive_is_ours(header):
    found = lines_of(header("conzone", CONZONE))
    expected = [
        'program_unit = "word-line"',
        "frame_planes = 2",
        "pages = 48",
        "blocks = 32",
        't_read_upper = "43000ns"',
        't_program = "937500ns"',
        't_read_slc = "20000ns"',
        't_program_slc = "75000ns"',
        't_erase = "3500000ns"',
        "queue_depth = 64",
        "bytes = 393216",
        'store = "demand"',
        "cache_bytes = 65536",
        'slc = "static"',
        "slc_static = 4",
    ]
    assert [line for line in expected if line not in found] == []
    drive = Drive(header("conzone", CONZONE))
    # 2 channels x 2 planes x 32 blocks x 48 pages of 4 units, with 70 % more flash than is exported
    assert drive.layout["physical_units"] == 24576
    assert drive.layout["logical_units"] == pytest.approx(24576 / 1.7, abs=1)
    work = "uniform:requests=200,size=4KiB"
    done = flashatlas.run(drive, workload=work, precondition="fill")
    assert done.record["config"]["params"]["ftl.slc_static"] == 4
    assert done.record["nand"]["programs"]["cache_evict"] > 0


@pytest.mark.filterwarnings(ONLY_ZONES)
def test_the_cell_of_conzone_chooses_its_times(header):
    qlc = lines_of(header("conzone", CONZONE, CELL_MODE="(CELL_MODE_QLC)", BLK_SIZE="MB(1ULL)"))
    for line in ('t_read = "85000ns"', 't_read_top = "88000ns"', 't_program = "6098000ns"'):
        assert line in qlc
    assert "pages = 64" in qlc and 'cell = "qlc"' in qlc


def test_what_conzone_has_and_we_have_not_is_said(header):
    def left(**other: str) -> str:
        with pytest.warns(NoCounterpart) as told:
            drive_file(header("conzone", CONZONE, **other))
        return str(told[0].message).partition("no counterpart: ")[2]

    assert left() == "NR_NAMESPACES, NS_SSD_TYPE_1"
    assert left(SLC_BYPASS="(1)") == "NR_NAMESPACES, NS_SSD_TYPE_1, SLC_BYPASS"
    assert left(SLC_BYPASS="(1)", NORMAL_ONLY="(1)") == "NR_NAMESPACES, NS_SSD_TYPE_1"
    assert left(NS_SSD_TYPE_1="SSD_TYPE_CONZONE_BLOCK") == "NR_NAMESPACES"
    assert left(WB_FLUSH_TIMEWINDOW="(320000)").endswith("WB_FLUSH_TIMEWINDOW")
    for bypass in ("SLC_BYPASS", "NORMAL_ONLY"):
        with pytest.warns(NoCounterpart):
            assert 'slc = "static"' not in lines_of(header("conzone", CONZONE, **{bypass: "(1)"}))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"GLOBAL_WB_SIZE": "KB(4)"}, "GLOBAL_WB_SIZE = 'KB(4)' is not possible"),
        ({"NS_CAPACITY_1": "GB(1)"}, "give `,capacity=`"),
        ({"NAND_CHANELS": "(2)"}, "did you mean `NAND_CHANNELS`"),
        ({"MQES": None}, "the model ONE has no MQES"),
        ({"MQES": "(1 << 6)"}, "MQES = (1 << 6) is not an expression of numbers"),
        ({"BLK_SIZE": "KB(4)"}, "BLK_SIZE = 4096 is not a number of at least 49152"),
        ({"NS_SSD_TYPE_0": "X", "NS_SSD_TYPE_1": "X"}, "give ConZone's ssd_config.h"),
    ],
)
def test_a_header_that_makes_no_drive_of_conzone_is_refused(header, change, said):
    with pytest.raises(InputError) as error:
        drive_file(header("conzone", CONZONE, **change))
    assert said in str(error.value)


@pytest.mark.filterwarnings(ONLY_ZONES)
def test_each_used_macro_of_conzone_changes_the_drive(header):
    """Every used macro that a small header has, with another value."""
    plain = drive_file(header("conzone", CONZONE))
    other = {
        "CELL_MODE": "(CELL_MODE_QLC)",
        "ONESHOT_PAGE_SIZE": "KB(16)",
        "BLKS_PER_PLN": "16",
        "BLK_SIZE": "KB(1536)",
        "FLASH_PAGE_SIZE": "KB(8)",
        "WRITE_EARLY_COMPLETION": "0",
        "NORMAL_ONLY": "(1)",
        "PG_SIZE": "KB(8)",
    }
    for name in CONZONE:
        if conzone.KEYS[name].does is Does.USED and not name.startswith("QLC"):
            changed = header("conzone", CONZONE, **{name: other.get(name, "(3)")})
            assert drive_file(changed) != plain, name
