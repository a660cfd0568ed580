# %% [markdown]
# # How sure are we that the model is miscalibrated?
#
# A calibration error is never zero. Ten patients who were told 70% cannot make exactly seven cases in every bin, so a
# perfect model shows an error too. An error by itself therefore says little: the question is whether it is larger than
# chance makes it, and how large it may be in truth. That is three questions, and each has its own tool:
#
# 1. Is it more than chance? A test (`pseudo_label_test`, `calibration_tests`).
# 2. How large is it? An interval (`bootstrap`).
# 3. Is it larger than that of another model? A comparison (`compare_forecasts`).
#
# The data are shipped, and their probabilities are out of sample: 297 patients of the Cleveland clinic, with the
# predictions of a logistic regression and of naive Bayes, and 846 silhouettes of vehicles with those of a quadratic
# discriminant analysis (UCI Machine Learning Repository, CC BY 4.0).

# %%
import matplotlib.pyplot as plt
import pandas as pd

import calstat as cs
from calstat.datasets import load_heart_disease, load_vehicle

df = load_heart_disease()
y = df["disease"]
models = {"logistic regression": df["p_logistic"], "naive Bayes": df["p_naive_bayes"]}
{name: round(cs.ece(y, p, bins=10), 3) for name, p in models.items()}

# %% [markdown]
# ## What would a calibrated model show?
#
# If a model is calibrated, its patients are as good as drawn from its probabilities. So draw them: give every patient
# an outcome with the predicted probability, compute the error, and do that 10,000 times. This is what the error looks
# like when nothing is wrong, for these very predictions and this number of patients.

# %%
tests = {name: cs.pseudo_label_test(y, p, bins=10, rng=1) for name, p in models.items()}
figure, axes = plt.subplots(1, 2, figsize=(11, 4), sharex=True, layout="constrained")
for ax, (name, test) in zip(axes, tests.items(), strict=True):
    test.plot(ax=ax)
    ax.set_title(name, loc="left")
plt.show()

# %%
print(tests["logistic regression"])
print()
print(tests["naive Bayes"])

# %% [markdown]
# The error of the logistic regression, 0.054, sounds like something to repair. A calibrated model would show 0.045 with
# so few patients, and in 22% of such samples 0.054 or more. That of naive Bayes is out of reach of all 10,000 draws.
# Its p-value is 1/10,001 and not 0: draws cannot show that something never happens.

# %% [markdown]
# ## One number of bins is one way to look
#
# Ten bins are a choice, and p-values from several choices differ:

# %%
pd.DataFrame(
    {
        name: {bins: cs.pseudo_label_test(y, p, bins=bins, rng=1).pvalue for bins in (5, 10, 15, 20)}
        for name, p in models.items()
    }
).rename_axis("bins").round(4)

# %% [markdown]
# For the logistic regression they range from 0.02 to 0.22. Who tries four and reports the smallest is not testing at
# 5%. Choose the bins before looking, or use tests without bins, and count how many were made: the battery runs ten
# and adjusts their p-values for that.

# %%
batteries = {name: cs.calibration_tests(y, p, rng=1).to_frame() for name, p in models.items()}
pd.concat({name: b[["pvalue", "pvalue_holm"]] for name, b in batteries.items()}, axis=1).round(3)

# %% [markdown]
# Nothing is left against the logistic regression. That does not prove that it is calibrated: with 297 patients a small
# fault would not be seen. Nine of ten tests refute naive Bayes. The one that does not asks only whether disease is as
# frequent as predicted over all patients, and it is: the model promises too much on one side and too little on the
# other. A test that sees nothing of that is no comfort; what each can see is in the `sees` column.

# %% [markdown]
# ## How large is it, then?
#
# A p-value does not say how large an error is. The interval does. The usual bootstrap percentiles are shown beside it:

# %%
rows = {}
for name, p in models.items():
    result = cs.bootstrap(cs.ece, y, p, bins=10, rng=1)
    for method in ("inversion", "percentile"):
        low, high = result.conf_int(method=method)
        rows[name, method] = {"estimate": result.estimate, "low": low, "high": high}
pd.DataFrame(rows).T.round(3)

# %% [markdown]
# The error of the logistic regression in the population may be anything from 0 to 0.07; that of naive Bayes is at least
# 0.08. The percentiles exclude 0 for both. They always do, even for a perfect model, because every resample has an
# error of its own: [this page](../docs/explanation/why_ece_intervals_fail.md) shows it in a picture.

# %% [markdown]
# ## Is one model worse than the other?
#
# One error is significant and the other is not; that is not yet a significant difference. The comparison uses the same
# patients for both. The Brier score measures calibration and discrimination together, the squared calibration error
# the former alone, with its bias taken off.

# %%
for score in ("brier", "squared_ece"):
    test = cs.compare_forecasts(y, *models.values(), score=score)
    print(f"{score:12} difference {test.details['difference']:.4f}, p = {test.pvalue:.3f}, "
          f"interval {test.details['ci_low']:.4f} to {test.details['ci_high']:.4f}")  # fmt: skip

# %% [markdown]
# The intervals lean towards the logistic regression, and neither excludes 0: with 297 patients, it is certain that naive
# Bayes is miscalibrated, and not certain that it is the worse of the two.

# %% [markdown]
# ## Several classes
#
# For the vehicles there is an error for every class. Four tests were made, so that the p-values of the classes are
# adjusted as well.

# %%
vehicles = load_vehicle()
columns = ["p_bus", "p_opel", "p_saab", "p_van"]
test = cs.pseudo_label_test(vehicles["vehicle"], vehicles[columns], "classwise_ece", bins=15, rng=1)
print(test)
test.by_class.round(4)

# %% [markdown]
# All four classes are off, most of all Opel and Saab, which are hard to tell apart. [Which classes are
# biased](multiclass.py) puts them right. A map that was fitted on the same rows cannot be tested on them: draw the line
# first, fit on one half, and test on the other.

# %%
train, new = vehicles.iloc[::2], vehicles.iloc[1::2]
formula = "vehicle ~ p_bus + p_opel + p_saab + p_van"
temperature = cs.TemperatureScaling.from_formula(formula, train, scores="probability").fit()
after = temperature.predict(new[columns])
print(cs.pseudo_label_test(new["vehicle"], after, "classwise_ece", bins=15, rng=1))

# %% [markdown]
# On rows that the temperature has not seen, the error is what calibrated probabilities would show. Half the rows are
# fewer rows, though, and the test sees less.

# %% [markdown]
# ## When a statistic is slow
#
# Any function of (y, p) can be tested so. If each draw takes long, let the test stop once chance has matched the
# observed value often enough: 20 times here. A model that is plainly fine needs few draws; only doubtful ones
# need thousands.

# %%
print(cs.pseudo_label_test(y, models["logistic regression"], cs.ici, stop_after=20, n_resamples=2000, rng=1))
