"""Run the benchmarks and write what they print, with the machine and the versions, to docs/reference_tables/speed.md.

    tests/benchmarks/install_peers.sh
    python docs/scripts/make_speed_table.py [--only binary metrics ...]

A benchmark that does not finish, for want of a peer or because calstat was slower than it has to be there, is listed
with its reason and no numbers. The times are CPU seconds of one thread; let nothing else run meanwhile.
"""

from __future__ import annotations

import argparse
import ast
import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference_tables" / "speed.md"
BENCHMARKS = ("binary", "multiclass", "nonparametric", "metrics", "inference")
PACKAGES = (
    "numpy", "scipy", "pandas", "statsmodels", "scikit-learn", "betacal", "dirichletcal", "jax", "netcal", "pycalib",
    "uncertainty-calibration", "torch", "torchmetrics", "arch", "probcal",
)  # fmt: skip
TIMEOUT = 900

HEAD = """\
# Speed

CPU seconds of calstat and of other programs for the same task, each pair in one run, as the benchmarks in
`tests/benchmarks` print them. The ratios carry over to other machines, the seconds do not. What the text calls a
limit is the least that any program has to do for the task, such as one pass over the data or one sort. This page was
written by `docs/scripts/make_speed_table.py`; peers that were not installed are not in it.

Machine: {machine}.
Versions: {versions}.
"""


def machine() -> str:
    """The processor and the system."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        processor = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        processor = platform.processor() or platform.machine()
    load = f"; load average at the start {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{processor}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}{load}"


def versions() -> str:
    """Python and the packages that are installed."""
    found = [f"Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def heading_of(text: str) -> str:
    """The first sentence of a docstring as a heading, and its last paragraph, which says how things were measured."""
    first, *others = text.split("\n\n")
    return "\n\n".join([f"## {first.rstrip('.')}", *others[-1:]])


def section(name: str) -> str:
    """The heading of a benchmark and what it printed, or why it did not."""
    script = ROOT / "tests" / "benchmarks" / f"bench_{name}.py"
    heading = heading_of(ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or name)
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    try:
        run = subprocess.run(
            [sys.executable, str(script)],
            env={**os.environ, **threads},
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{heading}\n\nNot finished within {TIMEOUT} seconds.\n"
    if run.returncode:
        reason = (run.stderr.strip() or f"exit code {run.returncode}").splitlines()[-1]
        return f"{heading}\n\nNo numbers: `{reason}`\n"
    return f"{heading}\n\n```text\n{run.stdout.strip()}\n```\n"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=BENCHMARKS, metavar="NAME")
    head = HEAD.format(machine=machine(), versions=versions())
    parts = [section(name) for name in parser.parse_args().only]
    PAGE.write_text("\n".join([head, *parts]), encoding="utf-8")


if __name__ == "__main__":
    main()
