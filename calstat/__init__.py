"""Probability calibration with inference."""
