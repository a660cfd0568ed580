"""Validation of a model on its own data: optimism by the bootstrap, and cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import pandas as pd

from calstat._input.validation import check_choice, check_count, check_probabilities, check_rng
from calstat._progress import progress_bar
from calstat._typing import ArrayLike, FloatArray, IntArray, Label, RNGLike
from calstat.diagnostics.validation_indexes import val_prob
from calstat.exceptions import DataWarning, InputError

Predict = Callable[[Any], ArrayLike]

# Chi-square statistics and p-values say nothing about a model on its own data, and are left out.
_INDEXES = [
    "Dxy",
    "C (ROC)",
    "R2",
    "D",
    "U",
    "Q",
    "Brier",
    "Intercept",
    "Slope",
    "Intercept (slope 1)",
    "Emax",
    "E90",
    "Eavg",
]


def validate(
    fit: Callable[[Any, Any], Predict],
    X: Any,
    y: ArrayLike,
    *,
    method: Literal["bootstrap", "cv"] = "bootstrap",
    n_resamples: int = 200,
    folds: int = 10,
    resamples: ArrayLike | None = None,
    event: Label | None = None,
    rng: RNGLike = None,
    progress: bool | None = None,
) -> pd.DataFrame:
    r"""
    Validation indexes of a model that was fitted on these rows, corrected for optimism.

    The bootstrap refits the model on resamples. How much better a refit looks on its resample than on the original
    rows is its optimism; the mean optimism is taken off the apparent index (Efron and Gong; Harrell). Cross-validation
    refits without each fold in turn and assesses the predictions for the rows left out, all together.

    Parameters
    ----------
    fit : callable
        ``fit(X_rows, y_rows)`` fits the model, with every step that used the outcome, and returns a function that gives
        the probability of the event for rows of X.
    X : DataFrame or array_like of shape (n, ...)
        Predictors, one row for each outcome; frames stay frames.
    y : array_like of shape (n,)
        Outcome of two labels.
    method : {"bootstrap", "cv"}
        Optimism bootstrap or cross-validation.
    n_resamples : int, default 200
        Resamples of the bootstrap.
    folds : int, default 10
        Folds of cross-validation; at most n.
    resamples : array_like of shape (B, n), optional
        Row numbers of each resample, instead of random ones.
    event : label, optional
        The label of the event where it is not clear from the labels.
    rng : None, int or numpy.random.Generator
        Source of randomness.
    progress : bool, optional
        Show the refits done on standard error, by tqdm, once they have taken two seconds. The default does so on a
        terminal where tqdm is installed.

    Returns
    -------
    DataFrame
        Indexed by the names of `val_prob`. Bootstrap: ``apparent``, ``training``, ``test``, ``optimism`` and
        ``corrected`` (means over the resamples that determine the index), and ``n``, how many do. Cross-validation:
        ``apparent`` and ``corrected``. There are no intervals: none is known here to hold its level for corrected
        indexes.

    Raises
    ------
    InputError
        For a bad argument.

    Warns
    -----
    DataWarning
        If resamples hold one outcome only; they are left out.

    Notes
    -----
    R2, D and Q are those of the predictions as they are; ``validate`` of R's rms takes R2 and D after recalibration.
    A slope corrected below 1 is the factor by which the log odds should be shrunk for new rows.

    References
    ----------
    Efron, B., Gong, G. (1983). A leisurely look at the bootstrap, the jackknife, and cross-validation. The American
    Statistician 37. https://doi.org/10.1080/00031305.1983.10483087
    Harrell, F. E. (2015). Regression Modeling Strategies, 2nd ed. https://doi.org/10.1007/978-3-319-19425-7

    Examples
    --------
    >>> import numpy as np
    >>> import statsmodels.api as sm
    >>> import calstat as cs
    >>> rng = np.random.default_rng(1)
    >>> X = sm.add_constant(rng.normal(size=(120, 6)))
    >>> y = (rng.random(120) < 1 / (1 + np.exp(-X[:, 1]))).astype(int)
    >>> def fit(X, y):
    ...     return sm.GLM(y, X, family=sm.families.Binomial()).fit().predict
    >>> table = cs.validate(fit, X, y, n_resamples=30, rng=1)
    >>> bool(table.loc["Slope", "corrected"] < table.loc["Slope", "apparent"])
    True

    On new rows the log odds of this model, with five predictors of noise, will be too extreme.
    """
    check_choice("method", method, ("bootstrap", "cv"))
    generator = check_rng(rng)
    labels = np.asarray(y)
    n = labels.size
    if np.shape(X)[:1] != (n,):
        raise InputError(f"`X` must have one row for each of the {n} outcomes in `y`; its shape is {np.shape(X)}.")
    everything = np.arange(n)

    def refit(rows: IntArray) -> Predict:
        return fit(_take(X, rows), _take(y, rows))

    def indexes(p: FloatArray, rows: IntArray) -> pd.Series:
        return val_prob(labels[rows], p, event=event)["estimate"].reindex(_INDEXES)

    apparent = indexes(_probability(refit(everything), X), everything)
    if method == "cv":
        p = np.empty(n)
        fold = generator.permutation(n) % check_count("folds", folds, 2, n)
        with progress_bar(folds, "refits without a fold", progress) as advance:
            for k in range(folds):
                left, kept = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
                p[left] = _probability(refit(kept), _take(X, left))
                advance(1)
        return pd.DataFrame({"apparent": apparent, "corrected": indexes(p, everything)})
    drawn = _resamples(resamples, n, check_count("n_resamples", n_resamples), generator)
    whole = np.array([np.unique(labels[rows]).size > 1 for rows in drawn])
    if not whole.all():
        warnings.warn(
            f"{int((~whole).sum())} of {whole.size} resamples hold one outcome only.", DataWarning, stacklevel=2
        )
    if not whole.any():
        raise InputError("no resample holds both outcomes: `y` has too few rows of one of them to refit a model.")
    training, test = [], []
    with progress_bar(int(whole.sum()), "refits on resamples", progress) as advance:
        for rows in drawn[whole]:
            predict = refit(rows)
            training.append(indexes(_probability(predict, _take(X, rows)), rows))
            test.append(indexes(_probability(predict, X), everything))
            advance(1)
    both = pd.DataFrame(training).to_numpy() + 0 * pd.DataFrame(test).to_numpy()
    table = pd.DataFrame({"apparent": apparent})
    table["training"] = _mean(both)
    table["test"] = _mean(pd.DataFrame(test).to_numpy() + 0 * both)
    table["optimism"] = table["training"] - table["test"]
    table["corrected"] = table["apparent"] - table["optimism"]
    table["n"] = np.isfinite(both).sum(axis=0)
    return table


def _take(table: Any, rows: IntArray) -> Any:
    """Return rows of a frame, a Series or an array by their place."""
    return table.iloc[rows] if isinstance(table, pd.DataFrame | pd.Series) else np.asarray(table)[rows]


def _probability(predict: Predict, X: Any) -> FloatArray:
    return check_probabilities(np.asarray(predict(X), dtype=np.float64).ravel(), "fit(X, y)(X)")


def _mean(values: FloatArray) -> FloatArray:
    """Mean over resamples of what is finite; NaN where nothing is."""
    known = np.isfinite(values)
    total = np.where(known, values, 0.0).sum(axis=0)
    return np.divide(total, known.sum(axis=0), out=np.full(total.shape, np.nan), where=known.any(axis=0))


def _resamples(given: ArrayLike | None, n: int, count: int, rng: np.random.Generator) -> IntArray:
    if given is None:
        return rng.integers(0, n, (count, n))
    rows = np.asarray(given)
    if rows.ndim != 2 or rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= n:
        raise InputError(f"`resamples` must be a matrix of row numbers from 0 to {n - 1}, one resample in each row.")
    return rows.astype(np.int64)
