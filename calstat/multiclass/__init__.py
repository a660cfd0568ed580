"""Softmax calibration maps for several classes: temperature, vector, matrix and Dirichlet."""

from calstat.multiclass.models import DirichletCalibration, MatrixScaling, TemperatureScaling, VectorScaling

__all__ = ["DirichletCalibration", "MatrixScaling", "TemperatureScaling", "VectorScaling"]
