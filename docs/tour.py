# %% [markdown]
# # Ten-minute tour
#
# You have a table with an outcome and the probabilities that a model gave. Here it is the shipped heart disease
# data: 297 patients, whether they have the disease, and the out-of-sample probabilities of two models.

# %%
import calstat as cs
from calstat.datasets import load_heart_disease

df = load_heart_disease()
df.head()

# %% [markdown]
# ## 1. Is it calibrated?
#
# The order of arguments is always `(y, p)`: outcome, then probability. `report` computes what is usually asked for.

# %%
report = cs.report(df["disease"], df["p_naive_bayes"])
print(report)

# %% [markdown]
# The sentences under *In words* say what the tables mean. `report.to_html("report.html")` writes the same as a web
# page, `report.to_frame()` gives the numbers. The reliability diagram shows it at a glance: on the diagonal, events
# are as frequent as predicted.

# %%
figure = cs.reliability_diagram(df["disease"], df["p_naive_bayes"], rng=0)

# %% [markdown]
# Each number of the report is also a function of its own:

# %%
y, p = df["disease"], df["p_naive_bayes"]
print(f"ECE {cs.ece(y, p):.3f}, Brier score {cs.brier_score(y, p):.3f}")
cs.reliability_table(y, p, bins=5)

# %% [markdown]
# A test states its null hypothesis, and unpacks to the statistic and the p-value.

# %%
test = cs.recalibration_test(y, p, against="logistic")
print(test)
statistic, pvalue = test

# %% [markdown]
# ## 2. What is wrong with it?
#
# A calibration map is a regression of the outcome on the predicted probability. Its coefficient table is read
# against the *identity map*, the map of a calibrated model: the columns `identity` and `z (id)`.

# %%
res = cs.LogisticCalibration.from_formula("disease ~ p_naive_bayes", data=df).fit()
print(res.summary())

# %% [markdown]
# The slope is far below 1: the log odds that the model gives are about three times as large as they should be. The
# usual attributes are there, labelled:

# %%
res.params

# %%
res.conf_int()

# %%
print(res.wald_test("slope = 1"))

# %% [markdown]
# Beta calibration has a coefficient more and may treat high and low probabilities differently.

# %%
beta = cs.BetaCalibration(y, p).fit()
print(f"AIC: logistic {res.aic:.1f}, beta {beta.aic:.1f}")
figure = beta.plot()

# %% [markdown]
# ## 3. Put it right
#
# `predict` takes new probabilities and gives calibrated ones in the same shape and with the same index;
# `get_prediction` adds intervals, which stay between 0 and 1.

# %%
new = df[["p_naive_bayes"]].iloc[[0, 1, 2]]
res.predict(new)

# %%
res.get_prediction(new).summary_frame()

# %% [markdown]
# A map is stored as JSON. Loading it runs no code.

# %%
same = cs.from_json(res.to_json())
same.predict(0.99)

# %% [markdown]
# ## What to remember
#
# - Judge a model on rows that it was not fitted on, and a map on rows that *it* was not fitted on.
# - A large p-value does not show that a model is calibrated. Look at the interval.
# - Labels that are text need `event=`; the event is printed in every summary.
# - A Series or a DataFrame keeps its index; missing values are refused in arrays, and dropped and counted in tables.
