"""Parts of your own: policies in Python (victims, streams, the map cache), and plug-ins in C.

>>> import numpy as np
>>> from flashatlas import parts
>>> class Emptiest(parts.Victim):
...     "The closed block with the fewest valid pages."
...     name = "emptiest"
...     def pick(self, lane):
...         blocks = lane.candidates()
...         return blocks[np.argmin(lane.valid[blocks])] if len(blocks) else None
>>> parts.add(Emptiest)

From then on, :func:`flashatlas.run` and :func:`flashatlas.compare` accept the name ``emptiest`` in
this process. On the command line, ``--plugin FILE.py`` adds the policy.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, TypedDict

from flashatlas import _core
from flashatlas._core import InputError

PATIENCE = 30.0
"""Seconds that a callback of a plug-in may take; if it takes longer, the process is ended."""

INCLUDE = Path(__file__).with_name("include")
"""The folder of ``flashatlas_plugin.h`` and ``flashatlas_plugin.hpp``."""

NO_NUMPY = "parts in Python need numpy: pip install numpy"


class AddedPart(TypedDict):
    """The entry of a run record for a part that was added to this process."""

    kind: str
    name: str
    distribution: str
    version: str
    digest: str


@dataclass(frozen=True)
class Parameter:
    """A parameter of a policy, declared as a class attribute; instances have its value there."""

    key: str
    kind: str
    low: float
    high: float
    default: str
    doc: str


def whole(key: str, low: int, high: int, default: int, doc: str) -> Any:
    """Declare a whole number from ``low`` to ``high``, under a key such as ``ftl.window``."""
    return Parameter(key, "whole", low, high, str(default), doc)


def real(key: str, low: float, high: float, default: float, doc: str) -> Any:
    """Declare a real number from ``low`` to ``high``."""
    return Parameter(key, "real", low, high, str(default), doc)


def flag(key: str, default: bool, doc: str) -> Any:
    """Declare a parameter that is ``True`` or ``False``."""
    return Parameter(key, "flag", 0, 1, "true" if default else "false", doc)


class _Policy:
    name: ClassVar[str]
    """The name by which the policy is chosen."""
    paper: ClassVar[str] = "none"
    """The paper that describes the policy."""
    _kind: ClassVar[str]

    @classmethod
    def _traits(cls) -> dict[str, Any]:
        """Return the traits that only classifiers and cache policies have."""
        return {"streams": None, "history": False, "batch": 0}

    @classmethod
    def _parameters(cls) -> dict[str, Parameter]:
        """Return the parameters of the class and its bases, by attribute."""
        found = {k: v for base in reversed(cls.__mro__) for k, v in vars(base).items()}
        return {name: value for name, value in found.items() if isinstance(value, Parameter)}

    def _take(self, values: dict[str, Any]) -> None:
        for attribute, parameter in self._parameters().items():
            setattr(self, attribute, values[parameter.key])


class Lane:
    """The state of a lane for its victim policy: arrays with an element for each block.

    They are read-only NumPy arrays over the drive's memory, never copied and always current.

    Attributes:
        slots: Pages (mapping units) of a block.
        valid: Valid pages of each block (``uint32``).
        erases: Number of erases of each block when it was last closed (``uint32``).
        closed_at: :attr:`clock` when each block was closed (``uint64``). An open, free or bad block
            has the largest value instead.
        changed_at: :attr:`clock` when each block was last closed or last lost a valid page
            (``uint64``).

    """

    slots: int
    valid: Any
    erases: Any
    closed_at: Any
    changed_at: Any

    def __init__(self, core: Any) -> None:
        numpy = _numpy()
        self._core = core
        self.slots = core.slots
        arrays = [numpy.asarray(array) for array in core.arrays]
        self.valid, self.erases, self.closed_at, self.changed_at = arrays
        self._numpy = numpy
        self._never = numpy.uint64(2**64 - 1)

    @property
    def clock(self) -> int:
        """Number of pages programmed so far; ``closed_at`` and ``changed_at`` use this clock."""
        return self._core.clock

    @property
    def now_ps(self) -> int:
        """Simulated time, in picoseconds."""
        return self._core.now_ps

    def candidates(self) -> Any:
        """Return the closed blocks with an invalid page."""
        return self._numpy.flatnonzero((self.closed_at != self._never) & (self.valid < self.slots))


class Victim(_Policy):
    """A victim policy, which chooses the closed block of a lane that is collected next.

    One instance is made for each lane. A subclass has ``name``, a docstring whose first line is its
    summary, parameters as class attributes (:func:`whole`, :func:`real`, :func:`flag`), and
    :meth:`pick`. The seed of its lane is ``self.seed``; all random numbers must be drawn from it,
    so that a run can be repeated.
    """

    _kind = "victim"
    lane: Lane
    seed: int

    def setup(self) -> None:
        """Prepare the policy; ``self.lane``, ``self.seed`` and the parameters are set."""

    def pick(self, lane: Lane) -> int | Sequence[int] | None:
        """Return the block to collect next; ``None`` if no closed block has an invalid page.

        Several blocks form a batch. They are collected in this order without another call, as long
        as the next block still has an invalid page.
        """
        raise NotImplementedError

    @classmethod
    def _make(cls, values: dict[str, Any], lane: Any, seed: int) -> Victim:
        made = cls.__new__(cls)
        made.lane, made.seed = Lane(lane), seed
        made._take(values)
        made.setup()
        return made

    def _pick(self) -> list[int]:
        picked = self.pick(self.lane)
        if picked is None:
            return []
        try:
            return [int(block) for block in picked]  # type: ignore[union-attr]
        except TypeError:
            return [int(picked)]  # type: ignore[arg-type]


class Classifier(_Policy):
    """A classifier, which chooses the stream into which a page is written.

    A classifier is either called for every page (:meth:`written`, :meth:`moved`), or it fills two
    tables: ``self.host`` and ``self.collection`` hold a stream, one byte, for each logical page. It
    changes the tables in :meth:`learn`, which is called after every ``batch`` writes.
    """

    _kind = "classifier"
    streams: ClassVar[tuple[int, int] | None] = None
    """Number of streams for host writes and for collection; ``None``: ``ftl.streams`` for both."""
    history: ClassVar[bool] = False
    """``True`` if the classifier needs ages and streams; the drive then keeps tables of them."""
    batch: ClassVar[int] = 0
    """Writes between two calls of :meth:`learn`; 0: the classifier is called for every page."""
    pages: int
    """Number of logical pages."""
    stream_counts: tuple[int, int]
    """Number of streams for host writes and for collection in this run."""

    def setup(self) -> None:
        """Prepare the policy; ``self.pages``, ``self.stream_counts`` and parameters are set."""

    def written(self, lpn: int, clock: int, age: int | None, stream: int | None) -> int:
        """Return the stream of a page that the host writes.

        Args:
            lpn: The logical page.
            clock: Number of pages that the host has written before this page.
            age: Number of pages written since this page was last written; ``None`` if unknown.
            stream: The stream of the superseded version; streams of collection are -1 and below.
                ``None`` if unknown.

        """
        raise NotImplementedError

    def moved(self, lpn: int, clock: int, age: int | None, stream: int | None) -> int:
        """Return the stream of a page that collection moves."""
        raise NotImplementedError

    def learn(self, lpns: Any, ages: Any, clock: int) -> None:
        """Update ``self.host`` and ``self.collection`` from the last ``batch`` writes.

        ``lpns`` and ``ages`` are arrays that are overwritten after the call. An unknown age is
        ``2**64 - 1``.
        """
        raise NotImplementedError

    def memory(self) -> int:
        """Return the bytes of the classifier's tables in the drive."""
        return 0

    @classmethod
    def _make(cls, values: dict[str, Any], seen: Any, streams: tuple[int, int]) -> Classifier:
        made = cls.__new__(cls)
        made.pages, made.stream_counts = seen.pages, streams
        if cls.batch:
            (made.host, made.collection), made._log = _learnt_from(seen)
        made._take(values)
        made.setup()
        return made

    @classmethod
    def _traits(cls) -> dict[str, Any]:
        return {"streams": cls.streams, "history": cls.history, "batch": cls.batch}

    def _learn(self, clock: int) -> None:
        self.learn(*self._log, clock)

    host: Any
    collection: Any
    _log: tuple[Any, Any]


class CachePolicy(_Policy):
    """A policy of the map cache. The policy chooses the map pages to keep and to prefetch.

    It is used by drives with ``map.store = demand``. A policy is either called at every miss
    (:meth:`admit`, :meth:`prefetch`), or it fills two tables with one byte for each map page:
    ``self.keep`` (1 if the page stays in memory) and ``self.ahead`` (the number of pages after it
    to prefetch). It changes them in :meth:`learn`, which is called after every ``batch`` misses.
    """

    _kind = "caching"
    hits: ClassVar[bool] = False
    """``True`` if :meth:`used` is called at every lookup and change of an entry in memory."""
    batch: ClassVar[int] = 0
    """Misses between two calls of :meth:`learn`; 0: the policy is called at every miss."""
    pages: int
    """Number of map pages."""

    def setup(self) -> None:
        """Prepare the policy; ``self.pages`` and the parameters are set."""

    def admit(self, page: int, clock: int, change: bool, room: bool) -> bool:
        """Return ``True`` to keep in memory a map page that is read at a miss.

        Args:
            page: The map page.
            clock: Number of lookups and changes before this one.
            change: ``True`` if an entry of the page changes: the page then stays in any case.
            room: ``True`` if the page fits without an eviction.

        """
        return True

    def prefetch(self, page: int, clock: int, change: bool, most: int) -> Sequence[int]:
        """Return the map pages to prefetch, the most important first.

        At most ``most`` of these are loaded. A page is skipped if it is in memory, was never
        written, or would evict a changed page.
        """
        return ()

    def used(self, page: int, clock: int, change: bool) -> None:
        """Record that an entry of a page in memory was looked up or changed."""

    def learn(self, pages: Any, clocks: Any, clock: int) -> None:
        """Update ``self.keep`` and ``self.ahead`` from the last ``batch`` misses.

        ``pages`` and ``clocks`` are arrays that are overwritten after the call.
        """
        raise NotImplementedError

    def memory(self) -> int:
        """Return the bytes of the policy's tables in the drive."""
        return 0

    @classmethod
    def _make(cls, values: dict[str, Any], seen: Any) -> CachePolicy:
        made = cls.__new__(cls)
        made.pages = seen.pages
        if cls.batch:
            (made.keep, made.ahead), made._log = _learnt_from(seen)
        made._take(values)
        made.setup()
        return made

    @classmethod
    def _traits(cls) -> dict[str, Any]:
        return {"streams": None, "history": cls.hits, "batch": cls.batch}

    def _prefetch(self, page: int, clock: int, change: bool, most: int) -> list[int]:
        return [int(other) for other in self.prefetch(page, clock, change, most)]

    def _learn(self, clock: int) -> None:
        self.learn(*self._log, clock)

    keep: Any
    ahead: Any
    _log: tuple[Any, Any]


KINDS = (Victim, Classifier, CachePolicy)
"""The kinds of parts in Python."""

_BASES = "flashatlas.parts." + ", ".join(kind.__name__ for kind in KINDS[:-1]) + " or CachePolicy"


def _learnt_from(seen: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Return the two tables that a policy fills, and the two columns from which it learns."""
    asarray = _numpy().asarray
    (first, second), (pages, numbers) = seen.tables, seen.log
    return (asarray(first), asarray(second)), (asarray(pages), asarray(numbers))


def _numpy() -> ModuleType:
    try:
        import numpy  # noqa: PLC0415
    except ImportError as error:
        raise InputError(NO_NUMPY) from error
    return numpy


def add(
    cls: type[Victim | Classifier | CachePolicy],
    *,
    replace: bool = False,
    version: str = "0",
    digest: str | None = None,
) -> None:
    """Add a policy to this process.

    Args:
        cls: A subclass of :class:`Victim`, :class:`Classifier` or :class:`CachePolicy`.
        replace: ``True`` to replace a policy that was added under the same name, for example when a
            notebook's cell is run again.
        version: The version in run records.
        digest: The digest in run records; by default the digest of the class's source.

    Raises:
        InputError: The class is not a policy, or its name or the key of a parameter is taken.

    """
    if not (isinstance(cls, type) and issubclass(cls, KINDS)):
        raise InputError(f"{cls!r} is not a subclass of {_BASES}")
    what = f"{cls.__module__}.{cls.__qualname__}"
    if not isinstance(getattr(cls, "name", None), str):
        raise InputError(f'{what}: the class needs an attribute `name`, such as name = "emptiest"')
    _numpy()
    if digest is None:
        try:
            source = inspect.getsource(cls)
        except (OSError, TypeError):
            source = what
        digest = _digest(source.encode())
    summary = (inspect.getdoc(cls) or "").partition("\n")[0].rstrip(".") or f"{cls.__name__}"
    parameters = [
        (p.key, p.kind, p.low, p.high, p.default, p.doc) for p in cls._parameters().values()
    ]
    _core.add_policy(
        {
            "kind": cls._kind,
            "name": cls.name,
            "summary": summary,
            "paper": cls.paper,
            "params": parameters,
            "origin": (cls.__module__, version, digest),
            "make": cls._make,
            **cls._traits(),
        },
        replace,
    )
    if not _loading:
        _OF_PROGRAM.add((cls.name, digest))


_OF_PROGRAM: set[tuple[str, str]] = set()
"""Name and digest of each part that the program added with :func:`add`, not from a file."""
_loading: list[Path] = []
"""The files whose parts are being added."""


def of_program(needed: Iterable[AddedPart]) -> list[AddedPart]:
    """Return the parts that the program added with :func:`add`; no other process can load them."""
    return [part for part in needed if (part["name"], part["digest"]) in _OF_PROGRAM]


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def load(path: str | Path, *, patience: float = PATIENCE) -> list[AddedPart]:
    """Add the parts of a Python file, or of a shared library made with ``flashatlas_plugin.h``.

    From a Python file, every subclass of :class:`Victim`, :class:`Classifier` and
    :class:`CachePolicy` that the file defines is added. Run records name the file's
    ``__version__``, if it defines one.

    Args:
        path: The file.
        patience: Seconds that a callback of a shared library may take. If it takes longer, the
            process is ended, and a line on standard error names the callback.

    Raises:
        InputError: The file does not exist, or one of its parts cannot be added; the parts of a
            Python file that were added before this part stay.

    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no such file; give a shared library, or a Python file")
    before = len(added())
    if path.suffix == ".py":
        _load_python(path)
    else:
        _core.load_plugin(str(path), patience)
    _FILES.append(path)
    return added()[before:]


_FILES: list[Path] = []


def files() -> list[Path]:
    """Return every file that was loaded, in the order of loading."""
    return list(dict.fromkeys(_FILES))


def libraries() -> list[Path]:
    """Return the shared libraries that were loaded; an error in a library may end the process."""
    return [path for path in _FILES if path.suffix != ".py"]


def library_of(part: AddedPart) -> Path | None:
    """Return the shared library that defines a part; ``None`` if no loaded library does."""
    for path in libraries():
        if _digest(path.read_bytes()) == part["digest"]:
            return path
    return None


def _load_python(path: Path) -> None:
    name = path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(name, module)
    _loading.append(path)
    try:
        _add_all_of(path, module, spec.loader)
    finally:
        _loading.pop()


def _add_all_of(path: Path, module: ModuleType, loader: Any) -> None:
    """Run a file as a module, and add the classes that it defines."""
    try:
        loader.exec_module(module)
    # a file that exits on import would end the program as if the run had succeeded
    except (Exception, SystemExit, GeneratorExit) as error:
        raise InputError(f"{path}: {type(error).__name__}: {error}") from error
    classes = [
        cls
        for cls in vars(module).values()
        if isinstance(cls, type) and issubclass(cls, KINDS) and cls.__module__ == path.stem
    ]
    if not classes:
        raise InputError(f"{path}: the file defines no subclass of {_BASES}")
    version = str(getattr(module, "__version__", "0"))
    for cls in classes:
        try:
            add(cls, version=version, digest=_digest(path.read_bytes()))
        except InputError as error:
            raise InputError(f"{path}: {error}") from error


def added() -> list[AddedPart]:
    """Return the parts that were added to this process, in the order of adding."""
    return json.loads(_core.added_parts())


@contextmanager
def temporary() -> Iterator[None]:
    """Remove, at the end of the block, the parts that were added inside it.

    A part that replaced an earlier part stays.
    """
    before, files_before = len(added()), len(_FILES)
    try:
        yield
    finally:
        _core.keep_parts(before)
        del _FILES[files_before:]


def missing(needed: Iterable[AddedPart]) -> str | None:
    """Return the reason if a part of a run is missing or differs; ``None`` if all are loaded."""
    there = {(part["kind"], part["name"]): part for part in added()}
    for part in needed:
        named = f"{part['kind']} `{part['name']}` of {part['distribution']} {part['version']}"
        found = there.get((part["kind"], part["name"]))
        if found is None:
            return f"{named} ({part['digest']}) is not loaded: give its file with --plugin"
        if found["digest"] != part["digest"]:
            return (
                f"{named} has changed: its digest is {found['digest']}, "
                f"but the record has {part['digest']}"
            )
    return None
