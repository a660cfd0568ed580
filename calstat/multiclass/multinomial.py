"""A penalised multinomial logit on top of statsmodels' MNLogit."""

from __future__ import annotations

from typing import Any

import numpy as np
from statsmodels.base.model import LikelihoodModelResults
from statsmodels.discrete.discrete_model import MNLogit, MultinomialResults, MultinomialResultsWrapper

from calstat._arrays.math import log_softmax, softmax
from calstat._arrays.softmax import FullDesign, QuadraticPenalty, evaluate, penalty_value, row_scores
from calstat._arrays.softmax_inference import information_at
from calstat._arrays.softmax_solver import minimize, null_directions
from calstat._input.validation import check_weights
from calstat._typing import ArrayLike, FloatArray

_COLLINEAR = 1e-10


class PenalizedMNLogit(MNLogit):  # type: ignore[misc]  # statsmodels ships no types
    """
    Multinomial logit with a quadratic penalty and frequency weights.

    A subclass of statsmodels' ``MNLogit``: `params` are contrasts with the first class, (q, K - 1), in the order of the
    columns of `exog`. Without a penalty and weights its results equal those of ``MNLogit``; they are found by calstat's
    solver, which does not overflow.

    Parameters
    ----------
    endog : array_like (n,)
        Outcome; its sorted levels are the classes.
    exog : array_like (n, q)
        Design, the constant included.
    penalty : QuadraticPenalty, optional
        Weights and centres, both (K, q), of a penalty on the full rows of coefficients, mean scale.
    freq_weights : array_like (n,), optional
        Frequency weights: a weight of k counts as k rows.
    **kwargs
        Passed to ``MNLogit``.

    See Also
    --------
    calstat.DirichletCalibration : The calibration map whose `mnlogit` attribute is the result of this model.

    Examples
    --------
    >>> import numpy as np
    >>> from calstat.multiclass.multinomial import PenalizedMNLogit
    >>> x = np.column_stack([[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], np.ones(6)])
    >>> res = PenalizedMNLogit([0, 1, 0, 1, 2, 2], x).fit()
    >>> print(round(res.llf, 4))
    -2.3475

    The log-likelihood is that of ``MNLogit``, to the last digits.
    """

    def __init__(
        self,
        endog: Any,
        exog: Any,
        *,
        penalty: QuadraticPenalty | None = None,
        freq_weights: ArrayLike | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(endog, exog, **kwargs)
        self.penalty = penalty
        self.freq_weights = check_weights(freq_weights, len(self.exog))
        self._design = FullDesign(
            features=np.ascontiguousarray(np.asarray(self.exog, dtype=np.float64).T),
            codes=np.asarray(self.endog, dtype=np.int64),
            weights=self.freq_weights,
            n_classes=int(self.J),
        )

    def _theta(self, params: FloatArray) -> FloatArray:
        contrasts = np.asarray(params).reshape(self.K, -1, order="F").T
        return np.vstack([np.zeros(self.K), contrasts])

    @property
    def _total(self) -> float:
        return float(len(self.exog) if self.freq_weights is None else self.freq_weights.sum())

    def cdf(self, X: FloatArray) -> FloatArray:
        """
        Class probabilities of linear predictors.

        Parameters
        ----------
        X : ndarray (n, K - 1)
            Linear predictors of all classes but the first.

        Returns
        -------
        ndarray (n, K)
            Probabilities.
        """
        return softmax(np.column_stack([np.zeros(len(X)), X]))

    def loglikeobs(self, params: FloatArray) -> FloatArray:
        """
        Log-likelihood of each row and class, 0 but for the observed class; weights are not applied.

        Parameters
        ----------
        params : ndarray
            Contrasts, (q, K - 1) or flattened by columns.

        Returns
        -------
        ndarray (n, K)
            Terms of the log-likelihood.
        """
        logits = (self._theta(params) @ self._design.features).T
        return self.wendog * log_softmax(logits)

    def loglike(self, params: FloatArray) -> float:
        """
        Log-likelihood without the penalty, weights counted.

        Parameters
        ----------
        params : ndarray
            Contrasts, (q, K - 1) or flattened by columns.

        Returns
        -------
        float
            Sum over observations.
        """
        return -self._total * evaluate(self._design, None, self._theta(params)).loss

    def penalized_loglike(self, params: FloatArray) -> float:
        """
        Log-likelihood less the penalty, both as sums over observations: what `fit` maximises.

        Parameters
        ----------
        params : ndarray
            Contrasts, (q, K - 1) or flattened by columns.

        Returns
        -------
        float
            Penalised log-likelihood.
        """
        theta = self._theta(params)
        return self.loglike(params) - self._total * penalty_value(self._design, self.penalty, theta)

    def score(self, params: FloatArray) -> FloatArray:
        """
        Gradient of `loglike`.

        Parameters
        ----------
        params : ndarray
            Contrasts, (q, K - 1) or flattened by columns.

        Returns
        -------
        ndarray (q (K - 1),)
            Gradient, flattened by columns.
        """
        state = evaluate(self._design, None, self._theta(params))
        return -self._total * self._design.pull(state.gradient)

    def score_obs(self, params: FloatArray) -> FloatArray:
        """
        Gradient of the log-likelihood of each row; weights are not applied.

        Parameters
        ----------
        params : ndarray
            Contrasts, (q, K - 1) or flattened by columns.

        Returns
        -------
        ndarray (n, q (K - 1))
            Gradients.
        """
        return row_scores(self._design, evaluate(self._design, None, self._theta(params)).probabilities)

    def hessian(self, params: FloatArray) -> FloatArray:
        """
        Second derivatives of `loglike`.

        Parameters
        ----------
        params : ndarray
            Contrasts, (q, K - 1) or flattened by columns.

        Returns
        -------
        ndarray (q (K - 1), q (K - 1))
            Hessian.
        """
        state = evaluate(self._design, None, self._theta(params))
        return -self._total * self._design.information(state.probabilities)

    def fit(self, start_params: ArrayLike | None = None, **kwargs: Any) -> MultinomialResultsWrapper:
        """
        Maximise `penalized_loglike`.

        Parameters
        ----------
        start_params : array_like, optional
            Start, (q, K - 1) or flattened by columns; 0 if not given.
        **kwargs
            ``skip_hessian=True`` leaves the covariance out; other arguments of ``MNLogit.fit`` have no use here.

        Returns
        -------
        MultinomialResultsWrapper
            statsmodels' results. The covariance is the inverse of the information, penalty included.
        """
        start = np.zeros((self.K, self.J - 1)) if start_params is None else np.asarray(start_params, dtype=float)
        null = null_directions(self._design, self.penalty, _COLLINEAR)
        found = minimize(self._design, self.penalty, self._theta(start), null=null)
        contrasts = found.theta[1:] - found.theta[0]
        covariance = None
        if not kwargs.get("skip_hessian", False):
            covariance = information_at(
                self._design,
                self.penalty,
                found.evaluation.probabilities,
                null=null,
                separated=found.separated,
            ).inverse
        fitted = LikelihoodModelResults(self, contrasts.ravel(), covariance, scale=1.0)
        fitted.mle_retvals = {
            "converged": found.converged,
            "iterations": found.n_iter,
            "fopt": found.evaluation.objective,
        }
        fitted.mle_settings = {"optimizer": "calstat"}
        fitted.params = contrasts.T.copy()
        results = PenalizedMultinomialResults(self, fitted)
        return MultinomialResultsWrapper(results)


class PenalizedMultinomialResults(MultinomialResults):  # type: ignore[misc]  # statsmodels ships no types
    """
    statsmodels' multinomial results, with the constant-only log-likelihood in closed form.

    Parameters
    ----------
    model : PenalizedMNLogit
        The model.
    mlefit : LikelihoodModelResults
        Parameters, covariance and optimiser's report.
    """

    @property
    def llnull(self) -> float:
        """Log-likelihood of constant class frequencies, the sum of ``n_k ln(n_k / n)``."""
        counts = np.bincount(self.model.endog, weights=self.model.freq_weights, minlength=int(self.model.J))
        seen = counts[counts > 0]
        return float((seen * np.log(seen / counts.sum())).sum())
