"""Compare every number stored from R's probcal with ours: ``python docs/scripts/r_agreement.py``.

It reads the copies in ``tests/reference`` and writes ``docs/_tables/r_agreement.md``, which the page "For users of R"
includes. Each line is one comparison: how many numbers, the largest difference, and the limit that it must keep.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import calstat as cs
from calstat.exceptions import CalstatWarning

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "docs" / "_tables" / "r_agreement.md"
BASES = {
    "platt": cs.PlattScaling,
    "beta": cs.BetaCalibration,
    "isotonic": cs.IsotonicCalibration,
    "histogram": cs.HistogramBinning,
    "temperature": cs.TemperatureScaling,
}
MODELS = {**BASES, "vector": cs.VectorScaling, "dirichlet": cs.DirichletCalibration, "ovr": cs.OneVsRest}
OPTIMUM = "the optimum"
R = "R"


@dataclass(frozen=True, slots=True)
class Agreement:
    """One line: an R function, what of it, compared with what; differences and the limit that they must keep."""

    function: str
    what: str
    against: str
    differences: np.ndarray
    limit: float

    @property
    def largest(self) -> float:
        return float(self.differences.max())

    @property
    def kept(self) -> bool:
        return self.largest <= self.limit


def read(name: str) -> Any:
    return json.loads((ROOT / "tests" / "reference" / f"{name}.json").read_text(encoding="utf-8"))


def gaps(*pairs: tuple[Any, Any], relative: bool = False) -> np.ndarray:
    """Absolute (or relative) differences of all numbers in pairs (ours, theirs)."""
    parts = []
    for ours, theirs in pairs:
        a, b = np.asarray(ours, dtype=float).ravel(), np.asarray(theirs, dtype=float).ravel()
        if a.shape != b.shape:
            raise ValueError(f"{a.shape} numbers against {b.shape}")
        parts.append(np.abs(a - b) / (np.abs(b) if relative else 1.0))
    return np.concatenate(parts)


def r_edges(bins: int) -> np.ndarray:
    """Edges as R forms them, j times 1 / bins."""
    edges = np.arange(bins + 1) * (1 / bins)
    edges[-1] = 1.0
    return edges


def metrics() -> Iterator[Agreement]:
    inputs, stored = read("metrics/inputs"), read("metrics/r_manual")
    functions = {"ece": cs.ece, "mce": cs.mce, "ace": cs.ace}
    for name, function in functions.items():
        pairs = []
        for case, values in stored.items():
            y, p = inputs[case]["y"], inputs[case]["p"]
            for row in values["by_bins"]:
                kinds = [None] if name in row else ["classwise", "confidence"]
                for kind in kinds:
                    key = name if kind is None else f"{name}_{kind}"
                    pairs.append((function(y, p, bins=r_edges(row["bins"]), type=kind), row[key]))
        yield Agreement(f"{name}()", "vector, classwise, confidence; on R's own edges", R, gaps(*pairs), 1e-12)
    pairs = []
    for case, values in stored.items():
        y, p = inputs[case]["y"], inputs[case]["p"]
        kind = "confidence" if np.ndim(p) == 2 else None
        pairs.append((cs.mmce(y, p, type=kind), values["mmce_default"]))
        pairs += [(cs.mmce(y, p, bandwidth=b["bandwidth"], type=kind), b["value"]) for b in values["mmce"]]
    yield Agreement("mmce()", "six bandwidths, vector and matrix", R, gaps(*pairs), 1e-12)
    pairs = []
    for case, values in stored.items():
        for diagram in values.get("reliability", []):
            table = cs.reliability_table(inputs[case]["y"], inputs[case]["p"], bins=r_edges(diagram["bins"]))
            filled, data = table[table["count"] > 0], diagram["data"]
            pairs += [
                (filled[k], data[v]) for k, v in (("count", "n"), ("mean_p", "confidence"), ("mean_y", "accuracy"))
            ]
    yield Agreement("reliability_diagram()", "bins: n, mean probability, event rate", R, gaps(*pairs), 1e-12)


def bins() -> Iterator[Agreement]:
    ours, theirs = [], []
    for entry in read("metrics/bin_boundaries").values():
        points = np.array(entry["p_j_over_B"], dtype=float)
        found = [cs.reliability_table([1], [x], bins=entry["bins"])["count"].to_numpy().argmax() + 1 for x in points]
        ours.append(np.abs(np.array(found) - entry["documented_index_1based"]))
        theirs.append(entry["n_disagree"])
    yield Agreement(
        "ece()",
        f"bin of each edge j / bins, as R's manual defines it (R itself misses {sum(theirs)})",
        "definition",
        np.concatenate(ours).astype(float),
        0.0,
    )


def transforms() -> Iterator[Agreement]:
    stored = read("binary/r_manual")
    p, pairs = stored["logit"]["p"], []
    for key, values in stored["logit"]["values"].items():
        text = key.removeprefix("eps_").replace("_", "-", 1) if key.startswith("eps_1e") else key[4:].replace("_", ".")
        eps = stored["logit"]["default_eps"] if key == "eps_default" else float(text)
        pairs.append((cs.logit(p, eps), values))
    yield Agreement("logit()", "five values of eps", R, gaps(*pairs), 1e-12)
    inverse = stored["inv_logit"]
    pairs = [(cs.inv_logit(np.array(inverse["x"], dtype=float)), inverse["values"])]
    yield Agreement("inv_logit()", "from -1000 to 1000", R, gaps(*pairs), 1e-15)


def fitted_logistic(kind: str) -> Iterator[Agreement]:
    inputs, stored = read("binary/inputs"), read("binary/r_manual")[kind]
    coef, theirs, se, glm_se = [], [], [], []
    for case in stored.values():
        rows = inputs[case["input"]["file"][:-4]]
        options = {"eps": case["args"]["eps"]} if kind == "beta" else {}
        score = rows[case["input"]["p" if kind == "beta" else "x"]]
        res = BASES[kind](rows["y"], score, **options).fit()
        order, sign = (["c", "a", "b"], [1, 1, -1]) if kind == "beta" else (list(res.params.index), [1, 1])
        size = max(1.0, np.abs(case["optimum"]["coef"]).max())
        ours = res.params[order].to_numpy() * sign
        coef.append((ours / size, np.array(case["optimum"]["coef"]) / size))
        theirs.append((ours / size, np.array(list(case["object"]["coefficients"].values())) / size))
        se.append((res.bse[order], case["optimum"]["std_error"]))
        glm_se.append((res.bse[order], case["glm"]["coefficients_table"]["std_error"]))
    name = f"cal_{kind}()"
    yield Agreement(name, "coefficients", OPTIMUM, gaps(*coef), 1e-9)
    yield Agreement(name, "coefficients", R, gaps(*theirs), 1e-7)
    yield Agreement(name, "standard errors, relative", OPTIMUM, gaps(*se, relative=True), 1e-7)
    yield Agreement(name, "standard errors, relative", "R's glm", gaps(*glm_se, relative=True), 1e-3)


def temperatures() -> Iterator[Agreement]:
    inputs, stored = read("binary/inputs"), read("binary/r_manual")["temperature"]
    best, theirs = [], []
    for name, case in stored.items():
        rows = inputs[case["input"]["file"][:-4]]
        if name == "m6_k2":
            z = np.column_stack([rows["z1"], rows["z2"]])
        else:
            z = cs.logit(rows["p"]) if name == "b2_logit_p" else np.array(rows["score"])
        res = cs.TemperatureScaling(rows["y"], z).fit()
        best.append((res.temperature, case["optimum"]["temperature"]))
        theirs.append((res.temperature, case["object"]["temperature"]))
    samples = read("multiclass/inputs")
    for name, case in read("multiclass/r_manual")["temperature"].items():
        if name != "b1":
            res = cs.TemperatureScaling(samples[name]["y"], samples[name]["z"]).fit()
            best.append((res.temperature, case["temperature"]))
    yield Agreement("cal_temperature()", "T, relative; vector and matrix", OPTIMUM, gaps(*best, relative=True), 1e-9)
    yield Agreement("cal_temperature()", "T, relative", R, gaps(*theirs, relative=True), 1e-6)


def softmax_maps() -> Iterator[Agreement]:
    samples, stored = read("multiclass/inputs"), read("multiclass/r_manual")
    value, above, predictions = [], [], []
    for name, case in stored["vector"].items():
        res = cs.VectorScaling(samples[name]["y"], samples[name]["z"]).fit()
        best = case["value"] if case["finite"] else case["value_infimum"]
        value.append((-res.llf / res.nobs, best))
        above.append(-res.llf / res.nobs - case["value_R"])
        if case["finite"]:
            predictions.append((res.predict(samples[case["grid_name"]]), case["grid"]))
    yield Agreement("cal_vector_scaling()", "mean log-loss", OPTIMUM, gaps(*value), 1e-10)
    yield Agreement("cal_vector_scaling()", "mean log-loss above R's", R, np.maximum(above, 0.0), 1e-10)
    yield Agreement("cal_vector_scaling()", "predictions on a grid", OPTIMUM, gaps(*predictions), 1e-7)
    value, above, predictions = [], [], []
    for name, penalties in stored["dirichlet"].items():
        for case in penalties.values():
            lam = case["lambda"]
            penalty = cs.ODIR(lam, normalize=False) if lam else None
            model = cs.DirichletCalibration(samples[name]["y"], samples[name]["p"], penalty=penalty, eps=case["eps"])
            res, P = model.fit(), np.array(samples[name]["p"])
            own = res.predict(P)[np.arange(len(P)), [list(res.classes).index(k) for k in samples[name]["y"]]]
            weights, bias = res.weights.to_numpy(), res.bias.to_numpy()
            off = weights - np.diag(np.diag(weights))
            objective = -np.log(own).mean() + lam * ((off**2).sum() + (bias**2).sum())
            value.append((objective, case["value"] if case["finite"] else case["value_infimum"]))
            above.append(objective - case["value_R"])
            if case["finite"]:
                grid = samples[f"grid_prob_k{P.shape[1]}"]
                predictions.append((res.predict(grid), case["grid"]))
    yield Agreement("cal_dirichlet()", "objective at every penalty", OPTIMUM, gaps(*value), 1e-10)
    yield Agreement("cal_dirichlet()", "objective above R's", R, np.maximum(above, 0.0), 1e-10)
    yield Agreement("cal_dirichlet()", "predictions on a grid", OPTIMUM, gaps(*predictions), 1e-7)


def group_maps() -> Iterator[Agreement]:
    inputs, stored = read("binary/inputs"), read("nonparametric/maps")
    grid, pairs = inputs["grid_binary_p"], []
    for name, case in stored["isotonic"].items():
        sample, column = name.split("_", 1)
        res = cs.IsotonicCalibration(inputs[sample]["y"], inputs[sample][column]).fit()
        pairs += [(res.predict(case["thresholds"]), case["calibrated"]), (res.predict(grid), case["grid"])]
    yield Agreement("cal_isotonic()", "map at every score, predictions", R, gaps(*pairs), 1e-12)
    pairs = []
    for case in stored["histogram"].values():
        y, p = inputs[case["input"]]["y"], inputs[case["input"]][case["column"]]
        res = cs.HistogramBinning(y, p, bins=case["breaks"]).fit()
        pairs += [
            (res.values, case["values"]),
            (res.table()["count"], case["counts"]),
            (res.predict(grid), case["grid"]),
        ]
    yield Agreement("cal_histogram()", "values, counts, predictions; on R's own edges", R, gaps(*pairs), 1e-12)


def one_vs_rest() -> Iterator[Agreement]:
    samples, stored = read("multiclass/inputs"), read("nonparametric/one_vs_rest")
    tight, exact, searched = [], [], []
    for name, case in stored.items():
        # m5_sharp_beta is separated, so nobody has an optimum; without "train" R could not predict.
        if name in {"uniform_fallback", "m5_sharp_beta"} or "train" not in case:
            continue
        sample = next(k for k in samples if name.startswith(k))
        scores, args = samples[sample][case["args"]["x"][0]], case["args"]
        options: dict[str, Any] = {k: args[k] for k in ("bins", "strategy") if k in args}
        if options.get("strategy") == "equal_freq" and sample == "m3_vehicle":
            continue  # R's quantiles miss their order statistics; the edges differ by class
        if options.get("bins") == 10:
            options["bins"] = r_edges(10)
        model = cs.OneVsRest(
            samples[sample]["y"], scores, BASES[args["method"]], **options, classes=class_codes(scores)
        )
        res = model.fit()
        pair = (res.predict(scores)[: len(case["train"])], case["train"])
        (exact if args["method"] in {"isotonic", "histogram"} else searched).append(pair)
        if case["tight"] is not None:
            tight.append((res.predict(samples[case["grid_name"]]), case["tight"]))
    yield Agreement("cal_ovr()", "Platt, beta, temperature: predictions", OPTIMUM, gaps(*tight), 1e-9)
    yield Agreement("cal_ovr()", "the same", R, gaps(*searched), 1e-6)
    yield Agreement("cal_ovr()", "isotonic, histogram: predictions; on R's own edges", R, gaps(*exact), 1e-12)


def class_codes(scores: Any) -> range:
    return range(1, len(scores[0]) + 1)


def cross_validated() -> Iterator[Agreement]:
    inputs, samples = read("binary/inputs"), read("multiclass/inputs")
    tight, exact, searched, early = [], [], [], []
    for name, case in read("nonparametric/cross_validated").items():
        sample, column, args = case["input"]["file"][:-4], case["input"]["x"], case["args"]
        multiclass = sample not in inputs
        scores = samples[sample][column[0]] if multiclass else inputs[sample][column]
        y = (samples if multiclass else inputs)[sample]["y"]
        options: dict[str, Any] = {"classes": class_codes(scores)} if multiclass else {}
        if "bins" in args:
            options["bins"] = r_edges(args["bins"])
        if args["method"] == "ovr":
            options["base"] = BASES[args.get("base_method", "platt")]
        if "lambda" in args:
            options["penalty"] = cs.ODIR(args["lambda"], normalize=False)
        model = cs.CrossValidatedCalibration(y, scores, MODELS[args["method"]], folds=case["folds"], **options)
        res = model.fit_cv(penalties="probcal") if name.endswith("dirichlet") else model.fit()
        pair = (res.oof_predictions, case["oof"])
        if case["tight"] is not None:
            tight.append((res.oof_predictions, case["tight"]))
            early.append(pair)
        else:
            (exact if name.endswith(("isotonic", "histogram")) else searched).append(pair)
    yield Agreement("cal_cv()", "out-of-fold, smooth maps; R's folds", OPTIMUM, gaps(*tight), 1e-7)
    yield Agreement("cal_cv()", "the same (R's search stops early)", R, gaps(*early), 1e-2)
    yield Agreement("cal_cv()", "out-of-fold, Platt and beta by class", R, gaps(*searched), 1e-7)
    yield Agreement("cal_cv()", "out-of-fold, isotonic and histogram; on R's own edges", R, gaps(*exact), 1e-12)


def agreements() -> list[Agreement]:
    """All comparisons, in the order of the page."""
    parts = [
        metrics, bins, transforms, partial(fitted_logistic, "platt"), partial(fitted_logistic, "beta"), temperatures,
        softmax_maps, group_maps, one_vs_rest, cross_validated,
    ]  # fmt: skip
    with warnings.catch_warnings():
        # Separated samples and constant columns are among the stored cases, and are told by our warnings.
        warnings.simplefilter("ignore", CalstatWarning)
        return [line for part in parts for line in part()]


def power_of_ten(value: float) -> str:
    """The next power of ten above a difference: a figure that does not change with the last digit."""
    return "0" if value == 0 else f"1e{max(math.ceil(math.log10(value) - 1e-9), -16)}"


def table(lines: list[Agreement]) -> str:
    head = "| R | numbers | compared with | how many | largest difference | limit |\n|---|---|---|---|---|---|\n"
    body = [
        f"| `{a.function}` | {a.what} | {a.against} | {a.differences.size} | {power_of_ten(a.largest)} | "
        f"{power_of_ten(a.limit)} |"
        for a in lines
    ]
    return head + "\n".join(body) + "\n"


def main() -> None:
    lines = agreements()
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text(table(lines), encoding="utf-8")
    print(table(lines))
    broken = [a for a in lines if not a.kept]
    if broken:
        raise SystemExit(f"{len(broken)} comparisons exceed their limit: {broken}")


if __name__ == "__main__":
    main()
