"""Draw the pictures of the README and the start page: ``python docs/scripts/make_figures.py``."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

import calstat as cs
from calstat.datasets import load_heart_disease

OUT = Path(__file__).resolve().parents[1] / "_static"


def main() -> None:
    df = load_heart_disease()
    figure, axes = plt.subplots(1, 2, figsize=(11, 6), layout="constrained")
    for ax, column, name in zip(
        axes, ["p_logistic", "p_naive_bayes"], ["Logistic regression", "Naive Bayes"], strict=True
    ):
        cs.reliability_diagram(df["disease"], df[column], rng=0, ax=ax)
        ax.set_title(f"{name}\n{ax.get_title(loc='left')}", loc="left")
    OUT.mkdir(exist_ok=True)
    figure.savefig(OUT / "reliability.png", dpi=90)


if __name__ == "__main__":
    main()
