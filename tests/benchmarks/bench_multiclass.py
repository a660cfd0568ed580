"""Softmax maps beside dirichletcal, scikit-learn and statsmodels, on the same objective and in one run.

    tests/benchmarks/install_peers.sh
    OMP_NUM_THREADS=1 python tests/benchmarks/bench_multiclass.py [--large] [--logits FILE.npz]

CPU seconds, the best of the repeats; programs take turns, so that a busy machine slows all alike. "excess" is how far
the objective that a program returns lies above ours. ``--large`` adds 100 classes (minutes, by the peers) and 1000.
``--logits`` fits Dirichlet calibration with ODIR to a file of network logits (`val_logits`, `val_labels`).
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
import warnings
from collections.abc import Callable

import numpy as np
import statsmodels.api as sm
from dirichletcal.calib.fulldirichlet import FullDirichletCalibrator
from scipy import special
from sklearn.calibration import _TemperatureScaling  # the program behind method="temperature"
from sklearn.linear_model import LogisticRegression

import calstat as cs
from calstat._arrays.softmax import FullDesign, evaluate
from calstat._arrays.softmax_solver import fit_temperature

Program = Callable[[], object]


def sample(K: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(K, 0.3), size=n).clip(1e-12)
    p /= p.sum(axis=1, keepdims=True)
    q = special.softmax(0.6 * np.log(p), axis=1)
    return (q.cumsum(axis=1)[:, :-1] < rng.random((n, 1))).sum(axis=1), p


def race(title: str, programs: dict[str, Program], repeat: int) -> dict[str, object]:
    """Let programs take turns; print the best CPU seconds of each, and ratios to the first."""
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    last: dict[str, object] = {}
    for _ in range(repeat):
        for name, program in programs.items():
            start = time.process_time()
            last[name] = program()
            seconds[name].append(time.process_time() - start)
    base = min(next(iter(seconds.values())))
    print(f"\n{title}")
    for name, taken in seconds.items():
        print(f"  {name:<44} {min(taken):9.4f} s {min(taken) / base:9.1f} x ours", flush=True)
    return last


def objective(y: np.ndarray, p: np.ndarray, theta: np.ndarray, penalty: cs.L2 | cs.ODIR) -> float:
    K = p.shape[1]
    features = np.vstack([np.log(p).T, np.ones(len(y))])
    design = FullDesign(features=features, codes=y, weights=None, n_classes=K)
    return evaluate(design, penalty.quadratic(K), theta).objective


def ours(y: np.ndarray, p: np.ndarray, penalty: cs.L2 | cs.ODIR | None, *, cov: bool = False) -> np.ndarray:
    res = cs.DirichletCalibration(y, p, penalty=penalty).fit(cov=cov)
    return res.theta


def dirichletcal(y: np.ndarray, p: np.ndarray, penalty: cs.ODIR) -> np.ndarray:
    model = FullDirichletCalibrator(reg_lambda=penalty.lam, reg_mu=penalty.mu, reg_norm=True, ref_row=False)
    model.fit(p, y)
    return np.asarray(model.calibrator_.weights_)


def sklearn(y: np.ndarray, p: np.ndarray, penalty: cs.L2, solver: str) -> np.ndarray:
    C = 1.0 / (2.0 * len(y) * penalty.lam)
    model = LogisticRegression(C=C, solver=solver, tol=1e-8, max_iter=20_000).fit(np.log(p), y)
    return np.column_stack([model.coef_, model.intercept_])


def mnlogit(y: np.ndarray, p: np.ndarray) -> np.ndarray:
    x = np.column_stack([np.log(p), np.ones(len(y))])
    res = sm.MNLogit(y, x).fit(disp=0)
    return np.asarray(res.bse)


def temperatures(K: int, n: int, repeat: int) -> None:
    y, p = sample(K, n)
    z = np.log(p)
    columns = np.ascontiguousarray(z.T)
    found = race(
        f"temperature, K = {K}, n = {n}",
        {
            "calstat, arrays": lambda: 1.0 / fit_temperature(columns, y, None).inverse,
            "calstat, model with inference": lambda: cs.TemperatureScaling(y, z).fit().temperature,
            "scikit-learn": lambda: 1.0 / _TemperatureScaling().fit(z, y).beta_,
        },
        repeat,
    )
    exact = float(found["calstat, arrays"])  # type: ignore[arg-type]
    print(f"  scikit-learn's T is {abs(float(found['scikit-learn']) - exact):.1e} off")  # type: ignore[arg-type]


def full_maps(K: int, n: int, solver: str, repeat: int) -> None:
    y, p = sample(K, n)
    odir, ridge = cs.ODIR(0.1, 0.1), cs.L2(1e-3, intercept=False)
    found = race(
        f"Dirichlet calibration, ODIR, K = {K}, n = {n}",
        {"calstat": lambda: ours(y, p, odir), "dirichletcal": lambda: dirichletcal(y, p, odir)},
        repeat,
    )
    values = {name: objective(y, p, np.asarray(theta), odir) for name, theta in found.items()}
    print(f"  excess of dirichletcal {values['dirichletcal'] - values['calstat']:.1e}")
    name = f"scikit-learn, {solver}"
    found = race(
        f"Dirichlet calibration, L2, K = {K}, n = {n}",
        {"calstat": lambda: ours(y, p, ridge), name: lambda: sklearn(y, p, ridge, solver)},
        repeat,
    )
    values = {key: objective(y, p, np.asarray(theta), ridge) for key, theta in found.items()}
    print(f"  excess of scikit-learn {values[name] - values['calstat']:.1e}")


def limit(K: int, n: int) -> None:
    """The bare cost of ten Hessian products, a tenth or so of a fit: two matrix products each."""
    a, b = np.ones((K, K + 1)), np.ones((K + 1, n))

    def products() -> None:
        for _ in range(10):
            (a @ b) @ b.T

    race(f"twenty matrix products, K = {K}, n = {n}", {"numpy": products}, 5)


def thousand_classes() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(size=(20_000, 1000)) * 2.0
    y = np.concatenate([np.arange(1000), rng.integers(0, 1000, 19_000)])
    z[np.arange(20_000), y] += 2.0 + 4.0 * rng.random(20_000)
    for name, model in (("temperature", cs.TemperatureScaling(y, z)), ("vector", cs.VectorScaling(y, z))):
        tracemalloc.start()
        start = time.process_time()
        res = model.fit()
        seconds, peak = time.process_time() - start, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        print(f"\n{name} scaling, K = 1000, n = 20,000: {seconds:.1f} s, converged: {res.converged}")
        print(f"  peak memory above the input: {peak / z.nbytes:.1f} arrays of n K doubles")


def real_logits(path: str) -> None:
    data = np.load(path)
    y, z = data["val_labels"].astype(int), data["val_logits"].astype(float)
    for strength in (10.0, 1.0, 0.1, 0.01):
        start = time.process_time()
        res = cs.DirichletCalibration(y, z, scores="logit", penalty=cs.ODIR(strength)).fit(cov=False)
        seconds = time.process_time() - start
        print(
            f"  ODIR({strength:g}): {seconds:.2f} s, gradient {res.gradient:.1e}, converged {res.converged}", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--logits")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")  # the peers' remarks on their optimisers
    temperatures(10, 10_000, arguments.repeat)
    temperatures(100, 5000, arguments.repeat)
    full_maps(10, 5000, "newton-cholesky", arguments.repeat)
    y, p = sample(10, 5000)
    race(
        "unpenalised map with its covariance, K = 10, n = 5000",
        {"calstat": lambda: ours(y, p, None, cov=True), "statsmodels MNLogit": lambda: mnlogit(y, p)},
        arguments.repeat,
    )
    limit(10, 5000)
    if arguments.large:
        full_maps(100, 5000, "lbfgs", 1)
        limit(100, 5000)
        thousand_classes()
    if arguments.logits:
        print(f"\n{arguments.logits}")
        real_logits(arguments.logits)


if __name__ == "__main__":
    main()
