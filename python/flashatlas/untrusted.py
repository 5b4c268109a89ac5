"""Reading of untrusted files (JSON, TOML, Parquet), with checks of the types of their content.

A file that is damaged, or made to do harm, raises an :class:`~flashatlas.InputError` with the place
and the expected content, never another exception.
"""

from __future__ import annotations

import functools
import json
import math
import re
import sys
import types
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin

from typing_extensions import get_type_hints, is_typeddict

from flashatlas._core import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    import pyarrow as pa

UNPACKED_MAX = 1 << 30
"""Number of bytes to which even the smallest compressed file may unpack."""

UNPACKED_TIMES = 20
"""Largest ratio of unpacked to packed size; texts of traces shrink to about a tenth."""

LARGEST = 2**64 - 1
"""The largest whole number of a record."""

SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
"""Half of a surrogate pair in JSON: a pair is one character, and a lone half is no text."""

NAMES: dict[Any, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    type(None): "null",
}
"""Names of types in messages."""


def unpacked_at_most(own: int) -> int:
    """Return the largest size to which a compressed file of this size may unpack, in bytes."""
    return max(UNPACKED_MAX, UNPACKED_TIMES * own)


def text_of(path: Path, what: str) -> str:
    """Return the content of a text file.

    Args:
        path: The file.
        what: Description of the file in messages: ``a run record``.

    Raises:
        FileNotFoundError: The file does not exist.
        InputError: The file cannot be read, or is not UTF-8.

    """
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; the content must be {what}") from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: not UTF-8 at byte {error.start}; the content must be {what}"
        ) from error


def json_of(text: str, place: object, what: str) -> Any:
    """Return the content of a JSON text.

    Raises:
        InputError: The text is not JSON (with line and column), is nested deeper than Python reads,
            or contains a number outside 64 bits, a number that is not finite, or half a character.

    """
    try:
        found = json.loads(text, parse_int=_whole, parse_float=_finite, parse_constant=_no_constant)
        if SURROGATE.search(text):
            json.dumps(found, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        at = f"{place}:{error.lineno}:{error.colno}"
        raise InputError(f"{at}: damaged: {error.msg}; the content must be {what}") from error
    except UnicodeEncodeError as error:
        raise InputError(
            f"{place}: damaged: a character is cut in half; the content must be {what}"
        ) from error
    except ValueError as error:
        raise InputError(f"{place}: damaged: {error}; the content must be {what}") from error
    except RecursionError as error:
        raise InputError(
            f"{place}: damaged: the content is nested too deeply; it must be {what}"
        ) from error
    return found


def _whole(text: str) -> int:
    # the length is checked first, because int() refuses 5,000 digits with a message about Python
    if len(text) > 21 or not -LARGEST <= int(text) <= LARGEST:
        raise ValueError(f"a number with {len(text)} digits does not fit into 64 bits")
    return int(text)


def _finite(text: str) -> float:
    if not math.isfinite(found := float(text)):
        raise ValueError(f"{text[:20]} is too large for a number")
    return found


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


def json_file(path: Path, what: str) -> Any:
    """Return the content of a JSON file.

    Raises:
        FileNotFoundError: The file does not exist.
        InputError: See :func:`text_of` and :func:`json_of`.

    """
    return json_of(text_of(path, what), path, what)


def toml_of(text: str, place: object) -> dict[str, Any]:
    """Return the content of a TOML text.

    Raises:
        InputError: The text is not TOML (with line and column), or is nested deeper than Python
            reads.

    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        at = f":{found[1]}:{found[2]}" if found else ""
        raise InputError(f"{place}{at}: {str(error).partition(' (at ')[0]}") from error
    except RecursionError as error:
        raise InputError(f"{place}: the text is nested too deeply; it must be TOML") from error
    except ValueError as error:
        raise InputError(f"{place}: {error}; the text must be TOML") from error


def parquet_file(path: Path, columns: Collection[str] | None = None) -> pa.Table:
    """Return the table in a Parquet file; if ``columns`` are given, with only these columns.

    Raises:
        FileNotFoundError: The file does not exist.
        InputError: The file is not Parquet, is damaged, or unpacks to more than its size allows.

    """
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        with pq.ParquetFile(path) as parquet:
            about = parquet.metadata
            groups = map(about.row_group, range(about.num_row_groups))
            # Count at least a byte for each row and column: equal rows may be packed into almost
            # nothing.
            declared = max(sum(group.total_byte_size for group in groups),
                           about.num_rows * about.num_columns)  # fmt: skip
            most = unpacked_at_most(path.stat().st_size)
            if declared > most:
                raise InputError(
                    f"{path}: the file has {path.stat().st_size} bytes that unpack to "
                    f"{declared}; a file "
                    f"of this size may unpack to at most {most} bytes"
                )
            if columns is None:
                return parquet.read()
            return parquet.read(columns=[n for n in parquet.schema_arrow.names if n in columns])
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path}: not a readable Parquet file: {error}") from error


def must_be(value: Any, kind: Any, place: object, key: str = "") -> None:
    """Refuse a value that does not have the given type, such as a ``TypedDict``.

    Keys that the type does not declare are ignored, because a later version may add keys.

    Raises:
        InputError: The value has another type; the error names the key and the expected type.

    """
    if (wrong := _wrong(value, kind, key)) is not None:
        raise InputError(f"{place}: damaged: {wrong}")


def keys_must_be(value: Mapping[str, Any], kind: Any, place: object) -> None:
    """Refuse an object in which a value has another type than ``kind`` declares for its key.

        A missing key is accepted.

    Raises:
        InputError: See :func:`must_be`.

    """
    for name, inner in _fields(kind).items():
        if name in value:
            must_be(value[name], inner, place, name)


def _wrong(value: Any, kind: Any, key: str) -> str | None:
    """Return a description of what is wrong with a value; ``None`` if nothing is."""
    origin, inner = get_origin(kind), get_args(kind)
    found: str | None = None
    if kind is Any:
        pass
    elif is_typeddict(kind):
        found = _wrong_dict(value, kind, key)
    elif origin in (Union, types.UnionType):
        each = [_wrong(value, one, key) for one in inner]
        plain = all(one in NAMES for one in inner)
        if None not in each:
            found = _said(value, kind, key) if plain else each[-1]
    elif origin in (dict, list) and isinstance(value, origin):
        items = value.items() if origin is dict else enumerate(value)
        found = _first(items, inner[-1], key)
    elif origin in (dict, list) or not _is_plain(value, kind):
        found = _said(value, kind, key)
    return found


def _is_plain(value: Any, kind: Any) -> bool:
    """Return ``True`` if a value has a plain type; whole numbers are numbers, booleans are not."""
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)


def _first(items: Any, kind: Any, key: str) -> str | None:
    found = (_wrong(value, kind, f"{key}.{name}" if key else str(name)) for name, value in items)
    return next((wrong for wrong in found if wrong is not None), None)


@functools.cache
def _fields(kind: Any) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _wrong_dict(value: Any, kind: Any, key: str) -> str | None:
    if not isinstance(value, dict):
        return _said(value, dict, key)
    for name in sorted(kind.__required_keys__):
        if name not in value:
            return f"{key}.{name} is missing" if key else f"{name} is missing"
    for name, inner in _fields(kind).items():
        if name in value:
            wrong = _wrong(value[name], inner, f"{key}.{name}" if key else name)
            if wrong is not None:
                return wrong
    return None


def _said(value: Any, kind: Any, key: str) -> str:
    if get_origin(kind) in (Union, types.UnionType):
        expected = " or ".join(NAMES[one] for one in get_args(kind))
    elif kind is dict or get_origin(kind) is dict:
        expected = "an object"
    elif get_origin(kind) is list:
        expected = "a list"
    else:
        expected = NAMES[kind]
    shown = json.dumps(value, default=repr)
    shown = shown if len(shown) <= 40 else f"{shown[:39]}…"
    return f"{key or 'the content'} is {shown}, but must be {expected}"
