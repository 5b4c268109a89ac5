"""The optional drawing library, whose 84 MB are not needed on a machine that only computes."""

from __future__ import annotations

from importlib.util import find_spec
from types import ModuleType

from flashatlas._core import InputError

MISSING = "reports and figures need the extra: pip install 'flashatlas[report]'"


def there() -> bool:
    """Return ``True`` if reports and figures can be drawn here."""
    return find_spec("vl_convert") is not None


def must_be_there() -> None:
    """Raise an error if the drawing library is missing; called before the first run.

    Raises:
        InputError: The library is not installed; the message names the extra.

    """
    if not there():
        raise InputError(MISSING)


def library() -> ModuleType:
    """Return the module ``vl_convert``, which is imported at the first call.

    Raises:
        InputError: The library is not installed; the message names the extra.

    """
    must_be_there()
    import vl_convert  # noqa: PLC0415  (84 MB, which other commands need not load)

    return vl_convert
