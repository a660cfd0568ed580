"""Write the tables of coverage, size and power that the documentation shows, from the counts of the studies.

    python studies/coverage_tables.py
    python studies/coverage_tables.py --merge part1.csv part2.csv

The counts are those of coverage_study.py and coverage_peers.py. Nothing on the page is written by hand but the words
in this file. The second command first adds the counts of other files, from parts of the study that were run apart; of
what two files count it keeps the longer run.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from coverage_study import (
    CLASSES,
    DRAWS,
    KINDS,
    NULL,
    RESULTS,
    ROOT,
    SIZES,
    Cell,
    Count,
    Counts,
    Row,
    evaluators,
    read,
    rows_of,
    write,
)

PAGE = ROOT / "docs" / "reference_tables" / "coverage.md"
POWER = ROOT / "docs" / "_tables" / "power_two_outcomes.md"
PEERS = RESULTS.with_name("coverage_peers.csv")
ALTERNATIVES = tuple(kind for kind in KINDS if kind not in NULL)
LEAST, LEAST_AT_100, MOST, SMOOTH_LEAST = 0.93, 0.92, 0.06, 0.04
NOT_DEFAULT = "as peers print"
BINNED = ("Hosmer-Lemeshow", "Pseudo-label test")  # sums over few bins take few values in small samples

HEAD = """# Coverage of intervals, size and power of tests

What was measured by simulation, in percent. `studies/coverage_study.py` evaluates every interval and every test on the
same samples, so that chance errors of one kind of data and n go together. Under each table stand the number of
samples an entry rests on, and the standard error that follows from it. The study can be stopped and continued:

```text
python studies/coverage_study.py --runs 5000 --processes 2
python studies/coverage_tables.py
```

The goal: every interval covers in at least 93% of samples from n = 300, in 92% at n = 100; every test rejects
calibrated predictions in at most 6%, and in at least 4% where its statistic is smooth, which with two or six events
("rare", n = 100 or 300) or in sums over few bins none is. Entries that miss the goal by more than two standard errors
are **bold**; among hundreds of entries some do so by chance. "none" is the share of samples that have no interval or
no p-value, mostly since they hold no event; it does not count as a miss.

## The data
"""

DATA = {
    "calibrated": (
        "log odds of p are normal (mean -0.4, standard deviation 1.6), labels drawn from p",
        "rows from a Dirichlet law with concentration 0.4, labels drawn from them",
    ),
    "rare": ("p from a beta law with mean 2%, labels drawn from p", "the first class has such a p"),
    "ties": ("p rounded to tenths, labels drawn from p", "rows rounded to tenths, labels drawn from them"),
    "shifted": ("log odds 0.3 lower than p says", "log odds off by -0.4 for the first class to 0.4 for the last"),
    "overconfident": ("log odds 0.7 times those of p", "proportional to the 0.7th power of the probabilities"),
    "local": ("rates 0.15 lower for p between 0.6 and 0.8", "the same for the top label, shared by the others"),
}

TRUTH = """Binned errors have ten bins of equal width, and the truth is the error of a population of a million on these
bins. `mce` and `ace` speak of the bins that hold rows in the sample, and so does their truth. Tests that
draw labels draw {draws} sets of them, which makes a test at 5% exact.
"""

NOTES = {
    2: """`squared_ece` is the square of `ece(norm=2)`, limits included. The limits of `mce` come from exact limits of
the bins; they are wide, and cover more often than they have to. The interval around the debiased error of
norm 2 (`ci_method="ustatistic"`) covers more than it has to near calibration, where its limits are wider than those of
the inversion. So do the limits of `e50`, `e90` and `emax`, which come from a band that holds the whole curve. The truth
of `smooth_ece`, `ici` and these three is the error of the true rates, smoothed as outcomes are. The model of
`val_prob`'s intercept at slope 1 is wrong where the slope is not 1, and so is its standard error;
`cov_type="HC0"` gives one that holds there.
""",
}

FORECASTS = """### Two forecasts of the same rows

Coverage of the interval for the difference in squared calibration error, `compare_forecasts(score="squared_ece")`,
beside the percentile and the bias-corrected normal interval of a paired bootstrap of the difference in `ece` (norm 1),
which calstat does not offer: the two biases cancel only when they are alike. 1000 samples an entry, 400 for the
bootstrap (n = 300, 1000, 5000 in turn), by `studies/paired_errors.py`. The log odds of the true rates are normal
(mean -0.3, standard deviation 1.6).

```{include} ../_tables/paired_errors.md
```
"""

PEER_HEAD = """## Other packages

The same samples of two outcomes, given to what other packages print by default (`studies/coverage_peers.py`), with
{draws} resamples for probcal and calzone. Their errors have bins of equal count (calzone's ECE-H: of equal width),
and the truth is the error of the population on bins of that kind.

- uncertainty-calibration 0.1.4, `get_calibration_error_uncertainties`: a mirrored bootstrap. Its `alpha` is a
  percentage: 5 was passed for 95%, where the default of 0.1 asks for 99.9%.
- probcal 0.4.0, `evaluate`: percentiles of a bootstrap that resamples events and non-events apart, so that the
  number of events never varies: the limits of whatever depends on it, as the intercept, are too narrow.
- calzone 0.1.0 (`calzone-tool` on PyPI): `get_CI` of its `bootstrap`, Wald limits of its recalibration (COX), and the
  p-values of its tests. Its Hosmer-Lemeshow tests take two degrees of freedom off.
"""


def merged(paths: Sequence[Path]) -> Counts:
    """Read several files; of what two of them count, take the longer run."""
    counts: Counts = {}
    for key, count in (item for path in paths for item in read(path).items()):
        if count.runs > counts.get(key, Count()).runs:
            counts[key] = count
    return counts


def judged(row: Row) -> bool:
    return NOT_DEFAULT not in row.name


def is_error(row: Row) -> bool:
    return not row.name.startswith(("val_prob", "brier", "log"))


def off_goal(cell: Cell, row: Row, count: Count) -> bool:
    """Whether an entry misses the goal by more than two standard errors."""
    margin = 2 * count.error
    if row.role == "interval":
        return count.rate + margin < (LEAST_AT_100 if cell.n <= 100 else LEAST)
    # Two or six events leave a statistic few values, however smooth its formula.
    few = cell.kind == "rare" and cell.n <= 300
    smooth = not few and not row.name.startswith(BINNED)
    return cell.kind in NULL and (count.rate - margin > MOST or (smooth and count.rate + margin < SMOOTH_LEAST))


def entry(cell: Cell, row: Row, count: Count | None, *, judge: bool) -> str:
    if count is None:
        return "–"
    share = f"{100 * count.rate:.1f}"
    if judge and judged(row) and off_goal(cell, row, count):
        share = f"**{share}**"
    return share + (f" ({100 * count.none / count.runs:.0f}% none)" if count.none else "")


def width(_: Cell, __: Row, count: Count | None) -> str:
    return "–" if count is None else f"{count.width / max(count.runs - count.none, 1):.3f}"


def in_order(counts: Counts, K: int) -> list[Row]:
    """Return the rows of a number of classes in the order of the study; others follow in that of the file."""
    place = {name: i for i, name in enumerate(name for f in evaluators(K) for name in rows_of(f, K))}
    return sorted(
        dict.fromkeys(row for cell, row in counts if cell.K == K), key=lambda row: place.get(row.name, len(place))
    )


def table(
    counts: Counts,
    K: int,
    role: str,
    kinds: Sequence[str],
    show: Callable[[Cell, Row, Count | None], str],
    keep: Callable[[Row], bool] = lambda _: True,
) -> str:
    """Return a markdown table of the rows of one role, sizes across, with the number of runs below."""
    rows = [row for row in in_order(counts, K) if row.role == role and keep(row)]
    sizes = [n for n in SIZES if any(cell.K == K and cell.n == n and row in rows for cell, row in counts)]
    lines = [f"| | data | {' | '.join(f'n = {n}' for n in sizes)} |", "|---|---|" + "---|" * len(sizes)]
    used = []
    for row in rows:
        for kind in kinds:
            where = [Cell(K, kind, n) for n in sizes]
            found = [counts.get((cell, row)) for cell in where]
            used += [c for c in found if c is not None]
            entries = [show(cell, row, c) for cell, c in zip(where, found, strict=True)]
            lines.append(f"| {row.name} | {kind} | {' | '.join(entries)} |")
    return "\n".join([*lines, "", samples(used), ""])


def samples(used: Sequence[Count]) -> str:
    """Say on how many samples the entries rest, and how well they are known."""
    if not used:
        return "No samples yet."
    fewest, most = min(c.runs for c in used), max(c.runs for c in used)
    number = f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"
    low, high = (100 * (0.05 * 0.95 / runs) ** 0.5 for runs in (most, fewest))
    error = f"{low:.1f}" if f"{low:.1f}" == f"{high:.1f}" else f"{low:.1f} to {high:.1f}"
    return f"{number} samples an entry; the standard error of an entry of 95 or 5 is {error} points."


def chapter(counts: Counts, K: int, title: str) -> str:
    def shown(cell: Cell, row: Row, count: Count | None) -> str:
        return entry(cell, row, count, judge=True)

    parts = [f"## {title}\n", "### Intervals at 95%\n", table(counts, K, "interval", KINDS, shown)]
    if K in NOTES:
        parts.append(NOTES[K])
    parts += ["### Mean width of the intervals of errors\n", table(counts, K, "interval", KINDS, width, is_error)]
    if K == 2:
        parts.append(FORECASTS)
    parts += ["### Size of tests at 5%\n", table(counts, K, "test", NULL, shown)]
    parts += ["### Power at 5%\n", table(counts, K, "test", ALTERNATIVES, shown, judged)]
    return "\n".join(parts)


def peer_chapter(counts: Counts) -> str:
    def shown(cell: Cell, row: Row, count: Count | None) -> str:
        return entry(cell, row, count, judge=False)

    return "\n".join(
        [
            PEER_HEAD.format(draws=DRAWS),
            "### Their intervals at 95%\n",
            table(counts, 2, "interval", KINDS, shown),
            "### Size of their tests at 5%\n",
            table(counts, 2, "test", NULL, shown),
        ]
    )


def page(counts: Counts, peers: Counts) -> str:
    titles = {2: "Two outcomes", 3: "Three classes", 10: "Ten classes"}
    chapters = [chapter(counts, K, titles[K]) for K in CLASSES]
    kinds = [f"| {name} | {two} | {several} |" for name, (two, several) in DATA.items()]
    data = "\n".join(["| name | two outcomes | several classes |", "|---|---|---|", *kinds, ""])
    return "\n".join([HEAD, data, TRUTH.format(draws=DRAWS), *chapters, peer_chapter(peers)])


def power(counts: Counts) -> str:
    """Return the power for two outcomes at n = 300 and 1000, a line for each test."""
    columns = [Cell(2, kind, n) for n in (300, 1000) for kind in ALTERNATIVES]
    tests = [row for row in in_order(counts, 2) if row.role == "test" and judged(row)]
    lines = [f"| | {' | '.join(f'{c.kind}, n = {c.n}' for c in columns)} |", "|---|" + "---|" * len(columns)]
    for row in tests:
        entries = [entry(cell, row, counts.get((cell, row)), judge=False) for cell in columns]
        lines.append(f"| {row.name} | {' | '.join(entries)} |")
    used = [counts[cell, row] for row in tests for cell in columns if (cell, row) in counts]
    fewest = min((c.runs for c in used), default=1)
    known = f"Shares of {fewest:,} samples or more; each is known to {50 / fewest**0.5:.1f} points or better."
    return "\n".join([*lines, "", known, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--peers", type=Path, default=PEERS)
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--power", type=Path, default=POWER)
    parser.add_argument("--merge", type=Path, nargs="+", default=[], help="files with counts to add to the results")
    options = parser.parse_args()
    counts = merged([options.results, *options.merge])
    if options.merge:
        write(options.results, counts)
    options.page.write_text(page(counts, read(options.peers)), encoding="utf-8")
    options.power.write_text(power(counts), encoding="utf-8")
    for (cell, row), count in sorted(counts.items()):
        if judged(row) and off_goal(cell, row, count):
            print(*cell, row.name, f"{100 * count.rate:.1f}% of {count.runs}", f"({100 * count.error:.1f})")


if __name__ == "__main__":
    main()
