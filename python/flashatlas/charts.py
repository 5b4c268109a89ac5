"""The library that draws, which is an extra: a node that only computes need not have its 84 MB."""

from __future__ import annotations

from importlib.util import find_spec
from types import ModuleType

from flashatlas._core import InputError

MISSING = "reports and figures need the extra: pip install 'flashatlas[report]'"


def there() -> bool:
    """Whether reports and figures can be drawn here."""
    return find_spec("vl_convert") is not None


def must_be_there() -> None:
    """Refuse to go on without it, before anything is run for a report or a figure.

    Raises:
        InputError: It is not installed; the message names the extra.

    """
    if not there():
        raise InputError(MISSING)


def library() -> ModuleType:
    """``vl_convert``, imported where it is needed first.

    Raises:
        InputError: It is not installed; the message names the extra.

    """
    must_be_there()
    import vl_convert  # noqa: PLC0415  (84 MB, which other commands need not load)

    return vl_convert
