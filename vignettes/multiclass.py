# %% [markdown]
# # Which classes are biased, and how sure are we?
#
# A classifier looks at the silhouette of a vehicle and says: bus, Opel, Saab or van, with a probability for each. Are
# these probabilities right? And if not, which class gets too much, which too little, and is that more than chance?
#
# The data are shipped: 846 silhouettes (UCI Machine Learning Repository, CC BY 4.0) with the probabilities of a quadratic
# discriminant analysis. They are out of sample, from ten-fold cross-validation: each row's come from a model that was
# fitted without that row.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import calstat as cs
from calstat.datasets import load_vehicle

df = load_vehicle()
columns = ["p_bus", "p_opel", "p_saab", "p_van"]
formula = "vehicle ~ p_bus + p_opel + p_saab + p_van"
df.groupby("vehicle")[columns].mean().round(2)

# %% [markdown]
# ## One number: the temperature
#
# Temperature scaling divides all logits by one number T. A calibrated classifier has T = 1; above 1, the probabilities
# are too sharp. The outcome is a string and the columns carry the names of the classes, so that nothing has to be coded.

# %%
temperature = cs.TemperatureScaling.from_formula(formula, df, scores="probability").fit()
print(temperature.summary())

# %% [markdown]
# T is 2.3 with an interval from 2.0 to 2.7: the probabilities are far too sharp. A covariance matrix for each class has 171
# entries, and there are some 190 rows to estimate it from. How often would a calibrated classifier look so bad? The test
# can be made without a chi-square law too, with labels that are drawn from the predicted probabilities themselves:

# %%
print(temperature.test_identity("pseudo_label", rng=1))

# %% [markdown]
# ## Is one number enough?
#
# Vector scaling gives each class a slope and a constant of its own; Dirichlet calibration lets the probability of each
# class speak for or against each other. They are nested, so a table compares them: log-likelihood, its doubled gain over
# the line before, a p-value, AIC and BIC.

# %%
options = {"scores": "probability", "eps": 1e-12}
temperature = cs.TemperatureScaling.from_formula(formula, df, **options).fit()
vector = cs.VectorScaling.from_formula(formula, df, **options).fit()
full = cs.DirichletCalibration.from_formula(formula, df).fit()
print(cs.compare_models([temperature, vector, full], n_resamples=199, rng=1))

# %% [markdown]
# The p-values come from labels drawn from the smaller map of each pair, since nearly all of these probabilities are close to
# 0 or 1, where the chi-square law is a poor reference. One number does most of the work. The step to vector scaling pays as
# well: the bias is not the same for all classes. The full map adds nothing that chance would not.

# %% [markdown]
# ## Which classes?
#
# The constants of vector scaling say which class is predicted too rarely (positive) or too often (negative), once the
# sharpness is put right; the slopes say whose probabilities are too sharp (below 1).

# %%
table = vector.coefficient_table()
table[["coef", "se", "lower", "upper", "pvalue_identity"]].round(3)

# %% [markdown]
# The full map shows the pairs. Row i, column j of W: how strongly the logarithm of the probability of class j speaks for
# class i. The colours measure the departure from the identity map; a star marks entries whose 95% interval excludes it.

# %%
figure = full.plot()

# %% [markdown]
# The canonical form is easier to read. Each column of A has its smallest entry at 0, and c is what becomes of a
# prediction that says nothing, one quarter for each class. Their limits allow for not knowing which entry is the smallest.

# %%
canonical = full.canonical()
pd.DataFrame({"c": canonical.c, "lower": canonical.c_lower, "upper": canonical.c_upper}).round(3)

# %% [markdown]
# The van is predicted too often, its constant is well below 0, and the Saab too rarely; all slopes are near one half. A
# hypothesis about single coefficients is a Wald test on their names. Do Opel and Saab, which people mix up too, need
# different slopes? These data do not say so:

# %%
print(vector.wald_test("s[opel] = s[saab]"))

# %% [markdown]
# ## A penalty, and its choice
#
# The full map has 15 free parameters. With fewer rows or more classes it needs a penalty: ODIR draws the off-diagonal
# weights and the constants towards 0. Its strength is chosen by cross-validation. The table has standard errors over rows:
# strengths that differ by less are as good as each other here.

# %%
chosen = cs.DirichletCalibration.from_formula(formula, df).fit_cv(
    [cs.ODIR(lam, lam) for lam in (1e2, 1e1, 1e0, 1e-1, 1e-2, 1e-3)], folds=5, progress=False
)
print(chosen.selection.summary())
figure = chosen.selection.plot()

# %% [markdown]
# ## What is it worth?
#
# A map should be judged on rows that it has not seen. Fitted to every second row, on the others it gives:

# %%
half, rest = df.iloc[::2], df.iloc[1::2]
maps = {
    "temperature": cs.TemperatureScaling.from_formula(formula, half, **options),
    "Dirichlet, L2": cs.DirichletCalibration.from_formula(formula, half, penalty=cs.L2(1e-2, center="identity")),
}
predictions = {"as they are": rest[columns]} | {name: m.fit().predict(rest[columns]) for name, m in maps.items()}
pd.DataFrame(
    {
        "log-loss": {name: cs.log_loss(rest["vehicle"], p) for name, p in predictions.items()},
        "class-wise ECE": {
            name: float(np.mean(cs.classwise_ece(rest["vehicle"], p))) for name, p in predictions.items()
        },
        "accuracy": {name: cs.accuracy(rest["vehicle"], p) for name, p in predictions.items()},
    }
).round(3)

# %% [markdown]
# Everything is better than the probabilities as they are. With some 420 rows the smallest map does best on new ones, the rule
# rather than an exception: take the larger map when a test, or cross-validation, asks for it.
#
# Calibrated probabilities come with their uncertainty, which is that of the map:

# %%
chosen.get_prediction(df[columns].iloc[:2]).summary_frame().round(3)

# %% [markdown]
# ## Keep it
#
# A fitted map is stored as JSON, with its coefficients and their covariance but without data, and no code is run when it
# is loaded.

# %%
text = chosen.to_json()
same = cs.from_json(text)
assert np.array_equal(same.predict(df[columns]), chosen.predict(df[columns]))
plt.close("all")
