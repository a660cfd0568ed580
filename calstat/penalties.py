"""Penalties of full softmax maps: ridge, and off-diagonal and intercept regularisation (ODIR)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from calstat._arrays.softmax import QuadraticPenalty
from calstat._input.validation import check_choice
from calstat.exceptions import InputError


@dataclass(frozen=True, slots=True)
class L2:
    r"""
    Ridge penalty on the weights of a full softmax map, and on its intercepts.

    .. math:: \lambda \sum_{ij} (w_{ij} - c_{ij})^2 + \lambda \sum_i b_i^2

    It is added to the mean negative log-likelihood. Sums run over all K rows; the penalty is taken at that one among
    the equivalent maps (a common vector added to each row changes no probability) where it is least.

    Parameters
    ----------
    lam : float
        Strength, not negative; 0 means no penalty.
    center : {"zero", "identity"}, default "zero"
        What the weights are drawn towards: no effect of the scores (c = 0, the usual form) or the identity map. Only
        the latter leaves the identity free, so that it can be tested.
    intercept : bool, default True
        Whether the intercepts are penalised too. ``L2(lam, intercept=False)`` is scikit-learn's penalty, with
        ``C = 1 / (2 n lam)``.

    Raises
    ------
    InputError
        If `lam` is negative or not finite, or `center` is unknown.

    References
    ----------
    Kull et al. (2019). Beyond temperature scaling: Obtaining well-calibrated multiclass probabilities with Dirichlet
    calibration. https://doi.org/10.48550/arXiv.1910.12656

    Examples
    --------
    >>> import calstat as cs
    >>> print(cs.L2(0.01, center="identity"))
    L2(lam=0.01, center='identity')

    The larger `lam`, the closer the weights come to their centre.
    """

    lam: float
    center: Literal["zero", "identity"] = field(default="zero", kw_only=True)
    intercept: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        """Check the arguments."""
        _check_strength("lam", self.lam)
        check_choice("center", self.center, ("zero", "identity"))

    def __repr__(self) -> str:
        parts = [f"lam={self.lam:g}"]
        if self.center != "zero":
            parts.append(f"center={self.center!r}")
        if not self.intercept:
            parts.append("intercept=False")
        return f"L2({', '.join(parts)})"

    @property
    def is_zero(self) -> bool:
        """Whether nothing is penalised."""
        return self.lam == 0.0

    @property
    def frees_identity(self) -> bool:
        """Whether the identity map carries no penalty."""
        return self.is_zero or self.center == "identity"

    def quadratic(self, n_classes: int) -> QuadraticPenalty:
        """
        The penalty as weights and centres of the entries of (W, b).

        Parameters
        ----------
        n_classes : int
            Number of classes K.

        Returns
        -------
        QuadraticPenalty
            Arrays (K, K + 1), intercepts last.
        """
        weights = np.full((n_classes, n_classes + 1), float(self.lam))
        if not self.intercept:
            weights[:, -1] = 0.0
        center = np.eye(n_classes, n_classes + 1) if self.center == "identity" else np.zeros_like(weights)
        return QuadraticPenalty(weights=weights, center=center)


@dataclass(frozen=True, slots=True)
class ODIR:
    r"""
    Off-diagonal and intercept regularisation of a full softmax map.

    .. math:: \frac{\lambda}{K(K-1)} \sum_{i \ne j} w_{ij}^2 + \frac{\mu}{K} \sum_i b_i^2

    It is added to the mean negative log-likelihood. The diagonal is free, so the identity map, and every map that only
    rescales the scores class by class, costs nothing.

    Parameters
    ----------
    lam : float
        Strength on the off-diagonal weights, not negative.
    mu : float, optional
        Strength on the intercepts; `lam` if not given. 0 leaves them free.
    normalize : bool, default True
        Divide by the number of entries, as in the formula and in the paper. False drops both divisors, the convention
        of R's probcal (there with ``mu = lam``).

    Raises
    ------
    InputError
        If a strength is negative or not finite.

    References
    ----------
    Kull et al. (2019). Beyond temperature scaling: Obtaining well-calibrated multiclass probabilities with Dirichlet
    calibration. https://doi.org/10.48550/arXiv.1910.12656

    Examples
    --------
    >>> import calstat as cs
    >>> print(cs.ODIR(0.1, mu=0.01))
    ODIR(lam=0.1, mu=0.01)

    With a very large `lam` the map is vector scaling.
    """

    lam: float
    mu: float | None = None
    normalize: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        """Check the arguments."""
        _check_strength("lam", self.lam)
        if self.mu is None:
            object.__setattr__(self, "mu", self.lam)
        _check_strength("mu", self.mu)

    def __repr__(self) -> str:
        tail = "" if self.normalize else ", normalize=False"
        return f"ODIR(lam={self.lam:g}, mu={self.mu:g}{tail})"

    @property
    def is_zero(self) -> bool:
        """Whether nothing is penalised."""
        return self.lam == 0.0 and self.mu == 0.0

    @property
    def frees_identity(self) -> bool:
        """Whether the identity map carries no penalty: always."""
        return True

    def quadratic(self, n_classes: int) -> QuadraticPenalty:
        """
        The penalty as weights and centres of the entries of (W, b).

        Parameters
        ----------
        n_classes : int
            Number of classes K.

        Returns
        -------
        QuadraticPenalty
            Arrays (K, K + 1), intercepts last.
        """
        assert self.mu is not None
        off, intercepts = float(self.lam), float(self.mu)
        if self.normalize:
            off, intercepts = off / (n_classes * (n_classes - 1)), intercepts / n_classes
        weights = off * (1.0 - np.eye(n_classes, n_classes + 1))
        weights[:, -1] = intercepts
        return QuadraticPenalty(weights=weights, center=np.zeros_like(weights))


Penalty: TypeAlias = L2 | ODIR


def _check_strength(name: str, value: Any) -> None:
    if not isinstance(value, int | float | np.number) or isinstance(value, bool) or not 0.0 <= value < np.inf:
        raise InputError(f"`{name}` must be a finite number that is not negative, got {value!r}.")


def check_penalty(penalty: Any) -> Penalty | None:
    """
    Check a penalty argument.

    Parameters
    ----------
    penalty : L2, ODIR or None
        The penalty.

    Returns
    -------
    L2, ODIR or None
        None also for penalties of strength 0.

    Raises
    ------
    InputError
        If it is anything else.
    """
    if penalty is None:
        return None
    if not isinstance(penalty, L2 | ODIR):
        raise InputError(f"`penalty` must be None, L2(...) or ODIR(...), got {penalty!r}.")
    return None if penalty.is_zero else penalty


def penalty_to_state(penalty: Penalty | None) -> dict[str, Any] | None:
    """
    Describe a penalty in plain values, for storage.

    Parameters
    ----------
    penalty : L2, ODIR or None
        The penalty.

    Returns
    -------
    dict or None
        Name and arguments.
    """
    return None if penalty is None else {"name": type(penalty).__name__, **asdict(penalty)}


def penalty_from_state(state: Mapping[str, Any] | None) -> Penalty | None:
    """
    Build a penalty from what `penalty_to_state` gave.

    Parameters
    ----------
    state : mapping or None
        Name and arguments.

    Returns
    -------
    L2, ODIR or None
        The penalty.
    """
    if state is None:
        return None
    arguments = {k: v for k, v in state.items() if k != "name"}
    return {"L2": L2, "ODIR": ODIR}[state["name"]](**arguments)
