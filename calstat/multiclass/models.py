"""Calibration maps for several classes: temperature, vector and matrix scaling, and Dirichlet calibration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from scipy import special

from calstat._arrays.softmax_maps import SoftmaxMap
from calstat._data import ModelData, ScoreReader, read_arrays
from calstat._input.validation import as_float, check_choice, check_eps
from calstat._typing import ArrayLike, Label, Scale
from calstat.exceptions import InputError
from calstat.multiclass.cv import FullModel
from calstat.multiclass.kinds import (
    DirichletCalibrationResults,
    MatrixScalingResults,
    TemperatureScalingResults,
    VectorScalingResults,
)
from calstat.multiclass.model import SoftmaxModel
from calstat.multiclass.parts import MapState, MulticlassDescription, estimates_of
from calstat.penalties import Penalty, check_penalty


class TemperatureScaling(SoftmaxModel[TemperatureScalingResults]):
    r"""
    Temperature scaling: one factor that makes all probabilities sharper or flatter.

    .. math:: q = \operatorname{softmax}(z / T), \qquad q = \operatorname{expit}(z / T) \text{ for one score}

    The loss is convex in 1/T and is minimised to rounding, over T in [0.001, 1000]. A calibrated model has T = 1; T > 1
    says that the scores are too sharp (over-confident).

    Parameters
    ----------
    y : array_like, shape (n,)
        Outcome: class labels, or for one score a binary outcome.
    p : array_like or DataFrame, shape (n, K), or (n,) for a binary outcome
        Logits, or probabilities if `scores` says so, one column per class; columns are matched to classes by name where
        the names tell. One score is the log odds (or probability) of the event.
    scores : {"logit", "probability"}, default "logit"
        The scale of `p`. Of probabilities logarithms are taken.
    eps : float, default 1e-15
        Probabilities are clipped to ``[eps, 1 - eps]`` first.
    event : label, optional
        For one score: the label whose probability it is; needed where the outcome is text. Of two columns, the label
        whose calibrated probability is wanted: its column is the one of that name, else the second. Two columns without
        `event` are two classes, with the same temperature.
    classes : sequence of labels, optional
        Class of each column, where neither names nor labels tell.
    freq_weights : array_like of whole numbers, shape (n,), optional
        Copies of each row; weight 0 is absence.
    groups : array_like, shape (n,), optional
        Clusters for ``fit(cov_type="cluster")``.
    missing : {"raise", "drop"}, optional
        What to do with missing values; the default drops rows of a DataFrame and refuses them in arrays.

    Raises
    ------
    InputError
        If an argument cannot be used; the message says which, where, and what to do.

    See Also
    --------
    VectorScaling : One factor and one constant per class.

    Notes
    -----
    A constant added to all logits of a row changes nothing. If every row's own class has the largest logit, the loss
    falls for ever as T goes to 0: T is then left at 0.001 with a `SeparationWarning` and no standard error. Intervals
    are made on the scale of log T.

    References
    ----------
    Guo, C., Pleiss, G., Sun, Y. and Weinberger, K. Q. (2017). On calibration of modern neural networks.
    https://doi.org/10.48550/arXiv.1706.04599

    Examples
    --------
    >>> import calstat as cs
    >>> z = [[2.0, 0.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.0], [3.0, 0.0, 1.0]]
    >>> res = cs.TemperatureScaling([0, 1, 2, 2], z).fit()
    >>> round(res.temperature, 3)
    1.304

    Dividing these logits by 1.304 makes them as sure as they deserve to be.
    """

    _results = TemperatureScalingResults

    def __init__(
        self,
        y: Any,
        p: Any,
        *,
        scores: Scale = "logit",
        eps: float = 1e-15,
        event: Label | None = None,
        classes: Sequence[Label] | None = None,
        freq_weights: Any = None,
        groups: Any = None,
        missing: Literal["raise", "drop"] | None = None,
    ) -> None:
        data = read_arrays(y, p, freq_weights=freq_weights, groups=groups, missing=missing)
        self._setup(data, scores=scores, eps=eps, event=event, classes=classes)

    def _setup(  # type: ignore[override]  # the options of this model
        self,
        data: ModelData,
        *,
        scores: Scale = "logit",
        eps: float = 1e-15,
        event: Label | None = None,
        classes: Sequence[Label] | None = None,
    ) -> None:
        check_choice("scores", scores, ("logit", "probability"))
        self._read(data, SoftmaxMap(kind="TemperatureScaling", scores=scores, eps=check_eps(eps)), event, classes)


class VectorScaling(SoftmaxModel[VectorScalingResults]):
    r"""
    Vector scaling: one slope and one constant per class.

    .. math:: q = \operatorname{softmax}(s \circ z + b), \qquad \textstyle\sum_k b_k = 0

    With ``scores="probability"`` and the log of probabilities this is multinomial recalibration: ``slopes="fixed"``
    is calibration in the large, ``slopes="common"`` has one calibration slope, and ``slopes="class"`` one for each
    class. None of the three depends on a reference class, unless one is asked for with `reference`.

    Parameters
    ----------
    y : array_like, shape (n,)
        Class labels.
    p : array_like or DataFrame, shape (n, K)
        Logits, or probabilities if `scores` says so, one column per class, matched to classes by name where the names
        tell.
    scores : {"logit", "probability"}, default "logit"
        The scale of `p`. Of probabilities logarithms are taken.
    slopes : {"class", "common", "fixed"}, default "class"
        A slope for each class (2K - 1 free parameters), one for all (K), or all equal to 1 (K - 1).
    center : bool, default False
        Take the row means off the logits first. Without it a constant added to the logits of a row changes the map.
    reference : label, optional
        Recalibrate each class against this one, as Van Hoorde et al. do: class j has the logit
        ``s_j (z_j - z_ref) + b_j`` and the reference class the logit 0, without a slope and a constant of its own
        (2K - 2 free parameters). With ``slopes="class"`` the fit and its likelihood then depend on which class is the
        reference; with the two others only the constants do, which become those of the class against the reference.
    eps : float, default 1e-15
        Probabilities are clipped to ``[eps, 1 - eps]`` first.
    classes : sequence of labels, optional
        Class of each column, where neither names nor labels tell.
    freq_weights : array_like of whole numbers, shape (n,), optional
        Copies of each row; weight 0 is absence.
    groups : array_like, shape (n,), optional
        Clusters for ``fit(cov_type="cluster")``.
    missing : {"raise", "drop"}, optional
        What to do with missing values; the default drops rows of a DataFrame and refuses them in arrays.

    Raises
    ------
    InputError
        If an argument cannot be used; the message says which, where, and what to do.

    See Also
    --------
    MatrixScaling : Every score may enter every logit.

    References
    ----------
    Guo, C., Pleiss, G., Sun, Y. and Weinberger, K. Q. (2017). On calibration of modern neural networks.
    https://doi.org/10.48550/arXiv.1706.04599
    Van Hoorde, K., Vergouwe, Y., Timmerman, D. et al. (2014). Assessing calibration of multinomial risk prediction
    models. Statistics in Medicine 33. https://doi.org/10.1002/sim.6114

    Examples
    --------
    >>> import calstat as cs
    >>> p = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4], [0.5, 0.2, 0.3], [0.1, 0.7, 0.2], [0.3, 0.1, 0.6]]
    >>> res = cs.VectorScaling([0, 1, 2, 1, 2, 0], p, scores="probability", slopes="fixed").fit()
    >>> res.bias.round(3).to_dict()
    {0: 0.002, 1: -0.059, 2: 0.058}

    A positive constant says that the class is predicted too rarely.
    """

    _results = VectorScalingResults

    def __init__(
        self,
        y: Any,
        p: Any,
        *,
        scores: Scale = "logit",
        slopes: Literal["class", "common", "fixed"] = "class",
        center: bool = False,
        reference: Label | None = None,
        eps: float = 1e-15,
        classes: Sequence[Label] | None = None,
        freq_weights: Any = None,
        groups: Any = None,
        missing: Literal["raise", "drop"] | None = None,
    ) -> None:
        data = read_arrays(y, p, freq_weights=freq_weights, groups=groups, missing=missing)
        self._setup(data, scores=scores, slopes=slopes, center=center, reference=reference, eps=eps, classes=classes)

    def _setup(  # type: ignore[override]  # the options of this model
        self,
        data: ModelData,
        *,
        scores: Scale = "logit",
        slopes: str = "class",
        center: bool = False,
        reference: Label | None = None,
        eps: float = 1e-15,
        classes: Sequence[Label] | None = None,
    ) -> None:
        check_choice("scores", scores, ("logit", "probability"))
        check_choice("slopes", slopes, ("class", "common", "fixed"))
        check_choice("center", center, (True, False))
        if center and reference is not None:
            raise InputError("`center` and `reference` both say what is taken off the logits of a row; give one.")
        form = SoftmaxMap(kind="VectorScaling", scores=scores, eps=check_eps(eps), center=center, slopes=slopes)
        self._read(data, form, None, classes, reference)


class MatrixScaling(FullModel[MatrixScalingResults]):
    r"""
    Matrix scaling: every logit may draw on every score.

    .. math:: q = \operatorname{softmax}(W z + b)

    Parameters
    ----------
    y : array_like, shape (n,)
        Class labels.
    p : array_like or DataFrame, shape (n, K)
        Logits, or probabilities if `scores` says so, one column per class, matched to classes by name where the names
        tell.
    scores : {"logit", "probability"}, default "logit"
        The scale of `p`. Of probabilities logarithms are taken.
    penalty : L2 or ODIR, optional
        Penalty; with `ODIR` this is MS-ODIR of Kull et al.
    center : bool, default False
        Take the row means off the logits first. Without it a constant added to the logits of a row changes the map.
    eps : float, default 1e-15
        Probabilities are clipped to ``[eps, 1 - eps]`` first.
    classes : sequence of labels, optional
        Class of each column, where neither names nor labels tell.
    freq_weights : array_like of whole numbers, shape (n,), optional
        Copies of each row; weight 0 is absence.
    groups : array_like, shape (n,), optional
        Clusters for ``fit(cov_type="cluster")``.
    missing : {"raise", "drop"}, optional
        What to do with missing values; the default drops rows of a DataFrame and refuses them in arrays.

    Raises
    ------
    InputError
        If an argument cannot be used; the message says which, where, and what to do.

    See Also
    --------
    DirichletCalibration : The same on the logarithms of probabilities.

    Notes
    -----
    The logits of many networks have a constant sum. Then K - 1 directions of W are not determined without a penalty;
    they stay where the identity has them, and a `RankWarning` says so.

    References
    ----------
    Guo, C., Pleiss, G., Sun, Y. and Weinberger, K. Q. (2017). On calibration of modern neural networks.
    https://doi.org/10.48550/arXiv.1706.04599

    Examples
    --------
    >>> import calstat as cs
    >>> z = [[2.0, 0.1, 0.0], [0.3, 3.0, 0.2], [0.0, 0.5, 4.0], [3.0, 0.0, 1.0], [0.2, 0.9, 0.8], [1.5, 1.4, 0.6]]
    >>> res = cs.MatrixScaling([0, 1, 2, 2, 0, 1], z, penalty=cs.ODIR(10)).fit()
    >>> res.weights.round(2).to_numpy().tolist()
    [[0.39, 0.03, 0.02], [-0.02, 1.75, -0.02], [0.02, -0.03, 1.74]]

    Row i, column j: how strongly the logit of class j speaks for class i.
    """

    _results = MatrixScalingResults

    def __init__(
        self,
        y: Any,
        p: Any,
        *,
        scores: Scale = "logit",
        penalty: Penalty | None = None,
        center: bool = False,
        eps: float = 1e-15,
        classes: Sequence[Label] | None = None,
        freq_weights: Any = None,
        groups: Any = None,
        missing: Literal["raise", "drop"] | None = None,
    ) -> None:
        data = read_arrays(y, p, freq_weights=freq_weights, groups=groups, missing=missing)
        self._setup(data, scores=scores, penalty=penalty, center=center, eps=eps, classes=classes)

    def _setup(  # type: ignore[override]  # the options of this model
        self,
        data: ModelData,
        *,
        scores: Scale = "logit",
        penalty: Penalty | None = None,
        center: bool = False,
        eps: float = 1e-15,
        classes: Sequence[Label] | None = None,
    ) -> None:
        check_choice("scores", scores, ("logit", "probability"))
        check_choice("center", center, (True, False))
        self._penalty = check_penalty(penalty)
        form = SoftmaxMap(kind="MatrixScaling", scores=scores, eps=check_eps(eps), center=center)
        self._read(data, form, None, classes)


class DirichletCalibration(FullModel[DirichletCalibrationResults]):
    r"""
    Dirichlet calibration: a full softmax map on the logarithms of probabilities.

    .. math:: r = \operatorname{softmax}(W \ln q + b)

    It is the posterior of a model in which predictions follow a Dirichlet law within each class, and contains
    temperature and vector scaling; for two classes it is beta calibration.

    Parameters
    ----------
    y : array_like, shape (n,)
        Class labels.
    p : array_like or DataFrame, shape (n, K)
        Probabilities, or logits if `scores` says so, one column per class, matched to classes by name where the names
        tell.
    scores : {"probability", "logit"}, default "probability"
        The scale of `p`. Of logits the log-softmax is taken.
    penalty : L2 or ODIR, optional
        Penalty; `fit_cv` chooses one.
    eps : float, default 1e-12
        Probabilities are clipped to ``[eps, 1 - eps]`` before the logarithm. Where zeros are common this changes the
        fit; the summary counts the values touched.
    classes : sequence of labels, optional
        Class of each column, where neither names nor labels tell.
    freq_weights : array_like of whole numbers, shape (n,), optional
        Copies of each row; weight 0 is absence.
    groups : array_like, shape (n,), optional
        Clusters for ``fit(cov_type="cluster")``.
    missing : {"raise", "drop"}, optional
        What to do with missing values; the default drops rows of a DataFrame and refuses them in arrays.

    Raises
    ------
    InputError
        If an argument cannot be used; the message says which, where, and what to do.

    See Also
    --------
    BetaCalibration : The map for a binary outcome.

    Notes
    -----
    Adding one vector to each row of (W, b) changes no probability. Reported is the representative with the least
    penalty of the fit's own kind; without a penalty the one whose off-diagonal column means and mean bias are 0. There
    are (K - 1)(K + 1) free parameters, and joint tests have that many degrees of freedom.

    References
    ----------
    Kull, M., Perello-Nieto, M., Kängsepp, M. et al. (2019). Beyond temperature scaling: Obtaining well-calibrated
    multiclass probabilities with Dirichlet calibration. https://doi.org/10.48550/arXiv.1910.12656

    Examples
    --------
    >>> import calstat as cs
    >>> p = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4], [0.5, 0.2, 0.3], [0.1, 0.7, 0.2], [0.3, 0.1, 0.6]]
    >>> res = cs.DirichletCalibration([0, 1, 2, 1, 2, 0], p, penalty=cs.ODIR(0.1)).fit()
    >>> res.bias.round(3).to_dict()
    {0: -0.157, 1: 0.194, 2: -0.037}

    The weights say how strongly the log probability of each class speaks for each other.
    """

    _results = DirichletCalibrationResults

    def __init__(
        self,
        y: Any,
        p: Any,
        *,
        scores: Scale = "probability",
        penalty: Penalty | None = None,
        eps: float = 1e-12,
        classes: Sequence[Label] | None = None,
        freq_weights: Any = None,
        groups: Any = None,
        missing: Literal["raise", "drop"] | None = None,
    ) -> None:
        data = read_arrays(y, p, freq_weights=freq_weights, groups=groups, missing=missing)
        self._setup(data, scores=scores, penalty=penalty, eps=eps, classes=classes)

    def _setup(  # type: ignore[override]  # the options of this model
        self,
        data: ModelData,
        *,
        scores: Scale = "probability",
        penalty: Penalty | None = None,
        eps: float = 1e-12,
        classes: Sequence[Label] | None = None,
    ) -> None:
        check_choice("scores", scores, ("logit", "probability"))
        self._penalty = check_penalty(penalty)
        self._read(data, SoftmaxMap(kind="DirichletCalibration", scores=scores, eps=check_eps(eps)), None, classes)

    @staticmethod
    def from_generative(
        alpha: ArrayLike, prior: ArrayLike, *, classes: Sequence[Label] | None = None
    ) -> DirichletCalibrationResults:
        r"""
        Map of a generative model: predictions follow Dirichlet(alpha_j) among cases of class j.

        .. math:: w_{ji} = \alpha_{ji} - 1, \qquad b_j = \ln \pi_j - \ln B(\alpha_j)

        Parameters
        ----------
        alpha : array_like, shape (K, K)
            Row j: parameters of the law of the predicted probabilities among cases of class j, positive.
        prior : array_like, shape (K,)
            Class frequencies, positive; divided by their sum.
        classes : sequence of K labels, optional
            Class labels; 0, 1, ... if not given.

        Returns
        -------
        DirichletCalibrationResults
            The map, without data: it predicts and has its canonical form, but no standard errors.

        Raises
        ------
        InputError
            If shapes do not agree or a value is not positive.

        Examples
        --------
        >>> import calstat as cs
        >>> res = cs.DirichletCalibration.from_generative([[4.0, 2.0], [2.0, 4.0]], [0.5, 0.5])
        >>> res.predict([[0.8, 0.2]]).round(4)
        array([[0.9412, 0.0588]])

        A prediction of 0.8 is worth 0.94 when the model is this timid.
        """
        a, weights = as_float(alpha, "alpha"), as_float(prior, "prior")
        K = len(weights)
        if a.shape != (K, K) or K < 2:
            raise InputError(f"`alpha` must be (K, K) and `prior` (K,), K >= 2; got {a.shape} and {weights.shape}.")
        for name, values in (("alpha", a), ("prior", weights)):
            if not (np.isfinite(values).all() and (values > 0.0).all()):
                raise InputError(f"`{name}` must be positive and finite.")
        labels = tuple(range(K)) if classes is None else tuple(classes)
        if len(labels) != K:
            raise InputError(f"`classes` must name {K} classes, got {len(labels)}.")
        log_beta = special.gammaln(a).sum(axis=1) - special.gammaln(a.sum(axis=1))
        bias = np.log(weights / weights.sum()) - log_beta
        form = SoftmaxMap(kind="DirichletCalibration", scores="probability", eps=1e-12)
        free = (K - 1) * (K + 1)
        state = MapState(
            theta=np.column_stack([a - 1.0, bias]),
            free_cov=None,
            lost=np.zeros((free, 0)),
            rank=free,
            notes=_GENERATIVE,
        )
        statistics = dict.fromkeys(("llf", "llf_identity", "llf_null", "objective", "objective_identity"), np.nan)
        estimates = estimates_of(
            form,
            state,
            labels,
            {
                **statistics,
                "cov_type": "nonrobust",
                "df_model": float(free),
                "nobs": 0.0,
                "converged": True,
                "separated": False,
                "n_iter": 0,
                "gradient": 0.0,
                "at_bound": np.zeros(K * (K + 1), dtype=bool),
                "penalty": None,
            },
        )
        description = MulticlassDescription(
            classes=labels,
            counts=np.zeros(K),
            binary=False,
            clipped=0,
            n_dropped=0,
            n_groups=0,
            formula=None,
            notes=(),
        )
        return DirichletCalibrationResults(
            form=form,
            state=state,
            estimates=estimates,
            description=description,
            reader=ScoreReader(names=labels),
            outcome="a generative model",
        )


_GENERATIVE = ("This map was built from a generative model, not fitted: there are no standard errors.",)
