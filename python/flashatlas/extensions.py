"""Extensions: distributions that bring parts in Rust, and a native module that holds them.

Rust has no stable ABI, so the parts of an extension are linked into a module that holds all of
FlashAtlas besides. It takes the place of ``flashatlas._core``; there can be one.
"""

from __future__ import annotations

import importlib
import sys
from importlib.metadata import EntryPoint, entry_points, version
from types import ModuleType

GROUP = "flashatlas.extensions"
"""The group of entry points by which an extension says its module."""

LINK_TOGETHER = (
    "link them into one: a crate that depends on both names the parts of both, "
    "`flashatlas::extension!(mine, origin!(…), [&{first}::DEF, &{second}::DEF])`, and is installed "
    "in their place"
)


class ExtensionError(ImportError):
    """An extension cannot be used, with what to do."""


def _named(point: EntryPoint) -> str:
    of = point.dist
    return f"{of.name} {of.version}" if of is not None else point.name


def chosen(points: list[EntryPoint]) -> EntryPoint | None:
    """The extension that is installed, if one is.

    Raises:
        ExtensionError: Two are.

    """
    if len(points) > 1:
        first, second = sorted(points, key=_named)[:2]
        mend = LINK_TOGETHER.format(
            first=first.value.replace("-", "_"), second=second.value.replace("-", "_")
        )
        raise ExtensionError(
            f"two extensions of FlashAtlas are installed, {_named(first)} and {_named(second)}: "
            f"uninstall one, or {mend}"
        )
    return points[0] if points else None


def load(point: EntryPoint) -> ModuleType:
    """The native module of an extension.

    Raises:
        ExtensionError: It cannot be imported, or was built against another FlashAtlas.

    """
    try:
        module = importlib.import_module(point.value)
    except (Exception, SystemExit) as error:
        raise ExtensionError(
            f"extension {_named(point)}: its module {point.value} cannot be imported: {error}"
        ) from error
    built, here = getattr(module, "__version__", None), version("flashatlas")
    if built != here:
        raise ExtensionError(
            f"extension {_named(point)} was built against FlashAtlas {built}, this is {here}: "
            "build it again (pip install --force-reinstall --no-deps of its folder)"
        )
    return module


def use() -> None:
    """Let the module of the extension, if one is installed, be the core."""
    point = chosen(list(entry_points(group=GROUP)))
    if point is not None:
        sys.modules["flashatlas._core"] = load(point)
