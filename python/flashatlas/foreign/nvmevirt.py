"""NVMeVirt's ``ssd_config.h`` (Kim and others, FAST 2023): the macros of one of its models.

The capacity is the memory that the kernel module gets, so the user must give it. The firmware's
time for a read becomes our time for every command. NVMeVirt reads a part of a flash page if 4 KiB
are asked for; our drive reads the whole page. The macros are taken from snu-csl/nvmevirt at commit
61c90f7 (May 2026), ``ssd_config.h``.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from pathlib import PurePath

from flashatlas._core import InputError, quantity
from flashatlas.foreign.description import DriveFile, content_of
from flashatlas.foreign.keys import Given, left_out, nothing, refused, table, used
from flashatlas.names import hint

OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}

UNITS = {"KB": 2**10, "MB": 2**20, "GB": 2**30}

MAPPED_PAGE = 4096
"""Bytes of a mapping unit of NVMeVirt (``ssd_init_params``)."""

CELLS = {"CELL_MODE_SLC": "slc", "CELL_MODE_MLC": "mlc", "CELL_MODE_TLC": "tlc"}


OPTIONS = ("capacity", "model")

PART_READS = "our drive reads whole flash pages"
FIRMWARE = "all commands have the same time here: the time of a read"

KEYS = table(
    *nothing("NR_NAMESPACES NS_SSD_TYPE_0 NS_SSD_TYPE_1", "they name the model (SSD_TYPE_CONV)"),
    refused("NS_CAPACITY_0", "(0)|0", "give `,capacity=`"),
    *nothing("NS_CAPACITY_1", "belongs to a second namespace"),
    *nothing("MDTS", "the largest request of the guest; here the workload decides what is sent"),
    *nothing("LBA_BITS LBA_SIZE", "sectors have 512 bytes here"),
    used("CELL_MODE", "`drive.cell`"),
    left_out("SSD_PARTITIONS", "one FTL has all channels here", "(1)|1"),
    used("NAND_CHANNELS", "`drive.channels`"),
    used("LUNS_PER_NAND_CH", "`drive.ways`"),
    used("PLNS_PER_LUN", "`drive.planes`"),
    used("BLKS_PER_PLN", "`drive.blocks`"),
    *nothing("BLK_SIZE", "belongs to a model without BLKS_PER_PLN, which is refused"),
    used("FLASH_PAGE_SIZE", "if ONESHOT_PAGE_SIZE refers to it"),
    used("ONESHOT_PAGE_SIZE", "`drive.page_bytes`, `drive.pages`"),
    used("NAND_CHANNEL_BANDWIDTH", "`timing.channel_rate`, in MB/s"),
    used("PCIE_BANDWIDTH", "`host.link_rate`, in MB/s"),
    left_out("MAX_CH_XFER_SIZE", "here a page crosses the channel in one piece"),
    *nothing("WRITE_UNIT_SIZE", "NVMeVirt's conventional drive does not read it"),
    left_out("NAND_4KB_READ_LATENCY_LSB", PART_READS),
    left_out("NAND_4KB_READ_LATENCY_MSB", PART_READS),
    left_out("NAND_4KB_READ_LATENCY_CSB", PART_READS, "(0)|0"),
    used("NAND_READ_LATENCY_LSB", "`timing.t_read`"),
    used("NAND_READ_LATENCY_MSB", "`timing.t_read_middle` (MLC) or `_upper` (TLC)"),
    used("NAND_READ_LATENCY_CSB", "`timing.t_read_middle`, TLC"),
    used("NAND_PROG_LATENCY", "`timing.t_program`"),
    used("NAND_ERASE_LATENCY", "`timing.t_erase`"),
    used("FW_READ_LATENCY", "`host.command_time`"),
    left_out("FW_4KB_READ_LATENCY", FIRMWARE),
    left_out("FW_WBUF_LATENCY0", FIRMWARE, "(0)|0"),
    left_out("FW_WBUF_LATENCY1", FIRMWARE, "(0)|0"),
    left_out("FW_CH_XFER_LATENCY", FIRMWARE, "(0)|0"),
    used("OP_AREA_PERCENT", "`drive.over_provisioning`"),
    used("GLOBAL_WB_SIZE", "`cache.bytes`"),
    used("WRITE_EARLY_COMPLETION", "`cache.mode`: 1 is write-back, 0 write-through"),
)
"""Every macro of a conventional model."""


class _Macros:
    """The macros of a model."""

    def __init__(self, path: str, model: str | None) -> None:
        self.path = path
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", content_of("nvmevirt", path), flags=re.S)
        blocks = dict(
            re.findall(r"#(?:el)?if \(BASE_SSD == (\w+)\)(.*?)(?=#el|#endif)", text, re.S)
        )
        own = {name: block for name, block in blocks.items() if "SSD_TYPE_CONV" in block}
        if not own:
            raise InputError(
                f"{path}: there is no model with SSD_TYPE_CONV; give NVMeVirt's ssd_config.h"
            )
        if model is None and len(own) > 1:
            raise InputError(f"{path}: no model is named: add ,model= and one of {', '.join(own)}")
        chosen = model or next(iter(own))
        if chosen not in own:
            raise InputError(
                f"{path}: model={chosen} is not a conventional drive; give one of: {', '.join(own)}"
            )
        self.model = chosen
        self.found = dict(re.findall(r"#define (\w+)[ \t]+(.+?)[ \t]*\n", own[chosen]))
        self.left = Given(f"{path}: {chosen}", KEYS, self.found).left

    def text(self, name: str) -> str:
        if name not in self.found:
            raise InputError(f"{self.path}: the model {self.model} has no {name}")
        return self.found[name]

    def number(self, name: str) -> float:
        text = re.sub(r"(\d)[uUlL]+\b", r"\1", self.text(name))
        try:
            return self._value(ast.parse(text, mode="eval").body)
        except (SyntaxError, ValueError, ZeroDivisionError, RecursionError) as error:
            raise InputError(
                f"{self.path}: {name} = {text} is not an expression of numbers, names and + - * /"
            ) from error

    def whole(self, name: str, least: int = 0) -> int:
        value = self.number(name)
        if value != int(value) or value < least:
            raise InputError(f"{self.path}: {name} = {value:g} is not a number of at least {least}")
        return int(value)

    def _value(self, node: ast.expr) -> float:
        match node:
            case ast.Constant(value=int() | float() as value):
                return value
            case ast.Name(id=name):
                return self.number(name)
            case ast.Call(func=ast.Name(id=unit), args=[size]) if unit in UNITS:
                return UNITS[unit] * self._value(size)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                return OPERATORS[type(op)](self._value(left), self._value(right))
        raise ValueError


def described(what: str) -> DriveFile:
    """Return the drive of ``FILE,capacity=60GiB[,model=NAME]``.

    Raises:
        InputError: The file, the model or the capacity does not make a drive.

    """
    path, *options = what.split(",")
    given = dict(one.partition("=")[::2] for one in options)
    for name in given:
        if name not in OPTIONS:
            raise InputError(
                f"nvmevirt: `{name}` is not known; write capacity= or model={hint(name, OPTIONS)}"
            )
    if "capacity" not in given:
        raise InputError(
            f"nvmevirt:{what}: add the memory that the module gets, such as ,capacity=60GiB"
        )
    capacity = int(quantity(given["capacity"]))
    return _drive(_Macros(path, given.get("model")), capacity)


def _drive(macros: _Macros, capacity: int) -> DriveFile:
    drive = DriveFile(f"NVMeVirt's {macros.model} ({PurePath(macros.path).name})")
    channels, ways = macros.whole("NAND_CHANNELS", 1), macros.whole("LUNS_PER_NAND_CH", 1)
    planes, blocks = macros.whole("PLNS_PER_LUN", 1), macros.whole("BLKS_PER_PLN", 1)
    page = macros.whole("ONESHOT_PAGE_SIZE", 1)
    drive.set("drive.channels", channels, "NAND_CHANNELS")
    drive.set("drive.ways", ways, "LUNS_PER_NAND_CH")
    drive.set("drive.dies", 1, "a LUN is a die")
    drive.set("drive.planes", planes, "PLNS_PER_LUN")
    drive.set("drive.blocks", blocks, "BLKS_PER_PLN")
    pages = max(-(-capacity // (channels * ways * planes * blocks * page)), 1)
    drive.set("drive.pages", pages, "the pages of a block, from the capacity")
    drive.set("drive.page_bytes", page, "ONESHOT_PAGE_SIZE")
    drive.set("drive.spare_bytes", page // 32, "NVMeVirt has no spare area: the usual size")
    cell = CELLS.get(macros.text("CELL_MODE").strip("()"))
    if cell is None:
        raise InputError(f"{macros.path}: CELL_MODE is not one of {', '.join(CELLS)}")
    drive.set("drive.cell", cell, "CELL_MODE")
    drive.set("map.unit", MAPPED_PAGE, "NVMeVirt maps 4 KiB")
    spare = macros.number("OP_AREA_PERCENT")
    drive.set("drive.over_provisioning", round(spare, 9), "OP_AREA_PERCENT")
    levels = {"slc": [("LSB", "")], "mlc": [("LSB", ""), ("MSB", "_middle")]}
    levels["tlc"] = [("LSB", ""), ("CSB", "_middle"), ("MSB", "_upper")]
    for name, ours in levels[cell]:
        tag = f"NAND_READ_LATENCY_{name}"
        drive.set(f"timing.t_read{ours}", f"{macros.whole(tag)}ns", tag)
    drive.set("timing.t_program", f"{macros.whole('NAND_PROG_LATENCY')}ns", "NAND_PROG_LATENCY")
    drive.set("timing.t_erase", f"{macros.whole('NAND_ERASE_LATENCY')}ns", "NAND_ERASE_LATENCY")
    rates = {"timing.channel_rate": "NAND_CHANNEL_BANDWIDTH", "host.link_rate": "PCIE_BANDWIDTH"}
    for key, name in rates.items():
        drive.set(key, f"{macros.whole(name)}MB", name)
    drive.set("host.command_time", f"{macros.whole('FW_READ_LATENCY')}ns", "FW_READ_LATENCY")
    drive.set("cache.bytes", macros.whole("GLOBAL_WB_SIZE", 1), "GLOBAL_WB_SIZE")
    early = "WRITE_EARLY_COMPLETION"
    if early in macros.found:
        mode = "write-back" if macros.whole(early) else "write-through"
        drive.set("cache.mode", mode, early)
    drive.leave(macros.left)
    return drive
