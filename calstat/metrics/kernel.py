"""Errors without bins that compare all pairs of rows through a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from calstat._input.validation import check_choice, check_fraction, check_sample
from calstat._typing import Label
from calstat.metrics._common import top_score
from calstat.metrics._kernel import kernel_error


def mmce(
    y: Any,
    p: Any,
    *,
    bandwidth: float = 0.2,
    type: Literal["confidence"] | None = None,  # noqa: A002
    freq_weights: Any = None,
    event: Label | None = None,
    classes: Sequence[Label] | None = None,
) -> float:
    r"""
    Maximum mean calibration error with the Laplace kernel.

    .. math:: \mathrm{MMCE}^2 = \frac{1}{n^2} \sum_{i,j} e_i e_j \exp(-\lvert r_i - r_j \rvert / h)

    Binary: r is the event's probability and e = y - r. Matrix: r is the top label's probability, and e is 1
    minus r where that label is right, minus r where it is wrong. Pairs i = j are included (a V-statistic).

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcomes.
    p : array_like of shape (n,), (n, 1), (n, 2) or (n, K)
        Probabilities of the event, or one column for each class. Two columns are read as binary, unless `type`
        is given.
    bandwidth : float, default 0.2
        The h of the formula, on the scale of the probabilities; positive and finite.
    type : {"confidence"}, optional
        Asks for the top label with two columns; with more there is no other reading.
    freq_weights : array_like of shape (n,), optional
        Weight k counts as k copies of the row.
    event : label, optional
        The outcome that `p` is the probability of; needed for strings.
    classes : sequence of K labels, optional
        The class of each column of a matrix.

    Returns
    -------
    float
        0 only if the residuals cancel at every probability. The diagonal alone makes it positive: under
        calibration its square is about the mean of p(1 - p), divided by n.

    Raises
    ------
    InputError
        If an argument is not as described; the message names it and the remedy.

    Notes
    -----
    After sorting, the sum is a prefix sum that decays: O(n log n) time and a few arrays of memory. `bootstrap` gives
    limits for the error without the pairs i = j.

    References
    ----------
    Kumar, A., Sarawagi, S. and Jain, U. (2018). Trainable calibration measures for neural networks from kernel
    mean embeddings. ICML. https://proceedings.mlr.press/v80/kumar18a.html

    Examples
    --------
    >>> import calstat as cs
    >>> round(cs.mmce([0, 0, 1, 1, 1], [0.25, 0.25, 0.55, 0.75, 0.75]), 4)
    0.1705

    Noise alone would give about 0.2 with so few rows: this is no sign of miscalibration.
    """
    bandwidth = check_fraction("bandwidth", bandwidth, high=np.inf)
    check_choice("type", type, (None, "confidence"))
    sample = check_sample(y, p, type=type, freq_weights=freq_weights, event=event, classes=classes)
    return kernel_error(*top_score(sample), bandwidth, sample.weights)
