"""Simulated write amplification against theory, and theory against published values."""

from __future__ import annotations

import math

import flashatlas
import pytest
from conftest import ONE_IN
from drawn import sample
from flashatlas import reproduce
from flashatlas.statistics import theory, theory_hot_cold

BLOCKS = 2000 if ONE_IN == 1 else 1000
"""Blocks of a simulated drive."""


@pytest.mark.parametrize("x", [-0.3678, -0.3, -0.1, -0.001])
def test_lambert_w_inverts_its_definition(x):
    w = theory.lambert_w0(x)
    assert w >= -1 and w * math.exp(w) == pytest.approx(x, rel=1e-12)


def test_fifo_solves_its_fixed_point():
    """An equivalent form of the model: x = exp(-(1 - x) / rho), A = 1 / (1 - x)."""
    for rho in (0.7, 0.8, 0.9):
        x = 1 - 1 / theory.fifo(rho, 64)
        assert x == pytest.approx(math.exp(-(1 - x) / rho), rel=1e-9)


def test_one_choice_is_random_and_many_are_greedy():
    for rho in (0.7, 0.9):
        assert theory.d_choices(rho, 64, 1) == pytest.approx(
            theory.random_victim(rho, 64), rel=1e-6
        )
        assert theory.d_choices(rho, 64, 10**6) == pytest.approx(theory.greedy(rho, 64), rel=3e-3)


@pytest.mark.parametrize(
    ("rho", "b", "d", "value"),
    # numerical solutions of the mean-field equations by an independent program, to four digits
    [
        (0.7, 64, 2, 2.4132),
        (0.8, 32, 5, 2.7678),
        (0.8, 128, 10, 2.7141),
        (0.9, 32, 2, 6.6931),
        (0.9, 128, 10, 5.1479),
    ],
)
def test_d_choices_agrees_with_an_independent_solution(rho, b, d, value):
    assert theory.d_choices(rho, b, d) == pytest.approx(value, abs=1e-4)


def test_trims_lower_the_utilisation():
    """The share of pages with data is the probability that a page's last request was no trim."""
    assert theory.utilisation(0.8, 0.25) == pytest.approx(0.6)
    for policy in ("greedy", "fifo", "random"):
        points = reproduce.theory([0.8], [32], [policy], trims=[0.1, 0.25], blocks=1000)
        for point in points:
            assert abs(point.error) < 0.01, point
        # without the model of trims, theory would be off by at least a quarter
        assert points[0].simulated < 0.8 * theory.MODELS[policy][0](0.8, 32)


def test_simulation_is_within_one_percent_of_theory():
    """Six policies, three utilisations, three block sizes.

    ``make test-full`` takes all. Other runs take every third policy, chosen by the commit, with one
    utilisation and one block size.
    """
    rhos, sizes = (0.7, 0.8, 0.9), (32, 64, 128)
    for number, policy in sample(list(enumerate(theory.MODELS)), 3):
        few = ([rhos[number % 3]], [sizes[(number + number // 3) % 3]])
        for point in reproduce.theory(
            *((rhos, sizes) if ONE_IN == 1 else few), [policy], blocks=BLOCKS
        ):
            assert abs(point.error) < 0.01, point


SKEW = theory_hot_cold.Skew(0.1, 0.9)


def test_without_a_difference_hot_and_cold_are_one():
    """If both parts are written alike, every model gives the result for uniform writes."""
    alike = theory_hot_cold.Skew(0.3, 0.3)
    for rho in (0.7, 0.9):
        assert theory_hot_cold.fifo(rho, 16, alike) == pytest.approx(theory.fifo(rho, 16), rel=1e-9)
        for d in (1, 2, 5):
            uniform = theory.d_choices(rho, 16, d)
            for model in (theory_hot_cold.d_choices, theory_hot_cold.d_choices_apart):
                assert model(rho, 16, alike, d) == pytest.approx(uniform, rel=1e-4), model


def test_one_choice_does_not_see_hot_pages_and_apart_is_better_than_mixed():
    """Random victims: 1 / (1 - rho), mixed or apart (Van Houdt 2013). If d > 1, apart is better."""
    for model in (theory_hot_cold.d_choices, theory_hot_cold.d_choices_apart):
        assert model(0.8, 16, SKEW, 1) == pytest.approx(5, rel=1e-4)
    mixed, apart = (
        [model(0.8, 16, SKEW, d) for d in (2, 5, 10)]
        for model in (theory_hot_cold.d_choices, theory_hot_cold.d_choices_apart)
    )
    assert mixed == sorted(mixed, reverse=True) and apart == sorted(apart, reverse=True)
    assert all(a < 0.8 * m for a, m in zip(apart, mixed, strict=True))
    # hot pages in the same blocks cost more than no hot pages at all
    assert mixed[2] > theory.d_choices(0.8, 16, 10)


def test_what_does_not_settle_is_an_error():
    with pytest.raises(ArithmeticError, match="d = 1000"):
        theory_hot_cold.d_choices(0.9, 8, SKEW, 1000)


@pytest.mark.long
def test_simulation_with_hot_pages_is_within_one_percent_of_theory():
    """``make test-full`` tries all models at three utilisations; other runs try a third at one."""
    rhos = (0.7, 0.8, 0.9)
    for number, policy in sample(list(enumerate(theory_hot_cold.MODELS)), 3):
        chosen = rhos if ONE_IN == 1 else [rhos[number % 3]]
        for point in reproduce.hot_cold(SKEW, chosen, [32], [policy], blocks=BLOCKS):
            assert abs(point.error) < 0.01, point


def test_hot_pages_are_described_by_two_shares(cli):
    for arguments, says in (
        (["--hot-space", "0.1"], "give both"),
        (["--hot-space", "1.5", "--hot-share", "0.9"], "--hot-space 1.5: a share lies between"),
        (["--hot-space", "0.1", "--hot-share", "0.9", "--trim", "0.1"], "no model has both"),
        (["--hot-space", "0.1", "--hot-share", "0.9", "--policy", "greedy"], "d = 5, apart"),
    ):
        done = cli("reproduce", "theory", *arguments)
        assert done.returncode == 2 and says in done.stderr


@pytest.mark.long
def test_sepbit_separates_what_dies_early():
    """Wang et al., FAST 2022: separation lowers the write amplification of skewed writes.

    It gains nothing for uniform writes.
    """
    drive = {"drive.channels": 1, "drive.ways": 1, "drive.blocks": 832, "drive.pages": 32}
    drive |= {"drive.logical_pages": 163840, "ftl.victim": "cost-benefit"}
    runs = [
        {"workload": f"{workload},requests=1000000,size=4KiB", "set": {"ftl.classifier": name}}
        for workload in ("zipf:theta=0.9", "uniform:read=0")
        for name in ("none", "sepbit")
    ]
    common = {"drive": "tlc-small", "set": drive, "precondition": "fill", "mode": "untimed"}
    skewed, separated, uniform, apart = (
        result.record["waf"] for result in flashatlas.compare(runs, warmup=500000, **common)
    )
    assert separated < 0.95 * skewed
    assert apart > 0.99 * uniform
