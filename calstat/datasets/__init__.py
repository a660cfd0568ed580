"""Two real data sets, each an outcome with out-of-sample predicted probabilities."""

from __future__ import annotations

from importlib.resources import files

import pandas as pd

__all__ = ["load_heart_disease", "load_vehicle"]


def load_heart_disease() -> pd.DataFrame:
    """
    Heart disease in 297 patients, with the probabilities of two risk models.

    Returns
    -------
    pandas.DataFrame
        297 rows, one per patient, and the columns

        ``disease``
            1 when angiography found a vessel narrowed by more than half (UCI's classes 1 to 4), else 0.
            137 patients have the disease.
        ``age`` (years), ``sex`` ("female", "male"), ``resting_bp`` (mm Hg), ``cholesterol`` (mg/dl)
            Four of the 13 predictors that the models saw.
        ``p_logistic``
            Probability of disease from an unpenalised logistic regression.
        ``p_naive_bayes``
            Probability of disease from a Gaussian naive Bayes classifier.

    Notes
    -----
    *Origin.* The processed Cleveland table of Heart Disease [1]_, UCI Machine Learning Repository, licence
    CC BY 4.0; the six rows with a missing value are left out.

    *How it was made.* Ten folds, stratified by outcome; each row's probability comes from the model that was
    fitted on the other nine folds, so it is an honest prediction for a patient the model has not seen.
    Chest pain type and thallium result enter the logistic regression as dummy variables. The naive Bayes
    model takes the 13 predictors as independent, which they are not, and is therefore far too sure of itself.
    ``docs/scripts/make_datasets.py`` in the repository makes the table.

    References
    ----------
    .. [1] Janosi, A., Steinbrunn, W., Pfisterer, M. and Detrano, R. (1989). Heart Disease. UCI Machine
       Learning Repository. https://doi.org/10.24432/C52P4X

    Examples
    --------
    >>> from calstat.datasets import load_heart_disease
    >>> df = load_heart_disease()
    >>> df[["disease", "p_logistic", "p_naive_bayes"]].mean().round(3).to_dict()
    {'disease': 0.461, 'p_logistic': 0.458, 'p_naive_bayes': 0.453}

    All three means agree: on average both models are right. What may be wrong is the spread of their
    probabilities.
    """
    return _read("heart_disease.csv")


def load_vehicle() -> pd.DataFrame:
    """
    Four kinds of vehicle seen as silhouettes, with the class probabilities of one classifier.

    Returns
    -------
    pandas.DataFrame
        846 rows, one per silhouette, and the columns

        ``vehicle``
            The kind of vehicle: "bus" (218 rows), "opel" (212), "saab" (217) or "van" (199).
        ``p_bus``, ``p_opel``, ``p_saab``, ``p_van``
            Class probabilities from quadratic discriminant analysis on 18 shape features. They sum to 1
            within rounding; 222 are exactly 0 and 70 exactly 1.

    Notes
    -----
    *Origin.* Statlog (Vehicle Silhouettes) [1]_, UCI Machine Learning Repository, licence CC BY 4.0.

    *How it was made.* Ten folds, stratified by class; each row's probabilities come from the model that was
    fitted on the other nine folds. A covariance matrix per class has 171 entries for some 190 rows, and the
    classifier is overconfident for that reason. ``docs/scripts/make_datasets.py`` in the repository makes the
    table.

    References
    ----------
    .. [1] Mowforth, P. and Shepherd, B. Statlog (Vehicle Silhouettes). UCI Machine Learning Repository.
       https://archive.ics.uci.edu/dataset/149/statlog+vehicle+silhouettes

    Examples
    --------
    >>> from calstat.datasets import load_vehicle
    >>> df = load_vehicle()
    >>> P = df.drop(columns="vehicle")
    >>> top = P.idxmax(axis=1).str.removeprefix("p_")
    >>> print(f"confidence {P.max(axis=1).mean():.3f}, accuracy {(top == df['vehicle']).mean():.3f}")
    confidence 0.923, accuracy 0.848

    The classifier claims to be right in 92 of 100 cases and is right in 85.
    """
    return _read("vehicle.csv")


def _read(name: str) -> pd.DataFrame:
    """Read one of the tables beside this module."""
    with files(__name__).joinpath(name).open(encoding="utf-8") as stream:
        return pd.read_csv(stream)
