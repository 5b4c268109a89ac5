"""The runs of a study: every combination of its axes that its conditions allow, each checked."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flashatlas import _core
from flashatlas._core import InputError
from flashatlas.names import hint
from flashatlas.running.api import specification
from flashatlas.running.cost import Cost, cost
from flashatlas.running.run_options import run_options
from flashatlas.sweep.axes import Axis
from flashatlas.sweep.identity import Digests, identity
from flashatlas.sweep.study import Study, StudyError


@dataclass(frozen=True)
class Run:
    """One run of a study."""

    axes: Mapping[str, Any]
    """The run's value on each of its axes, by name."""
    spec: Mapping[str, Any]
    """The run's specification for the core (see :func:`flashatlas.specification`)."""
    identity: Mapping[str, Any]
    """Everything its results depend on."""
    key: str
    """The digest of the identity."""
    label: str
    cost: Cost
    keeps_checkpoints: bool
    """``True`` if its drive can be loaded from a checkpoint."""


@dataclass(frozen=True)
class Plan:
    """A study with its runs."""

    study: Study
    runs: tuple[Run, ...]
    excluded: int
    """Number of combinations that ``exclude`` left out."""
    same: int
    """Number of combinations whose run is the run of another combination."""


def requests_of(spec: Mapping[str, Any]) -> int | None:
    """Return the number of a run's requests; ``None`` if it depends on the content of a file."""
    found = re.search(r"[:,]requests=([^,]+)", spec.get("workload") or "")
    counts = [_core.count(found[1])] if found else []
    if spec.get("limit") is not None:
        counts.append(spec["limit"])
    return min(counts) if counts else None


def planned(study: Study, digests: Digests | None = None) -> Plan:
    """Return all runs of a study, checked.

    Raises:
        InputError: A run could not be carried out (the message has file, line and run), or the
            study has no runs.

    """
    planner = Planner(study, digests)
    runs: dict[str, Run] = {}
    excluded = same = 0
    for axes in planner.combinations():
        run = planner.run(axes)
        if run is None:
            excluded += 1
        elif run.key in runs:
            same += 1
        else:
            runs[run.key] = run
    if not runs:
        place = study.at("exclude") if excluded else study.at("axes")
        why = f"all {excluded} runs are excluded" if excluded else "it has no axes and no workload"
        raise StudyError(f"{place}{study.name}: the study has no runs: {why}")
    return Plan(study, tuple(runs.values()), excluded, same)


class Planner:
    """Maker of runs from combinations of a study's axes."""

    def __init__(self, study: Study, digests: Digests | None = None) -> None:
        self._study = study
        self._digests = digests or Digests()
        self._shared = _Shared(study)

    def combinations(self) -> Iterator[dict[str, Any]]:
        """Yield every combination of the axes that apply, each once."""
        return _combinations(self._study, self._shared)

    def applies(self, axis: Axis, axes: Mapping[str, Any]) -> bool:
        """Return ``True`` if an axis applies to a combination of the unconditional axes.

        Raises:
            InputError: The axis's condition has an unknown name.

        """
        if axis.when is None:
            return True
        try:
            return axis.when.holds(self._shared.lookup(axes))
        except InputError as error:
            raise StudyError(f"{self._study.at(f'axes.{axis.name}')}{error}") from error

    def run(self, axes: Mapping[str, Any], limit: int | None = None) -> Run | None:
        """Return the run of a combination; ``None`` if the study excludes it.

        Args:
            axes: A value for each axis that applies.
            limit: Number of requests after which the run ends, unless the study has a lower limit.

        Raises:
            InputError: The run could not be carried out; the message has file, line and run.

        """
        study, shared = self._study, self._shared
        options, settings = shared.options_of(axes)
        if limit is not None:
            options["limit"] = min(limit, options.get("limit") or limit)
        label = " ".join(_word(value) for value in axes.values()) or study.name
        try:
            if any(one.holds(shared.lookup(axes)) for one in study.exclude):
                return None
            spec = specification(**options, set=settings)
            found = json.loads(_core.planned(json.dumps(spec)))
        except (InputError, TypeError) as error:
            raise _placed(study, error, label) from error
        what = identity(spec, found, self._digests)
        begin, layout = spec["precondition"], found["layout"]
        return Run(
            axes=axes,
            spec=spec,
            identity=what,
            key=self._digests.key(what),
            label=label,
            cost=cost(
                layout,
                begin if isinstance(begin, str) else "other",
                found["config"]["params"].get("map.store", ""),
                spec["base"],
            ),
            keeps_checkpoints=layout["keeps_checkpoints"],
        )


def _word(value: Any) -> str:
    """Return a value in a label; a file by its name."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return Path(text).name if "/" in text else text


def _placed(study: Study, error: Exception, label: str) -> InputError:
    """Return a run's error with the place of the axis or setting that caused it."""
    place = getattr(error, "place", "")
    message = str(error)[len(f"{place}: ") if place else 0 :]
    about = getattr(error, "field", None) or ""
    said = f"{message} (run `{label}`)"
    for one in study.axis_list:
        given = [(key, own) for value in one.values for key, own in one.given(value).items()]
        if about and any(about in (key, own) for key, own in given):
            return StudyError(f"{study.at(f'axes.{one.name}')}{said}")
    for key, value in study.options.items():
        if about and about == value:
            return StudyError(f"{study.at(f'run.{key}')}{said}")
    return StudyError(f"{study.at(f'set.{about}' if '.' in about else f'run.{about}')}{said}")


class _Shared:
    """The settings that runs share, and their combination with the axes."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._axes = {one.name: one for one in study.axis_list}
        self._params: dict[str, Mapping[str, Any]] = {}

    def given(self, axes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings and options of a combination, by key."""
        found: dict[str, Any] = {}
        for name, value in axes.items():
            found |= self._axes[name].given(value)
        return found

    def options_of(self, axes: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        """Return the arguments of a run, and its settings."""
        options = dict(self._study.options)
        given = self.given(axes)
        # the settings of a variant replace the shared ones
        settings = [s for s in self._study.settings if s.partition("=")[0].strip() not in given]
        known = run_options()
        for key, value in given.items():
            if key in known or key == "drive":
                options[key] = value
            else:
                settings.append(f"{key}={_setting(key, value)}")
        if "layers" in options:
            settings.append(f"layers={_setting('layers', options.pop('layers'))}")
        for key, value in options.items():
            if key in known and known[key].kind == "count" and isinstance(value, str):
                options[key] = _core.count(value)
        return options, settings

    def lookup(self, axes: Mapping[str, Any]) -> Any:
        """Return a function that gives the value of a name in a condition, for a combination."""
        given = self.given(axes)
        shared = dict(setting.split("=", 1) for setting in self._study.settings)

        def of(name: str) -> Any:
            for table in (axes, given, shared, self._study.options):
                if name in table:
                    return table[name]
            if name in self._axes:
                return None
            return self._default(name, axes)

        return of

    def _default(self, name: str, axes: Mapping[str, Any]) -> Any:
        """Return a parameter or option that nothing sets: the drive's value, or the default."""
        if name in run_options():
            return run_options()[name].default
        options, settings = self.options_of(axes)
        spec = json.dumps(specification(**options, set=settings), sort_keys=True)
        if spec not in self._params:
            self._params[spec] = json.loads(_core.planned(spec))["config"]["params"]
        params = self._params[spec]
        if name in params:
            return params[name]
        every = {*params, *self._axes, *run_options()}
        if "." in name and not hint(name, every):
            return None
        raise InputError(
            f"`{name}` is not an axis, an option or a parameter of the drive{hint(name, every)}"
        )


def _setting(key: str, value: Any) -> str:
    if key == "layers":
        return "" if value == "none" else str(value).replace("+", ",")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _combinations(study: Study, shared: _Shared) -> Iterator[dict[str, Any]]:
    """Yield every combination of the axes that apply, each once."""
    conditional = {one.name: one for one in study.axis_list if one.when is not None}
    seen: set[str] = set()
    for chosen in itertools.product(*(_steps(group) for group in study.axes)):
        axes = {name: value for step in chosen for name, value in step.items()}
        base = {name: value for name, value in axes.items() if name not in conditional}
        for name, one in conditional.items():
            assert one.when is not None
            try:
                if one.when.holds(shared.lookup(base)):
                    base[name] = axes[name]
            except InputError as error:
                raise StudyError(f"{study.at(f'axes.{name}')}{error}") from error
        kept = {name: axes[name] for name in axes if name in base}
        told = json.dumps(kept)
        if told not in seen:
            seen.add(told)
            yield kept


def _steps(group: tuple[Axis, ...]) -> list[dict[str, Any]]:
    names = [one.name for one in group]
    return [
        dict(zip(names, values, strict=True))
        for values in zip(*(one.values for one in group), strict=True)
    ]
