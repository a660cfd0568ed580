#!/usr/bin/env bash
# Programs that the benchmarks measure beside calstat. The tests never need them.
set -euo pipefail
pip install jax scikit-learn uncertainty-calibration pycalib torch torchmetrics mapie
pip install --no-deps --ignore-requires-python betacal netcal dirichletcal==0.5.3
pip install --no-deps arch probcal
