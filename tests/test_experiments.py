"""Every experiment of the registry is whole."""

from __future__ import annotations

import importlib

import pytest
from conftest import ROOT
from flashatlas.reproduce.registry import EXPERIMENTS

FOLDER = ROOT / "python/flashatlas/reproduce"


def test_every_folder_is_registered():
    folders = {path.parent.name for path in FOLDER.glob("*/plan.py")}
    assert folders == {experiment.name.replace("-", "_") for experiment in EXPERIMENTS}


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda e: e.name)
def test_an_experiment_has_its_parts(experiment, cli):
    folder = f"flashatlas.reproduce.{experiment.name.replace('-', '_')}"
    assert callable(importlib.import_module(f"{folder}.plan").plan)
    assert callable(importlib.import_module(f"{folder}.tables").listings)
    assert callable(importlib.import_module(f"{folder}.page").page)
    assert (ROOT / "papers" / experiment.paper / "README.md").exists()
    assert f"flashatlas reproduce {experiment.name}" in experiment.help
    shown = cli("reproduce", experiment.name, "--help")
    assert shown.returncode == 0
    for option in experiment.options:
        assert f"--{option.name.replace('_', '-')}" in shown.stdout
