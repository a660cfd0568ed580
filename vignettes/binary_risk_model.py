# %% [markdown]
# # Is my risk model calibrated?
#
# A risk model says that a patient has a 90% chance of heart disease. Among patients who are told 90%, do nine in ten
# have it? That is calibration. Two models can rank patients equally well and yet differ in it, and for a decision (to
# treat, to examine further) the probability matters, not the rank.
#
# The data are shipped: 297 patients of the Cleveland clinic whose coronary arteries were examined (UCI Machine Learning
# Repository, CC BY 4.0). Two models gave each patient a probability of disease: a logistic regression and a
# Gaussian naive Bayes classifier. The probabilities are out of sample, from ten-fold cross-validation: each patient's
# comes from a model that was fitted without that patient. In-sample probabilities would look better than they are.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import calstat as cs
from calstat.datasets import load_heart_disease

df = load_heart_disease()
y = df["disease"]
models = {
    "logistic regression": df["p_logistic"],
    "naive Bayes": df["p_naive_bayes"],
}
df.describe().round(2)

# %% [markdown]
# ## Look first
#
# The reliability diagram puts the observed frequency against the predicted probability. On the diagonal the two
# agree. Points are bins with their intervals, the line is an isotonic fit, which needs no bins, and the grey band
# shows where that line would lie if the model were calibrated, given this many patients.

# %%
figure, axes = plt.subplots(1, 2, figsize=(11, 6), layout="constrained")
for ax, (name, p) in zip(axes, models.items(), strict=True):
    cs.reliability_diagram(y, p, rng=0, ax=ax)
    ax.set_title(f"{name}\n{ax.get_title(loc='left')}", loc="left")

# %% [markdown]
# The naive Bayes classifier is too sure of itself on both sides: where it says almost 0, some patients have the
# disease, and where it says almost 1, some have not. It takes its 13 predictors as independent and so counts the
# same evidence several times. The logistic regression is nearer to the diagonal.

# %% [markdown]
# ## How large is the error, and could it be chance?
#
# The expected calibration error (ECE) is the mean distance of the points from the diagonal, weighted by the number of
# patients. It is positive even for a calibrated model, since each bin's frequency is noisy. Read it beside the value
# that a calibrated model would show in a sample like this one (`expected`), and its p-value.

# %%
reports = {name: cs.report(y, p) for name, p in models.items()}
pd.concat({name: report.errors for name, report in reports.items()}).round(3)

# %% [markdown]
# The scores of the two models, with intervals: the ranking is about equally good (C statistic), the probabilities are
# not.

# %%
shown = ["C (ROC)", "Brier", "Log loss"]
pd.concat({name: report.indexes.loc[shown] for name, report in reports.items()}).round(3)

# %% [markdown]
# ## What kind of error is it?
#
# The calibration intercept and slope, a tradition in clinical prediction, come from a logistic regression of the
# outcome on the log odds of the prediction. A calibrated model has slope 1; below 1 the predictions are too extreme.
# There are two intercepts, and papers confuse them: *calibration in the large* with the slope fixed at 1 (is the
# model right on average?), and the one estimated jointly with the slope. Both are reported, by name.

# %%
fits = {name: cs.LogisticCalibration(y, p).fit() for name, p in models.items()}
pd.concat({name: fit.recalibration_table() for name, fit in fits.items()}).round(3)

# %% [markdown]
# Both are right on average. Both slopes lie below 1: the naive Bayes classifier's log odds are about three times as
# large as they should be, and even the logistic regression is somewhat overfitted, as unpenalised regressions with
# this many predictors and patients are. The joint test against the identity map leaves no doubt about naive Bayes.
# For the logistic regression it is less sure than the interval of the slope alone, because it also spends a
# degree of freedom on the intercept, where nothing is wrong:

# %%
for name, fit in fits.items():
    print(name, fit.test_identity(), sep="\n", end="\n\n")

# %% [markdown]
# Other tests ask the same question in other ways. They see different errors and need not agree.
#
# - *Hosmer-Lemeshow* compares counts in ten groups. For predictions that were not fitted on these rows it has as many
#   degrees of freedom as groups.
# - *Spiegelhalter* looks at one moment, the Brier score against its expectation.

# %%
for name, p in models.items():
    for test in (cs.hosmer_lemeshow(y, p, rng=0), cs.spiegelhalter(y, p)):
        print(f"{name}: {test}", end="\n\n")

# %% [markdown]
# ## Put it right
#
# A map that is fitted and judged on the same patients flatters itself. Half of the patients serve to learn the map,
# the other half to judge it. (With so few patients, cross-validation would waste less; two halves are easier to follow.)

# %%
half = np.random.default_rng(2).permutation(len(df)) < len(df) // 2
learn, judge = df[half], df[~half]

logistic = cs.LogisticCalibration.from_formula("disease ~ p_naive_bayes", data=learn).fit()
beta = cs.BetaCalibration.from_formula("disease ~ p_naive_bayes", data=learn).fit()
print(beta.summary())

# %% [markdown]
# The table tests each coefficient against two values: zero (`z (0)`), which asks whether the scores carry anything at
# all, and its value in the identity map (`z (id)`), which is the question here.
#
# The beta map has a coefficient more than the logistic one. Is it worth it? The lower AIC says which of the two is
# expected to do better on new patients.

# %%
print(f"AIC: logistic {logistic.aic:.1f}, beta {beta.aic:.1f}")
figure = logistic.plot()

# %% [markdown]
# On the other half:

# %%
candidates = {
    "as given": judge["p_naive_bayes"],
    "logistic map": logistic.predict(judge),
    "beta map": beta.predict(judge),
    "(logistic regression, as given)": judge["p_logistic"],
}
pd.DataFrame(
    {
        name: {
            "log loss": cs.log_loss(judge["disease"], p),
            "Brier score": cs.brier_score(judge["disease"], p),
            "ECE, 10 bins": cs.ece(judge["disease"], p),
        }
        for name, p in candidates.items()
    }
).T.round(3)

# %% [markdown]
# Two or three numbers take away nearly all of the disadvantage in log loss against the logistic regression: most of
# it was miscalibration, not worse ranking.
#
# A calibrated probability comes with an interval that says how well the map is known at that place; it is not an
# interval for the patient's outcome.

# %%
logistic.get_prediction(judge.head()).summary_frame().round(3)

# %% [markdown]
# ## What to write in the paper
#
# 1. Where the predictions come from: out of sample, and how.
# 2. The reliability diagram, with its band and the histogram of predictions.
# 3. Calibration in the large and slope, each with its interval; say which intercept it is.
# 4. If an ECE is given: its bins, what a calibrated model would show, and its p-value.
# 5. If the model was recalibrated: the map, its coefficients, and an evaluation on other patients.
#
# `cs.report(y, p).to_html("report.html")` holds items 2 to 4. The same from the command line:
#
# ```
# calstat report scores.csv --outcome disease --probs p_naive_bayes --html report.html
# ```
