"""The calibration maps as lower-case functions of a formula and a table."""
