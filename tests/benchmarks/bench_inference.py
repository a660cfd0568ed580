"""Inference beside its peers, in one run: pseudo-label tests, bootstrap of the ECE, kernel test, KS and Kuiper.

    tests/benchmarks/install_peers.sh
    OMP_NUM_THREADS=1 python tests/benchmarks/bench_inference.py [--repeat 3]

CPU seconds, the best of the repeats; programs take turns, so that a busy machine slows all alike. pycalib's
pseudo-label test is timed on 20 draws and scaled up to 10,000: it takes minutes.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

import numpy as np
from arch.bootstrap import IIDBootstrap
from mapie.metrics.calibration import kolmogorov_smirnov_p_value, kuiper_p_value
from probcal.metrics import skce_test
from pycalib.metrics import classwise_ECE, conf_ECE, pECE

import calstat as cs

DRAWS, PEER_DRAWS = 10_000, 20


def network(n: int = 10_000, K: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities as sharp as those of an image network: one row in fourteen departs from its top label."""
    rng = np.random.default_rng(0)
    P = np.exp(rng.normal(0, 16.0, (n, K)))
    P /= P.sum(axis=1, keepdims=True)
    return (rng.random((n, 1)) > np.cumsum(P, axis=1)[:, :-1]).sum(axis=1), P


def binary(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    p = rng.beta(0.5, 1.0, n)
    return (rng.random(n) < p).astype(int), p


def numpy_ece(y: np.ndarray, p: np.ndarray) -> float:
    index = np.minimum((p * 10).astype(int), 9)
    return float(np.abs(np.bincount(index, y - p, 10)).sum() / y.size)


def seconds(run: Callable[[], object]) -> float:
    """CPU seconds of this process and of the workers that it started and waited for."""
    begin = sum(os.times()[:4])
    run()
    return sum(os.times()[:4]) - begin


def compare(
    title: str, ours: Callable[[], object], peer: Callable[[], object], scale: float, goal: float, k: int
) -> None:
    first = seconds(ours)
    # The clock ticks in hundredths of a second: short runs are repeated.
    times = max(1, int(0.5 / max(first, 0.01)))
    best = min(seconds(lambda: [ours() for _ in range(times)]) / times for _ in range(k))
    theirs = min(seconds(peer) for _ in range(k)) * scale
    print(f"{title}: calstat {best:.4f} (first call {first:.2f}), peer {theirs:.3f} CPU s: {theirs / best:,.0f} x")
    assert theirs / best >= goal, f"{title}: less than {goal:,} times as fast as its peer"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=3)
    k = parser.parse_args().repeat
    codes, P = network()
    print(f"mean top probability {P.max(axis=1).mean():.3f}")
    scale = DRAWS / PEER_DRAWS
    for name, metric, goal in (("confidence_ece", conf_ECE, 5000), ("classwise_ece", classwise_ECE, 60)):
        compare(
            f"pseudo-label {name}, 10,000 draws",
            lambda name=name: cs.pseudo_label_test(codes, P, name, bins=15, rng=1),
            lambda metric=metric: pECE(codes, P, samples=PEER_DRAWS, ece_function=metric, processes=1),
            scale,
            goal,
            k,
        )
    y, p = binary(10_000)
    compare(
        "bootstrap of the ECE, 1000 resamples",
        lambda: cs.bootstrap(cs.ece, y, p, n_resamples=1000, rng=1),
        lambda: IIDBootstrap(y, p, seed=1).apply(numpy_ece, 1000),
        1,
        5,
        k,
    )
    y, p = binary(2000)
    compare(
        "kernel test, 999 resamples",
        lambda: cs.kernel_test(y, p, n_resamples=999, rng=1),
        lambda: skce_test(y, p, n_boot=999),
        1,
        20,
        1,
    )
    y, p = binary(1_000_000)
    for name, ours, peer in (("KS", cs.ks, kolmogorov_smirnov_p_value), ("Kuiper", cs.kuiper, kuiper_p_value)):
        compare(
            f"{name} at a million rows",
            lambda ours=ours: ours(y, p),
            lambda peer=peer: peer(y, p),
            1,
            1,
            k,
        )


if __name__ == "__main__":
    main()
