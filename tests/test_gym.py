"""Environments for learning: their questions, their rewards and the records of their runs."""

from __future__ import annotations

import warnings

import flashatlas
import flashatlas.gym as learning
import gymnasium
import nbformat
import numpy as np
import pytest
from conftest import ROOT
from flashatlas import parts
from gymnasium.utils.env_checker import check_env
from nbclient import NotebookClient

SHORT = "uniform:requests=3000,size=2KiB"


def played(env, choose, seed: int = 1) -> tuple[float, dict]:
    """Play an episode; return the sum of the rewards, and the info at the end."""
    observation, info = env.reset(seed=seed)
    total, done = 0.0, False
    while not done:
        observation, reward, done, _, info = env.step(choose(observation, info))
        total += reward
    env.close()
    return total, info


LOOKUPS = "zipf:requests=4000,size=2KiB,read=0.9,theta=0.9"


@pytest.mark.parametrize(
    ("name", "load"), [("Collection", SHORT), ("Placement", SHORT), ("Admission", LOOKUPS)]
)
def test_gymnasium_accepts_them(name, load):
    env = gymnasium.make(f"FlashAtlas/{name}-v0", workload=load)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # advice on ranges
        check_env(env.unwrapped, skip_render_check=True)
    env.close()


def test_the_first_choice_is_greedy():
    env = learning.Collection(workload=SHORT)
    total, info = played(env, lambda *_: 0)
    record = info["record"]
    assert record["oracle"]["violations"] == 0
    greedy = flashatlas.run(**{**learning.DEFAULTS, "workload": SHORT}, seed=record["seed"])
    assert info["waf"] == pytest.approx(greedy.waf, rel=0.03)
    # the reward counts every page that collection copied, in blocks
    copies = record["nand"]["programs"]["gc"]
    assert -total * 8 == pytest.approx(copies, abs=8 * 8)


def test_a_random_choice_costs_more():
    draw = np.random.default_rng(1)
    load = "uniform:requests=10000,size=2KiB"
    greedy, _ = played(learning.Collection(workload=load), lambda *_: 0)
    chance, _ = played(
        learning.Collection(workload=load), lambda _, info: draw.integers(info["choices"])
    )
    assert chance < 1.1 * greedy < 0


def test_a_seed_repeats_an_episode_and_another_does_not():
    records = [
        played(learning.Collection(workload=SHORT), lambda *_: 0, seed)[1]["record"]
        for seed in (1, 1, 2)
    ]
    assert records[0] == records[1] and records[0] != records[2]


def test_placement_of_hot_and_cold_saves_copies():
    load = "hotcold:requests=30000,size=2KiB"
    one, _ = played(learning.Placement(workload=load), lambda *_: 0)
    by_age, _ = played(learning.Placement(workload=load), lambda o, _: int(o[0] < 0.5))
    assert one < -10 and by_age > one / 2


def test_a_trained_policy_is_an_ordinary_one():
    seen = []

    def predict(observation):
        assert observation.shape == (learning.CANDIDATES * learning.FEATURES,)
        seen.append(observation)
        return 0

    parts.add(learning.as_victim(predict, "test-trained"))
    result = flashatlas.run(
        **{**learning.DEFAULTS, "workload": SHORT}, set={"ftl.victim": "test-trained"}
    )
    greedy = flashatlas.run(**{**learning.DEFAULTS, "workload": SHORT})
    assert result.waf == pytest.approx(greedy.waf, rel=0.03) and len(seen) > 100
    assert all(o.reshape(-1, 4)[:, :3].min() >= 0 for o in seen)


def of_map(record: dict) -> dict:
    return {key: record["map"][key] for key in ("hits", "update_hits", "misses", "loads")}


def test_a_map_page_that_always_stays_is_the_default():
    env = learning.Admission(workload=LOOKUPS)
    total, info = played(env, lambda *_: 1)
    found = of_map(info["record"])
    run = {**env.run, "seed": info["record"]["seed"]}
    assert found == of_map(flashatlas.run(**run).record)
    # entries that were found before the first question are in no reward
    assert 16 * total == pytest.approx(found["hits"] + found["update_hits"], abs=8)
    never, info = played(learning.Admission(workload=LOOKUPS), lambda *_: 0)
    found = of_map(info["record"])
    assert info["record"]["map"]["pages_left_out"] > 1000 and found["hits"] < found["misses"]
    assert 16 * never == pytest.approx(found["hits"] + found["update_hits"], abs=8)


def test_a_trained_policy_of_the_cache_sees_what_it_was_trained_on():
    def rule(observation, _=None):
        return int(observation[0] < 0.5 or observation[2] > 0.25)

    _, info = played(learning.Admission(workload=LOOKUPS), rule)
    parts.add(learning.as_cache_policy(rule, "test-admission"))
    run = learning.Admission(workload=LOOKUPS).run
    run["set"] = {**run["set"], "map.policy": "test-admission"}
    trained = flashatlas.run(**run, seed=info["record"]["seed"])
    assert of_map(trained.record) == of_map(info["record"])
    assert info["record"]["map"]["pages_left_out"] > 30


def test_several_run_side_by_side_and_can_be_left():
    several = learning.Several([learning.Collection(workload=SHORT) for _ in range(3)])
    first = several.reset(seed=5)
    assert len(first) == 3 and not np.array_equal(first[0][0], np.ones(32))
    for _ in range(20):
        steps = several.step([0, 1, 2])
        assert all(not done for _, _, done, _, _ in steps)
    several.close()  # in the middle of their runs


def test_what_is_wrong_with_the_run_is_said_at_once():
    with pytest.raises(TypeError, match="did you mean `workload`"):
        learning.Collection(worklod="uniform")
    env = learning.Collection(set={"ftl.vctim": "fifo"})
    with pytest.raises(flashatlas.InputError, match="no such key"):
        env.reset()


def test_the_notebook_trains_where_ppo_is_installed(tmp_path, monkeypatch):
    reason = "stable-baselines3 is not installed: pip install 'flashatlas[ppo]'"
    pytest.importorskip("stable_baselines3", reason=reason)
    pytest.importorskip("matplotlib", reason=reason)
    monkeypatch.setenv("STEPS", "4096")
    notebook = nbformat.read(ROOT / "examples/learn.ipynb", as_version=4)
    NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}}).execute()
    texts = [o.get("text", "") for cell in notebook.cells for o in cell.get("outputs", [])]
    assert any("cost-benefit" in text and "ppo" in text for text in texts)
    assert (tmp_path / "learned.png").stat().st_size > 5000
