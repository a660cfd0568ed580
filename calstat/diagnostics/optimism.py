"""Validation of a model on its own data: optimism by the bootstrap, and cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from calstat._input.validation import (
    align,
    as_float,
    check_alpha,
    check_binary,
    check_choice,
    check_count,
    check_probabilities,
    check_rng,
    check_score_matrix,
)
from calstat._progress import progress_bar
from calstat._typing import ArrayLike, FloatArray, IntArray, Label, RNGLike
from calstat.diagnostics.validation_indexes import index_rows
from calstat.exceptions import DataWarning, InputError
from calstat.metrics import log_loss

Predict = Callable[[Any], ArrayLike]
IntervalMethod = Literal["optimism", "location_shifted", "two_stage"]

_EPS = 1e-15  # as in `val_prob`

# Chi-square statistics and p-values say nothing about a model on its own data, and are left out.
INDEXES = (
    "Dxy",
    "C (ROC)",
    "R2",
    "D",
    "U",
    "Q",
    "Brier",
    "Log loss",
    "Intercept",
    "Slope",
    "Intercept (slope 1)",
    "Emax",
    "E90",
    "Eavg",
)
_SMOOTH = ("Emax", "E90", "Eavg")
_UNHELD = ("R2", "U", "Q")
# The likelihood equations fix these on the rows of the fit, so that their apparent values do not vary.
_FIXED = ("Intercept", "Slope", "Intercept (slope 1)")
_INTERCEPTS = ("Intercept", "Intercept (slope 1)")
_EVEN = 1e-6  # distance of a rate from even below which it is
# Scales on which the spread of an index depends little on its value, and back. All are finite at the ends.
_SCALES: dict[str, tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]]] = {
    "Dxy": (np.arcsin, lambda z: np.sin(np.clip(z, -np.pi / 2, np.pi / 2))),
    "C (ROC)": (
        lambda c: np.arcsin(2 * c - 1),
        lambda z: (1 + np.sin(np.clip(z, -np.pi / 2, np.pi / 2))) / 2,
    ),
    "Brier": (np.sqrt, lambda z: np.maximum(z, 0) ** 2),
    "Log loss": (np.sqrt, lambda z: np.maximum(z, 0) ** 2),
}


def validate(
    fit: Callable[[Any, Any], Predict],
    X: Any,
    y: ArrayLike,
    *,
    method: Literal["bootstrap", "cv"] = "bootstrap",
    n_resamples: int = 200,
    folds: int = 10,
    resamples: ArrayLike | None = None,
    ci_method: IntervalMethod | None = "optimism",
    alpha: float = 0.05,
    n_inner: int = 50,
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
        the probability of the event for m rows of X: (m,), (m, 1), or (m, 2) with one column for each label. These
        are told apart by their names where they bear the labels, and are else in sorted order, as ``predict_proba``
        of scikit-learn has them.
    X : DataFrame or array_like of shape (n, ...)
        Predictors, one row for each outcome; frames stay frames.
    y : array_like of shape (n,)
        Outcome of two labels. A Series is aligned with a frame X by index.
    method : {"bootstrap", "cv"}
        Optimism bootstrap or cross-validation.
    n_resamples : int, default 200
        Resamples of the bootstrap.
    folds : int, default 10
        Folds of cross-validation; at most n.
    resamples : array_like of shape (B, n), optional
        Row numbers of X for each resample, instead of random ones.
    ci_method : {"optimism", "location_shifted", "two_stage"} or None
        Intervals of the bootstrap, see the notes. Only "two_stage" needs more refits, n_resamples times `n_inner`.
    alpha : float, default 0.05
        One minus the confidence level.
    n_inner : int, default 50
        Resamples of each resample that "two_stage" refits the model on.
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
        Indexed by the names of `val_prob` and "Log loss". Bootstrap: ``apparent``, ``training``, ``test``,
        ``optimism`` and ``corrected`` (means over the resamples that determine the index), and ``n``, how many do.
        Cross-validation: ``apparent`` and ``corrected``. Both: ``ci_low`` and ``ci_high``, NaN where there is no
        interval, and ``ci_method``, the method of the interval or the reason why there is none.

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
    A slope corrected below 1 is the factor by which the log odds should be shrunk for new rows. Rows are drawn one by
    one; there are no weights.

    The intervals are for the index that *this* model has on new rows of the same population. Let A be the apparent
    index, T that of a refit on its resample, S that of the refit on the original rows, and O the mean of T - S.

    - "optimism", the default: refits stand to the original rows as the model stands to the population, so that A less
      the index in the population has the law of T - S, and the limits are A less its upper and lower quantiles (the
      basic bootstrap, applied to the error of an apparent index). For C and Dxy this is done on the scale arcsin(Dxy),
      for the Brier score and the log-loss on that of their roots, where the spread depends least on the value. The two
      distances d of the limits of an intercept from A become (1 - exp(-k d)) / k with k = 1 - 2 rate, which allows for
      how the number of events varies; those of D are made equal around the median.
    - "location_shifted" (Noma et al.): quantiles of T, less O.
    - "two_stage" (Noma et al.): quantiles of T - O', where O' is the mean optimism of `n_inner` refits on resamples of
      the resample.

    In simulated samples of logistic models (100 to 1000 rows, 5 to 20 predictors, events of 10 to 50%) the first held
    the truth in 93 to 99% from 300 rows on, and in 91% and more with 100 rows and ten events among them.
    The published methods are given for comparison. Location-shifted limits held it less often (they are centred at A),
    two-stage ones nearly as often at `n_inner` times the cost. Both have no limits for slope and intercepts, which a
    maximum likelihood fit has constant on its own rows. The documentation tabulates all coverages ("What was
    measured").

    Emax, E90 and Eavg have no interval: they are bounded by 0, and no method is known here to hold its level near it.
    R2, U and Q have none because no method held its level where the fit was penalised. Nor have cross-validated
    indexes: how the predictions of several models vary over rows says too little about the slope of this one.

    References
    ----------
    Efron, B., Gong, G. (1983). A leisurely look at the bootstrap, the jackknife, and cross-validation. The American
    Statistician 37. https://doi.org/10.1080/00031305.1983.10483087
    Harrell, F. E. (2015). Regression Modeling Strategies, 2nd ed. https://doi.org/10.1007/978-3-319-19425-7
    Noma, H., Shinozaki, T., Iba, K., Teramukai, S., Furukawa, T. A. (2021). Confidence intervals of prediction accuracy
    measures for multivariable prediction models based on the bootstrap-based optimism correction methods. Statistics in
    Medicine 40. https://doi.org/10.1002/sim.9148
    Davison, A. C., Hinkley, D. V. (1997). Bootstrap Methods and their Application, sections 5.2 and 6.4.
    https://doi.org/10.1017/CBO9780511802843

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
    >>> table = cs.validate(fit, X, y, n_resamples=50, rng=1)
    >>> table.loc[["Slope", "Brier"], ["apparent", "corrected", "ci_low", "ci_high"]].astype(float).round(2)
           apparent  corrected  ci_low  ci_high
    Slope       1.0       0.81    0.53     1.49
    Brier       0.2       0.22    0.19     0.28

    With five predictors of noise, the log odds of this model will probably be too extreme on new rows: a slope of 0.81
    is expected. The interval says that they need not be.
    """
    check_choice("method", method, ("bootstrap", "cv"))
    check_choice("ci_method", ci_method, ("optimism", "location_shifted", "two_stage", None))
    level, inner = check_alpha(alpha), check_count("n_inner", n_inner)
    generator = check_rng(rng)
    model = _model(fit, X, y, event)
    n = model.y.size
    apparent = model.assess(model.predict(np.arange(n), X), np.arange(n))
    if method == "cv":
        fold = generator.permutation(n) % check_count("folds", folds, 2, n)
        return _cross_validated(model, apparent, fold, progress)
    drawn = _resamples(resamples, n, check_count("n_resamples", n_resamples), generator)
    kept = model.whole(drawn)
    if len(kept) < len(drawn):
        lost = len(drawn) - len(kept)
        warnings.warn(f"{lost} of {len(drawn)} resamples hold one outcome only.", DataWarning, stacklevel=2)
    if not len(kept):
        raise InputError("no resample holds both outcomes: `y` has too few rows of one of them to refit a model.")
    inner = inner if ci_method == "two_stage" else 0
    with progress_bar(len(kept) * (1 + inner), "refits on resamples", progress) as advance:
        values = _refits(model, np.arange(n), kept, advance)
        spread = values[:, 0] - _inner_optimism(model, kept, inner, generator, advance) if inner else values[:, 0]
    return _corrected(apparent, values, spread, ci_method, level, float(model.y.mean()))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    """What is refitted on rows of `X` and `labels`; `y` holds the n outcomes as 0.0 and 1.0, of `event` 1.0."""

    fit: Callable[[Any, Any], Predict]
    X: Any
    labels: Any
    y: FloatArray
    event: Label
    nonevent: Label

    def predict(self, rows: IntArray, wanted: Any) -> FloatArray:
        """Probabilities of `wanted`, rows of X, by the model fitted on some rows."""
        return self._of_event(self.fit(_take(self.X, rows), _take(self.labels, rows))(wanted), np.shape(wanted)[0])

    def _of_event(self, given: Any, m: int) -> FloatArray:
        """Probabilities (m,) of the event among what a model gave."""
        name = "fit(X, y)(X)"
        p = as_float(given, name)
        if p.shape == (m, 2):
            labels = [self.event, self.nonevent]
            named = list(given.columns) if isinstance(given, pd.DataFrame) else []
            # A label made up for an outcome that does not occur is a string, which numbers cannot be compared with.
            order = named if set(named) == set(labels) else sorted(labels, key=lambda v: (isinstance(v, str), v))
            return check_score_matrix(p, "probability", name)[:, order.index(self.event)]
        if p.shape not in {(m,), (m, 1)}:
            raise InputError(
                f"`{name}` must give the probability of the event for each of the {m} rows of X; its shape is "
                f"{p.shape}. Return an array of shape ({m},), or ({m}, 2) with a column for each label."
            )
        return check_probabilities(p.reshape(m), name)

    def assess(self, p: FloatArray, rows: IntArray) -> FloatArray:
        """INDEXES of the predictions p (n,) on some rows."""
        sample = check_binary(self.y[rows], p[rows])
        found = {name: row[0] for name, row in index_rows(sample, 0.05, _EPS).items()}
        found["Log loss"] = log_loss(sample.y, sample.p, eps=_EPS)
        return np.array([found[name] for name in INDEXES])

    def whole(self, drawn: IntArray) -> IntArray:
        """Those of the resamples (B, n) that hold both outcomes."""
        events = self.y[drawn].sum(axis=1)
        return drawn[(events > 0) & (events < drawn.shape[1])]


def _model(fit: Callable[[Any, Any], Predict], X: Any, y: ArrayLike, event: Label | None) -> _Model:
    n = len(np.asarray(y))
    if np.shape(X)[:1] != (n,):
        raise InputError(f"`X` must have one row for each of the {n} outcomes in `y`; its shape is {np.shape(X)}.")
    _, (X, y) = align(X=X, y=y)
    sample = check_binary(y, np.full(n, 0.5), event=event)
    return _Model(fit=fit, X=X, labels=y, y=sample.y, event=sample.event, nonevent=sample.nonevent)


def _refits(model: _Model, base: IntArray, drawn: IntArray, advance: Callable[[int], object]) -> FloatArray:
    """Indexes (B, 2, k) of refits on the resamples `drawn` of `base`: on the resample, and on `base`.

    Both are NaN where either is not determined.
    """
    values = np.empty((len(drawn), 2, len(INDEXES)))
    for b, rows in enumerate(drawn):
        p = model.predict(rows, model.X)
        values[b] = model.assess(p, rows), model.assess(p, base)
        advance(1)
    return np.where(np.isfinite(values).all(axis=1, keepdims=True), values, np.nan)


def _inner_optimism(
    model: _Model, drawn: IntArray, inner: int, rng: np.random.Generator, advance: Callable[[int], object]
) -> FloatArray:
    """Mean optimism (B, k) of refits on `inner` resamples of each of the resamples `drawn`."""
    optimism, lost = np.empty((len(drawn), len(INDEXES))), 0
    for b, base in enumerate(drawn):
        kept = model.whole(base[rng.integers(0, base.size, (inner, base.size))])
        optimism[b] = _mean(-np.diff(_refits(model, base, kept, advance), axis=1)[:, 0])
        lost += inner - len(kept)
    if lost:
        total = inner * len(drawn)
        warnings.warn(f"{lost} of {total} resamples of resamples hold one outcome only.", DataWarning, stacklevel=3)
    return optimism


def _corrected(
    apparent: FloatArray,
    values: FloatArray,
    spread: FloatArray,
    ci_method: IntervalMethod | None,
    alpha: float,
    rate: float,
) -> pd.DataFrame:
    table = pd.DataFrame({"apparent": apparent}, index=pd.Index(INDEXES))
    table["training"], table["test"] = _mean(values[:, 0]), _mean(values[:, 1])
    table["optimism"] = table["training"] - table["test"]
    table["corrected"] = table["apparent"] - table["optimism"]
    table["n"] = np.isfinite(values[:, 0]).sum(axis=0)
    limits = [
        optimism_interval(name, ci_method, apparent[j], values[:, 0, j], values[:, 1, j], spread[:, j], alpha, rate)
        for j, name in enumerate(INDEXES)
    ]
    table[["ci_low", "ci_high", "ci_method"]] = pd.DataFrame(limits, index=table.index)
    return table


def optimism_interval(
    name: str,
    ci_method: IntervalMethod | None,
    apparent: float,
    training: FloatArray,
    test: FloatArray,
    spread: FloatArray,
    alpha: float,
    rate: float,
) -> tuple[float, float, str]:
    """Limits of one index, and their method or the reason why there are none.

    `training` and `test` (B,) are the index of refits on their resamples and on the original rows, NaN where it is not
    determined, `spread` (B,) is what "two_stage" takes quantiles of, and `rate` is the share of events.
    """
    known = np.isfinite(training) & np.isfinite(spread)
    reason = _no_interval(name, ci_method, int(known.sum()), alpha)
    if reason is not None or ci_method is None:
        return np.nan, np.nan, f"none: {reason}"
    there, back = _SCALES.get(name, (np.asarray, np.asarray))
    tails = np.array([alpha / 2, 1 - alpha / 2])
    if ci_method == "optimism":
        optimism = there(training[known]) - there(test[known])
        shifts = -_quantiles(optimism, tails)[::-1]
        if name in _INTERCEPTS:
            shifts = _even_shifts(shifts, rate)
        elif name == "D":
            # Its resamples are skewed, and more so than its errors.
            shifts = -np.median(optimism) + np.ptp(shifts) * np.array([-0.5, 0.5])
        low, high = back(there(np.asarray(apparent)) + shifts)
    elif ci_method == "location_shifted":
        low, high = _quantiles(training[known], tails) - np.mean(training[known] - test[known])
    else:
        low, high = _quantiles(spread[known], tails)
    return float(low), float(high), ci_method


def _even_shifts(shifts: FloatArray, rate: float) -> FloatArray:
    """Limits of an intercept's shift from quantiles of it over resamples: (1 - exp(-k s)) / k with k = 1 - 2 rate.

    A model fitted to N events where mu were to be expected is off by log(mu / N), and refits by log(N / N*). N being
    Poisson, the limits of the first are about plus and minus z / sqrt(N), the quantiles of the second
    -log(1 -+ z / sqrt(N)): too near below and too far above. Rare non-events are the mirror image, and at a rate of a
    half both sides are alike.
    """
    k = 1 - 2 * rate
    with np.errstate(over="ignore"):  # no limit, where refits are without bounds on that side
        return np.asarray(-np.expm1(-k * shifts) / k) if abs(k) > _EVEN else shifts


def _no_interval(name: str, ci_method: IntervalMethod | None, count: int, alpha: float) -> str | None:
    """Return the reason why an index has no interval."""
    if ci_method is None:
        return "none was asked for"
    if name in _SMOOTH:
        return "bounded by 0, no method is known to hold its level near it"
    if name in _UNHELD:
        return "no method holds its level for penalised fits"
    if name in _FIXED and ci_method != "optimism":
        return f"{ci_method} intervals leave out how it varies between models"
    needed = int(np.ceil(2 / alpha - 1 - 1e-9))
    return f"takes {needed} resamples that determine it, {count} do" if count < needed else None


def _quantiles(draws: FloatArray, tails: FloatArray) -> FloatArray:
    """Quantiles between which one more draw falls with the given probability."""
    return np.quantile(draws, tails, method="weibull")


def _cross_validated(model: _Model, apparent: FloatArray, fold: IntArray, progress: bool | None) -> pd.DataFrame:
    """Assess the predictions for the rows of each fold (n,) by the model without them."""
    p, folds = np.empty(fold.size), int(fold.max()) + 1
    with progress_bar(folds, "refits without a fold", progress) as advance:
        for k in range(folds):
            left = np.flatnonzero(fold == k)
            p[left] = model.predict(np.flatnonzero(fold != k), _take(model.X, left))
            advance(1)
    table = pd.DataFrame({"apparent": apparent}, index=pd.Index(INDEXES))
    table["corrected"] = model.assess(p, np.arange(fold.size))
    return table.assign(ci_low=np.nan, ci_high=np.nan, ci_method="none: cross-validation gives none")


def _take(table: Any, rows: IntArray) -> Any:
    """Return rows of a frame, a Series or an array by their place."""
    return table.iloc[rows] if isinstance(table, pd.DataFrame | pd.Series) else np.asarray(table)[rows]


def _mean(values: FloatArray) -> FloatArray:
    """Mean over resamples of what is finite; NaN where nothing is."""
    known = np.isfinite(values)
    total = np.where(known, values, 0.0).sum(axis=0)
    return np.divide(total, known.sum(axis=0), out=np.full(total.shape, np.nan), where=known.any(axis=0))


def _resamples(given: ArrayLike | None, n: int, count: int, rng: np.random.Generator) -> IntArray:
    if given is None:
        return rng.integers(0, n, (count, n))
    rows = np.asarray(given)
    if rows.ndim != 2 or rows.shape[1] != n or not len(rows):
        raise InputError(
            f"`resamples` must be a matrix with one resample of {n} row numbers in each row, and one row at least; its "
            f"shape is {rows.shape}."
        )
    outside = rows[(rows < 0) | (rows >= n)] if rows.dtype.kind in "iu" else rows.ravel()
    if outside.size:
        raise InputError(
            f"`resamples` must hold row numbers, whole numbers from 0 to {n - 1}; it holds {outside[0]!s}."
        )
    return rows.astype(np.int64)
