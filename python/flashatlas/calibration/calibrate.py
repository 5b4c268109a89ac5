"""A whole calibration: measurements in; a drive, its residuals and the ranges out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from flashatlas._core import InputError
from flashatlas.calibration import fit as fits
from flashatlas.calibration import ranges as ends
from flashatlas.calibration.fit import Fit
from flashatlas.calibration.measured import Measurement
from flashatlas.calibration.preset import params_of, preset
from flashatlas.calibration.quantities import Quantity
from flashatlas.calibration.ranges import Pair, Range
from flashatlas.calibration.space import TRIALS, Parameter, number_of, word
from flashatlas.calibration.trials import TimeIsUp, Trials, study_of, trials
from flashatlas.inputs.drive import setting_list
from flashatlas.names import hint
from flashatlas.sweep.execution import Watcher, Where
from flashatlas.sweep.study import STORE

SCHEMA = "flashatlas.calibration/1"


@dataclass(frozen=True)
class Residual:
    """A quantity of the real drive beside the same of the calibrated one."""

    quantity: Quantity
    simulated: float
    noise: float
    """Standard deviation of the logarithm over seeds."""

    @property
    def ratio(self) -> float:
        """Simulated over measured."""
        return self.simulated / self.quantity.value


@dataclass(frozen=True)
class Found:
    """A parameter that was calibrated."""

    parameter: Parameter
    at: int
    """Index of its value."""
    started: Any
    """Its value in the drive to begin with."""
    range: Range | None
    """``None`` if the trials or the time did not suffice for ranges."""

    @property
    def value(self) -> Any:
        """The value that fits best."""
        return self.parameter.values[self.at]

    def started_text(self) -> str:
        """Return the value in the drive to begin with, in words."""
        if not self.parameter.is_ordered:
            return str(self.started)
        return word(self.parameter.key, self.started, number_of(self.started))

    def range_text(self) -> str:
        """Return the allowed values in words."""
        own, one = self.range, self.parameter
        if own is None:
            return "not determined"
        if own.values:
            said = " or ".join(one.word(n) for n in own.values)
            return f"any of {said}" if own.is_open_below and own.is_open_above else said
        low, high = one.word(own.low), one.word(own.high)
        if own.is_open_below and own.is_open_above:
            return f"anything from {low} to {high}"
        if own.is_open_below:
            return f"at most {high}"
        if own.is_open_above:
            return f"at least {low}"
        return f"{low} to {high}"


@dataclass
class Calibration:
    """The result of a calibration."""

    drive: str
    settings: list[str]
    measured: Sequence[Measurement]
    seed: int
    found: list[Found] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    residuals: list[Residual] = field(default_factory=list)
    breaks: list[tuple[str, float, float | None]] = field(default_factory=list)
    """Ends of levels of bandwidth logs in bytes: name, measured, simulated."""
    trials: int = 0
    infeasible: list[str] = field(default_factory=list)
    cut: str = ""
    """Why the calibration ended early; empty if it did not."""
    study: str = ""
    """``STORE:STUDY``."""

    @property
    def deviation(self) -> float:
        """The root of the mean square of the logarithms of all ratios."""
        return float(np.sqrt(np.mean([np.log(one.ratio) ** 2 for one in self.residuals])))

    @property
    def values(self) -> dict[str, Any]:
        """The values that were found, by key."""
        return {one.parameter.key: one.value for one in self.found}

    def sentences(self) -> list[str]:
        """Return what the measurements cannot tell, in words."""
        said = []
        for one in self.found:
            if one.range is None or one.range.is_told:
                continue
            what = "cannot be told from these measurements"
            if one.range.is_limited:
                what = f"has only {'an upper' if one.range.is_open_below else 'a lower'} limit"
            said.append(f"{one.parameter.key} {what}: {one.range_text()} fits as well")
        keys = [one.parameter.key for one in self.found]
        for pair in self.pairs:
            how = "grows" if pair.correlation > 0 else "shrinks"
            said.append(
                f"{keys[pair.first]} and {keys[pair.second]} cannot be told apart: the "
                f"measurements stay the same if one grows while the other {how} (correlation "
                f"{pair.correlation:+.2f})"
            )
        return said

    def preset(self) -> str:
        """Return the drive as the text of a drive file."""
        jobs = ", ".join(one.label for one in self.measured)
        sources = {
            one.parameter.key: f"calibrated to {jobs}: {one.range_text()}; {self.drive} has "
            f"{one.started_text()}"
            for one in self.found
        }
        summary = (
            f"{self.drive}, calibrated to measurements of {jobs}; root mean square deviation "
            f"{self.deviation:.1%}"
        )
        return preset(self.drive, self.settings, self.values, sources, summary)

    def to_json(self) -> dict[str, Any]:
        """Return the result for JSON."""
        return {
            "schema": SCHEMA,
            "drive": self.drive,
            "set": self.settings,
            "seed": self.seed,
            "trials": self.trials,
            "infeasible": len(self.infeasible),
            "cut": self.cut or None,
            "study": self.study,
            "deviation": self.deviation,
            "parameters": [_parameter_json(one) for one in self.found],
            "cannot_tell": self.sentences(),
            "pairs": [
                {
                    "keys": [self.found[n].parameter.key for n in (pair.first, pair.second)],
                    "correlation": pair.correlation,
                }
                for pair in self.pairs
            ],
            "residuals": [
                {
                    "name": one.quantity.name,
                    "unit": one.quantity.unit,
                    "measured": one.quantity.value,
                    "simulated": one.simulated,
                    "ratio": one.ratio,
                    "noise": one.noise,
                }
                for one in self.residuals
            ],
            "breaks": [
                {"name": name, "measured": real, "simulated": ours}
                for name, real, ours in self.breaks
            ],
        }


def _parameter_json(one: Found) -> dict[str, Any]:
    own: dict[str, Any] = {
        "key": one.parameter.key,
        "value": one.value,
        "started": one.started,
        "words": one.range_text(),
    }
    if one.range is not None:
        values = one.parameter.values
        own |= {
            "low": values[int(np.floor(one.range.low))],
            "high": values[int(np.ceil(one.range.high))],
            "open_below": one.range.is_open_below,
            "open_above": one.range.is_open_above,
            "told": one.range.is_told,
            "limited": one.range.is_limited,
        }
        if one.range.values:
            own["values"] = [values[n] for n in one.range.values]
    return own


def calibrate(
    measured: Sequence[Measurement],
    space: Sequence[Parameter],
    *,
    drive: str,
    settings: Sequence[str] = (),
    count: int = TRIALS,
    seed: int = 1,
    store: str | Path = STORE,
    name: str = "",
    jobs: int | None = None,
    seconds: float | None = None,
    watcher: Watcher | None = None,
) -> Calibration:
    """Find the values of parameters with which a simulated drive is like the measured one.

    Args:
        measured: The measurements.
        space: The parameters that may change.
        drive: The drive to begin with.
        settings: Parameters that stay, as ``key=value``.
        count: The largest number of trials.
        seed: The seed of the search and of the runs; further runs have the next seeds.
        store: Folder of the runs; runs in it are not repeated.
        name: Name of the study in the store; by default one that depends on the arguments.
        jobs: Number of runs at the same time.
        seconds: Time limit.
        watcher: Object that is told about the runs.

    Raises:
        InputError: A key is unknown, or the drive to begin with cannot run the job files.

    """
    settings = setting_list(settings)
    params = params_of(drive, settings)
    for one in space:
        if one.key not in params:
            raise InputError(
                f"--vary {one.key}: {drive} has no such parameter{hint(one.key, params)}; a key "
                "of a part that the drive does not use needs --set first"
            )
    result = Calibration(drive, settings, measured, seed)
    seeds = [seed + n for n in range(1 + fits.NOISE_SEEDS)]
    own = name or _name(result, space)
    study = study_of(
        measured, space, seeds=seeds, settings=_others(settings, space), name=own,
        store=str(store), drive=drive,
    )  # fmt: skip
    start = tuple(one.nearest(params[one.key]) for one in space)
    result.study = f"{store}:{own}"
    with trials(
        study, measured, space, where=Where(jobs=jobs), seconds=seconds, watcher=watcher
    ) as runs:
        fit = fits.begun(runs, start, count, seed)
        runs.told = lambda: {"calibration": {"best": runs.drive(fit.best.point)}}
        ranges: list[Range] | None = None
        try:
            fits.search(fit, seeds[1:])
            ranges = ends.found(fit)
            result.pairs = ends.pairs(fit)
        except TimeIsUp:
            result.cut = "the time was up"
        if fit.cut and not result.cut:
            result.cut = f"{count} trials did not suffice"
        runs.note()
        _take(result, fit, ranges, params)
        result.breaks = _breaks(runs, fit)
    return result


def _others(settings: Sequence[str], space: Sequence[Parameter]) -> list[str]:
    """Return the settings of keys that do not change; the others only say where to begin."""
    keys = {one.key for one in space}
    return [setting for setting in settings if setting.partition("=")[0].strip() not in keys]


def _name(result: Calibration, space: Sequence[Parameter]) -> str:
    """Return a name of the study that depends on everything but the number of trials."""
    what = [
        result.drive, result.settings, result.seed,
        [(str(one.job), one.precondition) for one in result.measured],
        [(one.key, list(map(str, one.values))) for one in space],
    ]  # fmt: skip
    digest = hashlib.sha256(json.dumps(what).encode()).hexdigest()
    return f"calibration-{digest[:8]}"


def _take(
    result: Calibration, fit: Fit, ranges: Sequence[Range] | None, params: Mapping[str, Any]
) -> None:
    best = fit.best
    assert best.residuals is not None
    result.trials, result.infeasible = fit.asked, fit.infeasible
    result.found = [
        Found(one, best.point[n], params[one.key], None if ranges is None else ranges[n])
        for n, one in enumerate(fit.trials.space)
    ]
    result.residuals = [
        Residual(quantity, quantity.value * float(np.exp(own)), float(noise))
        for quantity, own, noise in zip(
            fit.trials.quantities, best.residuals, fit.noise, strict=True
        )
    ]


def _breaks(runs: Trials, fit: Fit) -> list[tuple[str, float, float | None]]:
    found = []
    for one, result in zip(runs.measured, runs.results(fit.best.point), strict=True):
        found += one.breaks(result)
    return found
