"""Full maps of badly conditioned scores: probabilities of a tree, half of which are zero."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import log_softmax

import calstat as cs
from calstat._arrays.softmax import FullDesign, penalty_value

LEAVES = json.loads((Path(__file__).parent / "reference" / "multiclass" / "tree_leaves.json").read_text())
Y, P = np.array(LEAVES["y"]), np.array(LEAVES["leaves"])[LEAVES["leaf"]]
EPS = 1e-12  # the default of the model


def objective(results: cs.DirichletCalibration, penalty: cs.ODIR) -> float:
    """Mean log-loss and penalty from their formulae."""
    W, b = results.weights.to_numpy(), results.bias.to_numpy()
    K = len(b)
    loss = -log_softmax(np.log(np.maximum(P, EPS)) @ W.T + b, axis=1)[np.arange(len(Y)), Y].mean()
    return loss + penalty.lam / (K * (K - 1)) * ((W - np.diag(np.diag(W))) ** 2).sum() + penalty.mu / K * (b**2).sum()


@pytest.mark.parametrize("penalty", [cs.ODIR(1e-3, 1e-1), cs.ODIR(1e-5, 1e-1), cs.ODIR(1e-7, 10.0)], ids=str)
def test_the_optimum_is_reached(penalty: cs.ODIR) -> None:
    # The likelihood alone can do no better than the frequencies of the classes in each leaf; these penalties are so
    # weak that the optimum comes within 0.03 of what is possible. Steps that stop early were seen to be 0.2 above.
    counts = np.zeros((len(LEAVES["leaves"]), P.shape[1]))
    np.add.at(counts, (LEAVES["leaf"], Y), 1.0)
    rates = counts / counts.sum(axis=1, keepdims=True)
    floor = -np.log(rates[LEAVES["leaf"], Y]).mean()
    model = cs.DirichletCalibration(Y, P, penalty=penalty)
    results = model.fit(cov=False)
    assert results.converged
    assert results.gradient < 1e-8
    reached = objective(results, penalty)
    assert floor - 1e-9 < reached < floor + 0.03


def test_weaker_penalties_never_cost_more() -> None:
    values = []
    for lam in (1e-1, 1e-2, 1e-3, 1e-4, 1e-5):
        penalty = cs.ODIR(lam, 1e-1)
        values.append(objective(cs.DirichletCalibration(Y, P, penalty=penalty).fit(cov=False), penalty))
    assert (np.diff(values) < 1e-12).all()


def test_the_cure_for_separation_knows_of_the_penalty() -> None:
    p = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]] * 5)
    with pytest.warns(cs.exceptions.SeparationWarning, match=r"no standard error\. Use a penalty\."):
        cs.DirichletCalibration([0, 1, 2] * 5, p).fit(cov=False)
    with pytest.warns(cs.exceptions.SeparationWarning, match="as ODIR leaves the diagonal"):
        cs.DirichletCalibration([0, 1, 2] * 5, p, penalty=cs.ODIR(0.1)).fit(cov=False)


def test_a_penalty_that_overflows_does_so_in_silence() -> None:
    design = FullDesign(features=np.ones((4, 2)), codes=np.array([0, 1]), weights=None, n_classes=3)
    far = np.eye(3, 4, k=1) * 1e200
    assert not np.isfinite(penalty_value(design, cs.ODIR(0.1).quadratic(3), far))  # and no warning
