#!/usr/bin/env bash
# Programs that the benchmarks measure beside calstat. The tests never need them.
set -euo pipefail
pip install scikit-learn
pip install --no-deps --ignore-requires-python betacal
