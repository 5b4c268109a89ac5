"""NVMeVirt's ``ssd_config.h`` (Kim and others, FAST 2023): the macros of one of its models.

Its capacity is that of the memory that the module gets, so it must be said. What the firmware takes
for a read is ours for every command; NVMeVirt's flash pages are read in part where 4 KiB are asked
for, ours whole.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from pathlib import PurePath

from flashatlas._core import InputError, quantity
from flashatlas.foreign.drive_file import DriveFile, content_of

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


class _Macros:
    """The macros of a model."""

    def __init__(self, path: str, model: str | None) -> None:
        self.path, self.asked = path, set[str]()
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", content_of("nvmevirt", path), flags=re.S)
        blocks = dict(
            re.findall(r"#(?:el)?if \(BASE_SSD == (\w+)\)(.*?)(?=#el|#endif)", text, re.S)
        )
        own = {name: block for name, block in blocks.items() if "SSD_TYPE_CONV" in block}
        if not own:
            raise InputError(
                f"{path}: no model with SSD_TYPE_CONV; expected NVMeVirt's ssd_config.h"
            )
        if model is None and len(own) > 1:
            raise InputError(f"{path}: which model? Add ,model= and one of {', '.join(own)}")
        chosen = model or next(iter(own))
        if chosen not in own:
            raise InputError(
                f"{path}: model={chosen}: expected one that is a conventional drive: "
                f"{', '.join(own)}"
            )
        self.model = chosen
        self.found = dict(re.findall(r"#define (\w+)[ \t]+(.+?)[ \t]*\n", own[chosen]))

    def text(self, name: str) -> str:
        self.asked.add(name)
        if name not in self.found:
            raise InputError(f"{self.path}: {self.model} has no {name}")
        return self.found[name]

    def number(self, name: str) -> float:
        text = re.sub(r"(\d)[uUlL]+\b", r"\1", self.text(name))
        try:
            return self._value(ast.parse(text, mode="eval").body)
        except (SyntaxError, ValueError, ZeroDivisionError, RecursionError) as error:
            raise InputError(
                f"{self.path}: {name} = {text}, expected numbers, names and + - * /"
            ) from error

    def whole(self, name: str, least: int = 0) -> int:
        value = self.number(name)
        if value != int(value) or value < least:
            raise InputError(f"{self.path}: {name} = {value:g}, expected a number from {least}")
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
    """The drive of ``FILE,capacity=60GiB[,model=NAME]``.

    Raises:
        InputError: The file, the model or the capacity make no drive.

    """
    path, *options = what.split(",")
    given = dict(one.partition("=")[::2] for one in options)
    if wrong := set(given) - {"capacity", "model"}:
        raise InputError(f"nvmevirt: {', '.join(sorted(wrong))}, expected capacity= or model=")
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
    drive.set("drive.pages", pages, "what the capacity leaves a block")
    drive.set("drive.page_bytes", page, "ONESHOT_PAGE_SIZE")
    drive.set("drive.spare_bytes", page // 32, "NVMeVirt has none: what is usual")
    cell = CELLS.get(macros.text("CELL_MODE").strip("()"))
    if cell is None:
        raise InputError(f"{macros.path}: CELL_MODE is none of {', '.join(CELLS)}")
    drive.set("drive.cell", cell, "CELL_MODE")
    drive.set("map.unit", MAPPED_PAGE, "NVMeVirt maps 4 KiB")
    spare = macros.number("OP_AREA_PERCENT")
    drive.set("drive.over_provisioning", round(spare, 9), "OP_AREA_PERCENT")
    levels = {"slc": [("LSB", "")], "mlc": [("LSB", ""), ("MSB", "_middle")]}
    levels["tlc"] = [("LSB", ""), ("CSB", "_middle"), ("MSB", "_upper")]
    for name, ours in levels[cell]:
        tag = f"NAND_READ_LATENCY_{name}"
        drive.set(f"timing.t_read{ours}", f"{macros.whole(tag)}ns", tag)
    macros.asked.add("NAND_READ_LATENCY_CSB")
    drive.set("timing.t_program", f"{macros.whole('NAND_PROG_LATENCY')}ns", "NAND_PROG_LATENCY")
    drive.set("timing.t_erase", f"{macros.whole('NAND_ERASE_LATENCY')}ns", "NAND_ERASE_LATENCY")
    rates = {"timing.channel_rate": "NAND_CHANNEL_BANDWIDTH", "host.link_rate": "PCIE_BANDWIDTH"}
    for key, name in rates.items():
        drive.set(key, f"{macros.whole(name)}MB", name)
    drive.set("host.command_time", f"{macros.whole('FW_READ_LATENCY')}ns", "FW_READ_LATENCY")
    drive.set("cache.bytes", macros.whole("GLOBAL_WB_SIZE", 1), "GLOBAL_WB_SIZE")
    macros.asked |= {"FLASH_PAGE_SIZE"}
    drive.leave(name for name in macros.found if name not in macros.asked)
    return drive
