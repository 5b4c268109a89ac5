"""Macros of a model in the ``ssd_config.h`` of NVMeVirt and of emulators that are made from it."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping

from flashatlas._core import InputError, quantity
from flashatlas.foreign.description import content_of
from flashatlas.foreign.keys import Given, Key
from flashatlas.names import hint

OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}

UNITS = {"KB": 2**10, "MB": 2**20, "GB": 2**30}

CELLS = ("slc", "mlc", "tlc", "qlc")
"""Our names of cells, by their bits."""

CONSTANTS = {f"CELL_MODE_{cell.upper()}": bits for bits, cell in enumerate(CELLS, 1)}
"""Names that stand for numbers outside of a model."""

OPTIONS = ("capacity", "model")


def capacity_and_model(kind: str, what: str) -> tuple[str, int, str | None]:
    """Return the path, the capacity and the model of ``FILE,capacity=60GiB[,model=NAME]``.

    Raises:
        InputError: An option is not known, or the capacity is missing.

    """
    path, *options = what.split(",")
    given = dict(one.partition("=")[::2] for one in options)
    for name in given:
        if name not in OPTIONS:
            raise InputError(
                f"{kind}: `{name}` is not known; write capacity= or model={hint(name, OPTIONS)}"
            )
    if "capacity" not in given:
        raise InputError(
            f"{kind}:{what}: add the memory that the module gets, such as ,capacity=60GiB"
        )
    return path, int(quantity(given["capacity"])), given.get("model")


def model_of(
    kind: str, what: str, keys: Mapping[str, Key], *, of_type: str, program: str, drive: str
) -> tuple[Macros, int]:
    """Return the macros and the capacity of ``FILE,capacity=60GiB[,model=NAME]``.

    The other arguments are those of :class:`Macros`.

    Raises:
        InputError: The file, the model or the capacity does not make a drive.

    """
    path, capacity, model = capacity_and_model(kind, what)
    macros = Macros(kind, path, model, keys, of_type=of_type, program=program, drive=drive)
    return macros, capacity


class Macros:
    """The macros of a model, checked against their table.

    Args:
        kind: The kind of the description: ``nvmevirt``.
        path: The header.
        model: The model; it may be ``None`` if the header has one model of this type.
        keys: The table.
        of_type: The word of the header that marks a model of this type.
        program: The program whose header it should be.
        drive: What a model of this type is.

    Raises:
        InputError: The header cannot be read or has no such model, or a macro is not known or is
            refused.

    """

    def __init__(
        self,
        kind: str,
        path: str,
        model: str | None,
        keys: Mapping[str, Key],
        *,
        of_type: str,
        program: str,
        drive: str,
    ) -> None:
        """Read the header."""
        self.path = path
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", content_of(kind, path), flags=re.S)
        blocks = dict(
            re.findall(r"#(?:el)?if \(BASE_SSD == (\w+)\)(.*?)(?=#el|#endif)", text, re.S)
        )
        own = {name: block for name, block in blocks.items() if of_type in block}
        if not own:
            raise InputError(
                f"{path}: there is no model with {of_type}; give {program}'s ssd_config.h"
            )
        if model is None and len(own) > 1:
            raise InputError(f"{path}: no model is named: add ,model= and one of {', '.join(own)}")
        chosen = model or next(iter(own))
        if chosen not in own:
            raise InputError(
                f"{path}: model={chosen} is not {drive}; give one of: {', '.join(own)}"
            )
        self.model = chosen
        self.found = dict(re.findall(r"#define (\w+)[ \t]+(.+?)[ \t]*\n", own[chosen]))
        self.left = Given(f"{path}: {chosen}", keys, self.found).left

    def text(self, name: str) -> str:
        """Return the text of a macro, without parentheses around it.

        Raises:
            InputError: The model has no such macro.

        """
        if name not in self.found:
            raise InputError(f"{self.path}: the model {self.model} has no {name}")
        return self.found[name].strip("()")

    def number(self, name: str) -> float:
        """Return the value of a macro, which may be computed from other macros.

        Raises:
            InputError: A macro is missing, or is not an expression of numbers.

        """
        if name in CONSTANTS:
            return CONSTANTS[name]
        self.text(name)
        text = re.sub(r"(\d)[uUlL]+\b", r"\1", self.found[name])
        try:
            return self._value(ast.parse(text, mode="eval").body)
        except (SyntaxError, ValueError, ZeroDivisionError, RecursionError) as error:
            raise InputError(
                f"{self.path}: {name} = {text} is not an expression of numbers, names and + - * /"
            ) from error

    def whole(self, name: str, least: int = 0) -> int:
        """Return the value of a macro that is a whole number from ``least``.

        Raises:
            InputError: It is another number.

        """
        value = self.number(name)
        if value != int(value) or value < least:
            raise InputError(f"{self.path}: {name} = {value:g} is not a number of at least {least}")
        return int(value)

    def flag(self, name: str) -> bool:
        """Return ``True`` if a macro is there and is not 0."""
        return name in self.found and self.number(name) != 0

    def cell(self) -> str:
        """Return our name of the cell of ``CELL_MODE``.

        Raises:
            InputError: There is no such cell.

        """
        name = self.text("CELL_MODE")
        if name not in CONSTANTS:
            raise InputError(f"{self.path}: CELL_MODE is not one of {', '.join(CONSTANTS)}")
        return CELLS[CONSTANTS[name] - 1]

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
