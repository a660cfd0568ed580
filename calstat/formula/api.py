"""
Lower-case constructors that take a formula and a table, as in statsmodels.

Each is the `from_formula` of the class of the same name.

Examples
--------
>>> import calstat.formula.api as cfa
>>> from calstat.datasets import load_heart_disease
>>> res = cfa.beta_calibration("disease ~ p_naive_bayes", data=load_heart_disease()).fit()
>>> res.params.round(2).to_dict()
{'a': 0.41, 'b': 0.25, 'c': 0.13}
"""

from __future__ import annotations

from calstat.binary import BetaCalibration, LogisticCalibration, PlattScaling
from calstat.multiclass import DirichletCalibration, MatrixScaling, TemperatureScaling, VectorScaling
from calstat.nonparametric import HistogramBinning, IsotonicCalibration

__all__ = [
    "beta_calibration",
    "dirichlet_calibration",
    "histogram_binning",
    "isotonic_calibration",
    "logistic_calibration",
    "matrix_scaling",
    "platt_scaling",
    "temperature_scaling",
    "vector_scaling",
]

beta_calibration = BetaCalibration.from_formula
dirichlet_calibration = DirichletCalibration.from_formula
histogram_binning = HistogramBinning.from_formula
isotonic_calibration = IsotonicCalibration.from_formula
logistic_calibration = LogisticCalibration.from_formula
matrix_scaling = MatrixScaling.from_formula
platt_scaling = PlattScaling.from_formula
temperature_scaling = TemperatureScaling.from_formula
vector_scaling = VectorScaling.from_formula
