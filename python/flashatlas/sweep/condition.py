"""Conditions of a study: ``map.store in ["dftl", "demand"] and map.cache_bytes < "64KiB"``."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flashatlas._core import InputError, quantity

Lookup = Callable[[str], Any]
"""A function that returns the value of a name; an unknown name raises :class:`InputError`."""

_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}

EXPECTED = (
    "names, texts, numbers and lists with ==, !=, <, <=, >, >=, in, and, or, not: "
    'map.store in ["dftl", "demand"]'
)

LONGEST = 4096
"""The largest number of characters of a condition."""


@dataclass(frozen=True)
class Condition:
    """A condition on the settings and options of a run.

    Names are keys (``map.store``), options (``seed``) and axes. Sizes and times are compared by
    value: ``map.cache_bytes < "64KiB"``.
    """

    text: str
    where: str = "condition"
    """The name of the condition in messages."""

    def __post_init__(self) -> None:
        try:
            self._check(self._tree())
        except RecursionError as error:
            raise InputError(f"{self.where}: `{_short(self.text)}` is nested too deeply") from error

    def _tree(self) -> ast.expr:
        if not isinstance(self.text, str):
            raise InputError(f"{self.where}: {self.text!r} is not a condition: write {EXPECTED}")
        if len(self.text) > LONGEST:
            raise InputError(
                f"{self.where}: the condition has {len(self.text)} characters, but can have "
                f"at most {LONGEST}"
            )
        try:
            return ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise InputError(
                f"{self.where}: `{_short(self.text)}` cannot be read: write {EXPECTED}"
            ) from error

    def _check(self, node: ast.AST) -> None:
        known = (ast.BoolOp, ast.Compare, ast.UnaryOp, ast.Constant, ast.List, ast.Tuple)
        if isinstance(node, (ast.Name, ast.Attribute)):
            self._name(node)
            return
        if isinstance(node, ast.Constant) and not isinstance(node.value, (str, int, float)):
            raise InputError(f"{self.where}: `{self.text}` is not a condition: write {EXPECTED}")
        if not isinstance(node, known) or (
            isinstance(node, ast.UnaryOp) and not isinstance(node.op, (ast.Not, ast.USub))
        ):
            raise InputError(f"{self.where}: `{self.text}` is not a condition: write {EXPECTED}")
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._check(child)

    def _name(self, node: ast.AST) -> str:
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Attribute):
            return f"{self._name(node.value)}.{node.attr}"
        raise InputError(f"{self.where}: `{self.text}` is not a condition: write {EXPECTED}")

    def holds(self, lookup: Lookup) -> bool:
        """Return ``True`` if the condition holds for a run."""
        return bool(self._value(self._tree(), lookup))

    def _value(self, node: ast.AST, lookup: Lookup) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self._value(item, lookup) for item in node.elts]
        if isinstance(node, (ast.BoolOp, ast.UnaryOp, ast.Compare)):
            return self._result(node, lookup)
        try:
            return lookup(self._name(node))
        except InputError as error:
            raise InputError(f"{self.where}: {error}") from error

    def _result(self, node: ast.BoolOp | ast.UnaryOp | ast.Compare, lookup: Lookup) -> Any:
        if isinstance(node, ast.BoolOp):
            found = (self._value(value, lookup) for value in node.values)
            return all(found) if isinstance(node.op, ast.And) else any(found)
        if isinstance(node, ast.UnaryOp):
            value = self._value(node.operand, lookup)
            if isinstance(node.op, ast.Not):
                return not value
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise InputError(f"{self.where}: `{self.text}`: {value!r} is not a number")
            return -value
        left = self._value(node.left, lookup)
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self._value(right_node, lookup)
            if not self._compared(op, left, right):
                return False
            left = right
        return True

    def _compared(self, op: ast.cmpop, left: Any, right: Any) -> bool:
        if isinstance(op, (ast.In, ast.NotIn)):
            if not isinstance(right, (list, str)):
                raise InputError(f"{self.where}: `{self.text}`: `in` needs a list")
            inside = (
                left in right
                if isinstance(right, str)
                else any(_alike(left, value) for value in right)
            )
            return inside is isinstance(op, ast.In)
        if isinstance(op, (ast.Eq, ast.NotEq)):
            return _alike(left, right) is isinstance(op, ast.Eq)
        a, b = _number(left), _number(right)
        if a is None or b is None:
            raise InputError(
                f"{self.where}: `{self.text}`: {left!r} and {right!r} cannot be compared by order"
            )
        return _COMPARE[type(op)](a, b)


def _short(text: str) -> str:
    """Return a text, or its beginning if it would fill the message."""
    return text if len(text) <= 80 else f"{text[:79]}…"


def _number(value: Any) -> float | None:
    """Return a number, or the value of a size or a time; ``None`` for other texts."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if isinstance(value, (int, float)):
        return value
    try:
        return quantity(value)
    except InputError:
        return None


def _alike(left: Any, right: Any) -> bool:
    if type(left) is type(right):
        if left == right:
            return True
    elif isinstance(left, bool) or isinstance(right, bool):
        return str(left).lower() == str(right).lower()
    a, b = _number(left), _number(right)
    return a is not None and a == b
