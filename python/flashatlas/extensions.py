"""Extensions: installed packages that add parts written in Rust.

Rust has no stable ABI. An extension is therefore linked with all of FlashAtlas into one module.
This module replaces ``flashatlas._core``, so only one extension can be installed. The search for an
extension is put off until the core is first imported, because reading the list of installed
packages takes longer than the rest of ``import flashatlas``.
"""

from __future__ import annotations

import importlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from importlib.metadata import EntryPoint
    from types import ModuleType

CORE = "flashatlas._core"
GROUP = "flashatlas.extensions"
"""The group of entry points in which an extension names its module."""

LINK_TOGETHER = (
    "link them into one: write a crate that depends on both and names the parts of both, "
    "`flashatlas::extension!(mine, origin!(…), [&{first}::DEF, &{second}::DEF])`, and install it "
    "in their place"
)


class ExtensionError(ImportError):
    """An extension cannot be used; the message says what to do."""


def _named(point: EntryPoint) -> str:
    of = point.dist
    return f"{of.name} {of.version}" if of is not None else point.name


def chosen(points: list[EntryPoint]) -> EntryPoint | None:
    """Return the installed extension, or ``None`` if there is none.

    Raises:
        ExtensionError: Two extensions are installed.

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
    """Return the native module of an extension.

    Raises:
        ExtensionError: The module cannot be imported, or was built against another FlashAtlas.

    """
    from importlib.metadata import version  # noqa: PLC0415

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


class Core:
    """Finder for the import system. It loads the module of an installed extension as the core."""

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec that loads an extension as the core; ``None`` if none is installed.

        Raises:
            ExtensionError: See :func:`chosen` and :func:`load`.

        """
        if name != CORE:
            return None
        from importlib.machinery import ModuleSpec  # noqa: PLC0415
        from importlib.metadata import entry_points  # noqa: PLC0415

        point = chosen(list(entry_points(group=GROUP)))
        if point is None:
            return None
        return ModuleSpec(name, _Loaded(load(point)))  # type: ignore[arg-type]


class _Loaded:
    """Loader of a module that is already loaded under its own name."""

    def __init__(self, module: ModuleType) -> None:
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has replaced the module's own spec


def use() -> None:
    """Make the module of an installed extension the core."""
    sys.meta_path.insert(0, Core)
