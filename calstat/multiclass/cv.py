"""The choice of a penalty for full softmax maps by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd

from calstat._arrays.softmax_selection import cross_validate, stratified_folds
from calstat._input.validation import check_choice, check_count, check_groups, check_rng
from calstat._progress import progress_bar
from calstat._typing import ArrayLike, IntArray, RNGLike
from calstat.exceptions import InputError
from calstat.multiclass.kinds import FullMapResults, PenaltySelection
from calstat.multiclass.model import SoftmaxModel
from calstat.penalties import L2, ODIR, Penalty, check_penalty

F = TypeVar("F", bound=FullMapResults)
_PAPER_ODIR = (1e3, 1e1, 1e-1, 1e-3, 1e-5, 1e-7)
_GRIDS: dict[str, list[Penalty | None]] = {
    "odir": [ODIR(lam, mu) for lam in _PAPER_ODIR for mu in _PAPER_ODIR],
    "l2": [L2(10.0**k) for k in range(3, -8, -1)],
    "probcal": [None, *(ODIR(lam, normalize=False) for lam in (1e-4, 1e-3, 1e-2, 1e-1))],
}


class FullModel(SoftmaxModel[F]):
    """A model of a full softmax map: its penalty, given or chosen by cross-validation."""

    def fit_cv(
        self,
        penalties: str | Sequence[Penalty | None] | None = None,
        folds: int | ArrayLike = 3,
        *,
        shuffle: bool = False,
        rng: RNGLike = None,
        cov_type: Literal["bayes", "frequentist", "HC0", "HC1", "cluster"] | None = None,
        groups: Any = None,
        cov: bool | None = None,
        progress: bool | None = None,
    ) -> F:
        """
        Choose the penalty by cross-validated log-loss, and fit with it to all rows.

        Held-out probabilities below 1e-15 count as 1e-15, as in `log_loss`.

        Parameters
        ----------
        penalties : sequence of penalties, or {"odir", "l2", "probcal"}, optional
            What to compare; None in the sequence is no penalty. "odir" (the default) is the grid of Kull et al., 1e3,
            1e1, ..., 1e-7 for lambda and mu; "l2" theirs for L2, 1e3, 1e2, ..., 1e-7; "probcal" that of R's probcal,
            0, 1e-4, ..., 1e-1 without normalisation.
        folds : int or array_like (n,), default 3
            Number of folds, at most the size of the smallest class, or the fold of each row. Weighted copies of a row
            stay in one fold.
        shuffle : bool, default False
            Deal the rows of each class to the folds at random; otherwise 0, 1, 2, 0, 1, ... in row order.
        rng : None, int or Generator
            Source of the shuffle.
        cov_type : str, optional
            As in `fit`, for the final fit.
        groups : array_like or str, optional
            As in `fit`.
        cov : bool, optional
            As in `fit`.
        progress : bool, optional
            Show the fits done on standard error, by tqdm, once they have taken two seconds. The default does so on a
            terminal where tqdm is installed.

        Returns
        -------
        FullMapResults
            The final fit; `selection` holds the table of held-out losses with standard errors and their plot.

        Raises
        ------
        InputError
            If the penalties or the folds cannot be used.
        """
        grid = _check_grid(penalties)
        fold = self._folds(folds, shuffle, rng)
        features, _ = self._form.features(self._scores)
        with progress_bar(len(grid) * np.unique(fold).size, "fits of cross-validation", progress) as advance:
            found = cross_validate(
                self._form,
                features,
                self._codes,
                self._weights,
                [None if p is None else p.quadratic(len(self._classes)) for p in grid],
                fold,
                rtol=self._rtol,
                advance=advance,
            )
        chosen = grid[found.best]
        final = copy(self)
        final._penalty = chosen  # noqa: SLF001  another object of this very class
        final._how_chosen = (  # noqa: SLF001  as above
            f"The penalty was chosen among {len(grid)} by cross-validation in {np.unique(fold).size} folds of these "
            "rows; standard errors and intervals take it as given."
        )
        results, fit = final._fitted(cov_type, groups, cov)  # noqa: SLF001  as above
        columns = {"lam": [_strength(p, "lam") for p in grid], "mu": [_strength(p, "mu") for p in grid]}
        by_fold = {f"fold {label}": found.by_fold[:, f] for f, label in enumerate(np.unique(fold))}
        table = pd.DataFrame(
            {**columns, "mean": found.mean, "se": found.se, **by_fold, "chosen": np.arange(len(grid)) == found.best},
            index=["no penalty" if p is None else str(p) for p in grid],
        )
        results.selection = PenaltySelection(penalties=tuple(grid), table=table, chosen=chosen, folds=fold)
        final._warn(results, fit, stacklevel=3)  # noqa: SLF001  as above
        return results

    def _folds(self, folds: int | ArrayLike, shuffle: bool, rng: RNGLike) -> IntArray:
        # Rows of weight 0 count as absent; which fold they are in does not matter.
        present = np.ones(self._codes.size, dtype=bool) if self._weights is None else self._weights > 0
        if np.ndim(folds) == 1:
            fold = check_groups(self._data.follow(folds), self._codes.size, "folds")
            named = np.unique(fold[present])
            if named.size < 2:
                raise InputError("`folds` must name at least 2 folds.")
            return np.where(np.isin(fold, named), fold, named[0])
        counts = np.bincount(self._codes[present])
        smallest = int(counts[counts > 0].min())
        count = check_count("folds", folds, minimum=2)
        if count > smallest:
            raise InputError(
                f"`folds`={count} is more than the rows of the smallest class, {smallest}; use fewer folds, or pass "
                "the fold of each row."
            )
        check_choice("shuffle", shuffle, (True, False))
        fold = np.zeros(self._codes.size, dtype=np.int64)
        fold[present] = stratified_folds(self._codes[present], count, check_rng(rng) if shuffle else None)
        return fold


def _check_grid(penalties: str | Sequence[Penalty | None] | None) -> list[Penalty | None]:
    if penalties is None or isinstance(penalties, str):
        name = "odir" if penalties is None else penalties
        check_choice("penalties", name, tuple(_GRIDS))
        return list(_GRIDS[name])
    grid = [check_penalty(p) for p in penalties]
    if not grid:
        raise InputError("`penalties` must name at least one penalty.")
    return grid


def _strength(penalty: Penalty | None, name: str) -> float:
    return 0.0 if penalty is None else float(getattr(penalty, name, np.nan))
