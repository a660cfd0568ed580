"""Draw the picture of why percentile intervals of the calibration error fail: forty samples, two intervals each."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import calstat as cs

SAMPLES, ROWS = 40, 1000


def intervals() -> dict[str, np.ndarray]:
    """Limits (samples, 2) by both methods; the predictions are calibrated, so the truth is 0."""
    rng = np.random.default_rng(3)
    limits: dict[str, list[tuple[float, float]]] = {"percentile": [], "inversion": []}
    for _ in range(SAMPLES):
        p = 1 / (1 + np.exp(-rng.normal(-0.4, 1.6, ROWS)))
        result = cs.bootstrap(cs.ece, rng.random(ROWS) < p, p, n_resamples=499, rng=rng)
        for method, found in limits.items():
            found.append(result.conf_int(method=method))
    return {method: np.array(found) for method, found in limits.items()}


def main() -> None:
    """Write docs/_static/ece_intervals.png."""
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.4), sharex=True, sharey=True, layout="constrained")
    for ax, (method, limits) in zip(axes, intervals().items(), strict=True):
        held = int((limits[:, 0] <= 0).sum())
        rows = np.arange(SAMPLES)
        ax.hlines(rows, limits[:, 0], limits[:, 1], color="#2b6ca3", lw=1.6)
        ax.plot(limits[:, 1], rows, "|", color="#2b6ca3", ms=4)
        ax.axvline(0, color="#c8642a", lw=1.6)
        ax.set(title=f"{method}: {held} of {SAMPLES} hold the truth", xlabel="Calibration error", yticks=[])
        ax.spines[["top", "right", "left"]].set_visible(False)
    axes[0].set_ylabel("Samples")
    figure.savefig(Path(__file__).parents[1] / "_static" / "ece_intervals.png", dpi=150)
    plt.close(figure)


if __name__ == "__main__":
    main()
