"""Is the paper's network calibrated, before and after a map? Writes a table of pseudo-label tests.

    python docs/scripts/cifar_pseudo_label.py resnet110_c10.npz --out docs/_tables/cifar_pseudo_label.md

The file holds the logits and labels of the ResNet-110 of Kull et al. (2019) on CIFAR-10, as the arrays val_logits,
val_labels, test_logits and test_labels; tests/reference/multiclass has a copy. Maps are fitted on the 5000 validation
rows, the tests are made on the 10,000 test rows, with 15 bins and 10,000 draws.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import calstat as cs

DRAWS, BINS = 10_000, 15
GRID = [cs.ODIR(10.0**lam, 10.0**mu) for lam in range(-3, 3) for mu in range(-5, 2)]


def predictions(data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the test probabilities: as they are, after temperature scaling, after Dirichlet calibration."""
    y, z, new = data["val_labels"].astype(int), data["val_logits"].astype(float), data["test_logits"].astype(float)
    plain = np.exp(new - new.max(axis=1, keepdims=True))
    dirichlet = cs.DirichletCalibration(y, z, scores="logit", eps=2.3e-308)
    return {
        "as they are": plain / plain.sum(axis=1, keepdims=True),
        "temperature scaling": cs.TemperatureScaling(y, z).fit().predict(new),
        "Dirichlet, ODIR": dirichlet.fit_cv(GRID, folds=5, cov=False).predict(new),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logits", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    data = dict(np.load(options.logits))
    labels = data["test_labels"].astype(int)
    lines = [
        "| probabilities | error | observed | expected if calibrated | p | classes with Holm's p < 0.05 |",
        "|---|---|---|---|---|---|",
    ]
    for name, P in predictions(data).items():
        for statistic in ("confidence_ece", "classwise_ece"):
            test = cs.pseudo_label_test(labels, P, statistic, bins=BINS, n_resamples=DRAWS, rng=1)
            classes = "" if test.by_class is None else f"{(test.by_class['pvalue_holm'] < 0.05).sum()} of {P.shape[1]}"
            lines.append(
                f"| {name} | {statistic} | {test.statistic:.4f} | {test.expected:.4f} | {test.pvalue:.2g} | {classes} |"
            )
            print(lines[-1], flush=True)
    options.out.write_text("\n".join([*lines, ""]))


if __name__ == "__main__":
    main()
