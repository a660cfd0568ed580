"""Maps that are made of other maps: one binary map per class, and one map per fold."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from calstat._arrays.softmax_selection import stratified_folds
from calstat._data import ModelData, ScoreReader, read_arrays
from calstat._input.labels import as_label_vector, show
from calstat._input.validation import (
    MulticlassSample,
    check_choice,
    check_count,
    check_multiclass,
    check_rng,
    check_weights,
)
from calstat._progress import progress_bar
from calstat._typing import ArrayLike, IntArray, Label, RNGLike
from calstat.base import CalibrationModel, build_model
from calstat.binary import BetaCalibration
from calstat.composite.cross_validated_results import CrossValidatedResults, FoldRows, predict_rows
from calstat.composite.one_vs_rest_results import OneVsRestData, OneVsRestFit, OneVsRestResults, normalise_rows
from calstat.exceptions import CalstatError, CalstatWarning, InputError, NotDefinedError, NotEstimableError


class _Told:
    """Warnings of many fits, collected so that the user is told once."""

    def __init__(self) -> None:
        self._found: list[tuple[str, warnings.WarningMessage]] = []

    @contextmanager
    def collect(self, name: str) -> Iterator[None]:
        """Keep our own warnings of one fit; pass on all others."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for one in caught:
            if issubclass(one.category, CalstatWarning):
                self._found.append((name, one))
            else:
                warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)

    def tell(self, kind: str, total: int, stacklevel: int) -> None:
        """Issue one warning for all."""
        if self._found:
            name, first = self._found[0]
            names = list(dict.fromkeys(name for name, _ in self._found))
            text = f"{kind}: {len(names)} of {total} fits warned ({', '.join(names)}). Of {name}: {first.message}"
            warnings.warn(text, first.category, stacklevel=stacklevel)


def _check_kind(argument: str, kind: Any) -> None:
    if not (isinstance(kind, type) and issubclass(kind, CalibrationModel)):
        raise InputError(f"`{argument}` must be a class of calibration models, such as BetaCalibration; got {kind!r}.")


class OneVsRest(CalibrationModel):
    r"""
    One binary map per class, each set against all other classes, rows renormalised.

    .. math:: q_k(x) = f_k(x_k) \Big/ \sum_j f_j(x_j)

    Parameters
    ----------
    y : array_like, shape (n,)
        Class labels.
    p : array_like or DataFrame, shape (n, K)
        One score per class, as `base` takes it; columns are matched to classes by name where the names tell. Rows need
        not sum to 1.
    base : class, default BetaCalibration
        The binary model of each class: PlattScaling, LogisticCalibration, BetaCalibration, TemperatureScaling,
        IsotonicCalibration or HistogramBinning.
    classes : sequence of labels, optional
        Class of each column, where neither names nor labels tell.
    freq_weights : array_like of whole numbers, shape (n,), optional
        Copies of each row; weight 0 is absence.
    groups : array_like, shape (n,), optional
        Clusters for ``fit(cov_type="cluster")``.
    missing : {"raise", "drop"}, optional
        What to do with missing values; the default drops rows of a DataFrame and refuses them in arrays.
    **options
        Options of `base`, such as ``bins=5``.

    Raises
    ------
    NotEstimableError
        If a class does not occur.
    InputError
        If an argument cannot be used; the message says which, where, and what to do.

    See Also
    --------
    DirichletCalibration : One map for all classes together.

    Notes
    -----
    A row to which every class's map gives 0 becomes uniform; isotonic and histogram maps give exact zeros, unless
    ``smoothing=1`` is passed on. Zeros are counted in the summary.

    References
    ----------
    Zadrozny, B. and Elkan, C. (2002). Transforming classifier scores into accurate multiclass probability estimates.
    KDD 2002. https://doi.org/10.1145/775047.775151

    Examples
    --------
    >>> import calstat as cs
    >>> p = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4], [0.5, 0.2, 0.3], [0.1, 0.7, 0.2], [0.3, 0.1, 0.6]]
    >>> res = cs.OneVsRest([0, 1, 2, 1, 2, 0], p, cs.HistogramBinning, bins=2).fit()
    >>> res.predict([[0.5, 0.3, 0.2]]).round(3)
    array([[0.435, 0.217, 0.348]])

    The three maps gave 0.5, 0.25 and 0.4; divided by their sum they are probabilities.
    """

    def __init__(
        self,
        y: Any,
        p: Any,
        base: type[CalibrationModel] = BetaCalibration,
        *,
        classes: Sequence[Label] | None = None,
        freq_weights: Any = None,
        groups: Any = None,
        missing: Literal["raise", "drop"] | None = None,
        **options: Any,
    ) -> None:
        data = read_arrays(y, p, freq_weights=freq_weights, groups=groups, missing=missing)
        self._setup(data, base=base, classes=classes, **options)

    def _setup(
        self,
        data: ModelData,
        *,
        base: type[CalibrationModel] = BetaCalibration,
        classes: Sequence[Label] | None = None,
        **options: Any,
    ) -> None:
        _check_kind("base", base)
        sample = check_multiclass(
            data.y, data.scores, freq_weights=data.weights, classes=classes, scores="logit", integer_weights=True
        )
        absent = [k for k, n in zip(sample.classes, sample.class_counts, strict=True) if n == 0]
        if absent:
            raise NotEstimableError(
                f"OneVsRest needs every class to occur; {show(absent)} of {len(sample.classes)} do not. Drop their "
                "columns, or use DirichletCalibration with a penalty."
            )
        self._data, self._base, self._sample = data, base, sample
        named = len(data.reader.names) == len(sample.classes)
        self._reader = data.reader if named else ScoreReader(names=sample.classes)
        self.nobs = sample.nobs
        self.models: dict[Label, CalibrationModel] = {}
        for j, label in enumerate(sample.classes):
            try:
                self.models[label] = build_model(base, _against_rest(data, sample, j, self._reader.names[j]), **options)
            except CalstatError as error:
                raise type(error)(f"class {label!r}: {error}") from error

    @property
    def classes(self) -> tuple[Label, ...]:
        """Class labels, in the order of the columns."""
        return self._sample.classes

    def fit(self, **options: Any) -> OneVsRestResults:
        """
        Fit the map of each class.

        Parameters
        ----------
        **options
            Arguments of the `fit` of `base`, such as ``cov_type="HC0"``.

        Returns
        -------
        OneVsRestResults
            A new results object; ``results[label]`` holds the results of one class.

        Warns
        -----
        CalstatWarning
            Once, when fits of some classes warn; the message names them.
        """
        sample, told = self._sample, _Told()
        if options.get("groups") is not None:
            options["groups"] = self._data.follow(options["groups"])
        results = {}
        for label, model in self.models.items():
            with told.collect(f"class {label!r}"):
                results[label] = model.fit(**options)
        told.tell("OneVsRest", len(results), stacklevel=3)
        columns = [np.asarray(part.predict(sample.p[:, j])) for j, part in enumerate(results.values())]
        fitted, zero = normalise_rows(np.stack(columns, axis=1))
        w = np.ones(zero.size) if sample.weights is None else sample.weights
        with np.errstate(divide="ignore"):
            own = np.log(fitted[np.arange(sample.y.size), sample.y])
        return OneVsRestResults(
            results=results,
            fit=OneVsRestFit(
                base=self._base.__name__,
                classes=sample.classes,
                columns=self._reader.names,
                counts=sample.class_counts,
                ranges=np.stack([sample.p.min(axis=0), sample.p.max(axis=0)], axis=1),
                llf=float(own[w > 0] @ w[w > 0]),
                n_uniform=float(w[zero].sum()),
                n_zero=float((fitted == 0.0).sum(axis=1) @ w),
                n_dropped=self.n_dropped,
                notes=sample.notes,
            ),
            reader=self._reader,
            outcome=self.outcome,
            data=OneVsRestData(fitted=fitted, index=sample.index),
        )


def _against_rest(data: ModelData, sample: MulticlassSample, j: int, column: Any) -> ModelData:
    """Rows of a binary map of class number j: its score, and whether it is the label."""
    label = sample.classes[j]
    return ModelData(
        y=pd.Categorical.from_codes((sample.y == j).astype(np.int64), pd.Index([f"not {label}", label], dtype=object)),
        scores=sample.p[:, j],
        weights=sample.weights,
        groups=data.groups,
        index=None,
        kept=None,
        outcome=data.outcome,
        reader=ScoreReader(names=(column,)),
        formula=None,
        frame=None,
    )


class CrossValidatedCalibration(CalibrationModel):
    """
    A calibration map with out-of-fold predictions: fitted without each fold in turn, and to all rows.

    Parameters
    ----------
    y : array_like, shape (n,)
        Outcome, as `method` takes it.
    p : array_like or DataFrame, shape (n,) or (n, K)
        Scores, as `method` takes them.
    method : class
        The model: any calibration model of the package, `OneVsRest` included.
    folds : int, array_like (n,) or str, default 5
        Number of folds, at most the rows of the smallest class; or the fold of each row, with `from_formula`
        also the name of a column. Keep clusters whole by giving the folds yourself.
    shuffle : bool, default False
        Deal the rows of each class to the folds at random; otherwise 0, 1, 2, 0, 1, ... in row order.
    rng : None, int or Generator
        Source of the shuffle.
    ensemble : bool, default False
        Predict with the mean over the folds' maps (the protocol of Kull et al. 2019) in place of the map of all rows.
    freq_weights : array_like of whole numbers, shape (n,), optional
        Copies of each row; weight 0 is absence. The copies of a row stay in one fold.
    groups : array_like, shape (n,), optional
        Clusters for ``fit(cov_type="cluster")``.
    missing : {"raise", "drop"}, optional
        What to do with missing values; the default drops rows of a DataFrame and refuses them in arrays.
    **options
        Options of `method`, such as ``base=IsotonicCalibration`` of `OneVsRest`.

    Raises
    ------
    NotEstimableError
        If a fold holds all rows of a class.
    InputError
        If there are more folds than rows of the smallest class, or an argument cannot be used.

    References
    ----------
    Kull, M. et al. (2019). Beyond temperature scaling: obtaining well-calibrated multi-class probabilities with
    Dirichlet calibration. https://doi.org/10.48550/arXiv.1910.12656

    Examples
    --------
    >>> import calstat as cs
    >>> y = [0, 1, 0, 0, 1, 0, 1, 1, 0, 1]
    >>> p = [0.1, 0.3, 0.2, 0.4, 0.4, 0.6, 0.7, 0.8, 0.5, 0.9]
    >>> res = cs.CrossValidatedCalibration(y, p, cs.LogisticCalibration, folds=5).fit()
    >>> res.metrics.loc[["log_loss", "brier_score"]].round(3)
                 out_of_fold  same_rows
    metric
    log_loss           0.690      0.522
    brier_score        0.248      0.184

    The map looks better on the rows that it was fitted to than on rows that it has not seen.
    """

    def __init__(
        self,
        y: Any,
        p: Any,
        method: type[CalibrationModel],
        *,
        folds: int | ArrayLike | str = 5,
        shuffle: bool = False,
        rng: RNGLike = None,
        ensemble: bool = False,
        freq_weights: Any = None,
        groups: Any = None,
        missing: Literal["raise", "drop"] | None = None,
        **options: Any,
    ) -> None:
        data = read_arrays(y, p, freq_weights=freq_weights, groups=groups, missing=missing)
        self._setup(data, method=method, folds=folds, shuffle=shuffle, rng=rng, ensemble=ensemble, **options)

    def _setup(  # type: ignore[override]  # the options of this model
        self,
        data: ModelData,
        *,
        method: type[CalibrationModel],
        folds: int | ArrayLike | str = 5,
        shuffle: bool = False,
        rng: RNGLike = None,
        ensemble: bool = False,
        **options: Any,
    ) -> None:
        _check_kind("method", method)
        check_choice("shuffle", shuffle, (True, False))
        check_choice("ensemble", ensemble, (True, False))
        self.model = build_model(method, data, **options)
        self.nobs = self.model.nobs
        self._data, self._method, self._options, self._ensemble = data, method, options, ensemble
        self._y = _ordered_labels(self.model, data.y)
        self.fold_labels: list[Label]
        self._folds: IntArray
        weights = check_weights(data.weights, len(self._y))
        present = np.ones(len(self._y), dtype=bool) if weights is None else weights > 0.0
        classes = self._y.codes.astype(np.int64)
        if isinstance(folds, str) or np.ndim(folds) == 1:
            self.fold_labels, self._folds = _given_folds(data.follow(folds), classes, present, list(self._y.categories))
            self._how = "given"
        else:
            n = _check_folds(folds, classes[present], list(self._y.categories))
            self.fold_labels, self._how = list(range(n)), "stratified, shuffled" if shuffle else "stratified, row order"
            self._folds = np.zeros(classes.size, dtype=np.int64)  # rows of weight 0 belong to no fold's fit anyway
            self._folds[present] = stratified_folds(classes[present], n, check_rng(rng) if shuffle else None)

    def fit(self, *, progress: bool | None = None, **options: Any) -> CrossValidatedResults:
        """
        Fit the map without each fold in turn, and to all rows.

        Parameters
        ----------
        progress : bool, optional
            Show the fits done on standard error, by tqdm, once they have taken two seconds. The default does so on a
            terminal where tqdm is installed.
        **options
            Arguments of the `fit` of `method`, such as ``cov_type="HC0"``.

        Returns
        -------
        CrossValidatedResults
            A new results object.

        Warns
        -----
        CalstatWarning
            Once, when some fits warn; the message names them.
        """
        return self._fit_all("fit", options, progress)

    def fit_cv(self, *, progress: bool | None = None, **options: Any) -> CrossValidatedResults:
        """
        The same with the penalty chosen anew for each fold, by cross-validation within its rows.

        Parameters
        ----------
        progress : bool, optional
            Show the fits done on standard error, by tqdm, once they have taken two seconds. The default does so on a
            terminal where tqdm is installed.
        **options
            Arguments of the `fit_cv` of `method`, such as ``penalties="l2"``; its `folds` must be a number.

        Returns
        -------
        CrossValidatedResults
            A new results object, whose `fold_metrics` show the penalties.

        Raises
        ------
        NotDefinedError
            If `method` has no `fit_cv`.
        """
        if not hasattr(self._method, "fit_cv"):
            raise NotDefinedError(f"{self._method.__name__} has no penalty to choose; use `fit`.")
        return self._fit_all("fit_cv", {**options, "progress": False}, progress)

    def _fit_all(self, how: str, options: dict[str, Any], progress: bool | None) -> CrossValidatedResults:
        data, told = self._data, _Told()
        if options.get("groups") is not None:
            raise InputError("`groups` are given to the constructor here, so that they follow the folds.")
        results, oof = {}, None
        with progress_bar(len(self.fold_labels) + 1, f"fits of {self._method.__name__}", progress) as advance:
            with told.collect("all rows"):
                final = getattr(self.model, how)(**options)
            advance(1)
            for f, label in enumerate(self.fold_labels):
                held_out = self._folds == f
                train = replace(data.rows(~held_out), y=self._y[~held_out])
                model = build_model(self._method, train, **self._options)
                with told.collect(f"without fold {label!r}"):
                    results[label] = getattr(model, how)(**options)
                    predicted = predict_rows(results[label], data.rows(held_out))
                advance(1)
                if oof is None:
                    oof = np.empty((len(self._y), *predicted.shape[1:]))
                oof[held_out] = predicted
        told.tell("CrossValidatedCalibration", len(results) + 1, stacklevel=4)
        assert oof is not None  # there are two folds or more
        return CrossValidatedResults(
            fold_results=results,
            final=final,
            ensemble=self._ensemble,
            how=self._how,
            outcome=self.outcome,
            rows=FoldRows(
                rows=replace(data, frame=None),
                y=self._y,
                labels=tuple(self._y.categories),
                codes=self._folds,
                oof=oof,
            ),
        )


def _ordered_labels(model: CalibrationModel, y: Any) -> pd.Categorical:
    """Labels as a Categorical whose levels say what the model read: the event last, or the order of the columns."""
    labels = np.asarray(as_label_vector(y))
    classes = getattr(model, "classes", None)
    if classes is None:
        event = model.event  # type: ignore[attr-defined]  # every model has classes or an event
        classes = [k for k in pd.unique(labels) if k != event] + [event]
    return pd.Categorical(labels, categories=pd.Index(list(classes), dtype=object))


def _check_folds(folds: Any, classes: IntArray, labels: Sequence[Label]) -> int:
    """Check a number of folds against the number of rows of the smallest class."""
    n = check_count("folds", folds, minimum=2)
    counts = np.bincount(classes, minlength=len(labels))
    smallest = int(np.where(counts > 0, counts, classes.size).argmin())
    if n > counts[smallest]:
        raise InputError(
            f"`folds`={n} is more than the rows of the smallest class, {labels[smallest]!r} with {counts[smallest]}: "
            "some folds would not hold it. Use fewer folds, or pass the fold of each row."
        )
    return n


def _given_folds(
    folds: Any, classes: IntArray, present: np.ndarray, labels: Sequence[Label]
) -> tuple[list[Label], IntArray]:
    """Labels of the folds in order and the number of each row's fold (n,), where every class is left by each fold."""
    values = np.asarray(as_label_vector(folds, "folds"))
    if values.size != classes.size:
        raise InputError(f"`folds` must have one label per row ({classes.size}), got {values.size}.")
    distinct, codes = np.unique(values, return_inverse=True)
    if distinct.size < 2:
        raise InputError(f"`folds` must name at least 2 folds, got only {distinct.tolist()[0]!r}.")
    table = np.zeros((distinct.size, len(labels)), dtype=np.int64)
    np.add.at(table, (codes[present], classes[present]), 1)
    emptied = np.argwhere((table == table.sum(axis=0)) & (table > 0))
    if emptied.size:
        f, k = emptied[0]
        raise NotEstimableError(
            f"fold {distinct.tolist()[f]!r} holds all {table[f, k]} rows of class {labels[k]!r}, so that a map fitted "
            "without it does not know the class. Spread the class over the folds."
        )
    return distinct.tolist(), codes.astype(np.int64)
