# %% [markdown]
# # Nine ways to calibrate: a published comparison, run again
#
# Kull et al. (2019, [arXiv:1910.12656](https://doi.org/10.48550/arXiv.1910.12656)) introduced Dirichlet calibration and compared
# it with eight other ways on 21 data sets with 11 classifiers each, and on deep networks. The script `studies/kull2019.py` runs
# such a comparison on any folder of predictions, using public functions of calstat only. This page reads its results, which
# are in `studies/results`, and asks what holds.
#
# The 231 score sets are not in the repository, their results are: `python studies/kull2019.py FOLDER --results
# studies/results/kull2019.csv`, which took about eleven minutes of one processor, tests included.
#
# The predictions were made anew, on the same UCI data and with the same kinds of classifiers, with one split into training and
# test rows where the paper has 25. Numbers therefore differ from the printed ones; what should agree is the order.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.special import softmax

import calstat as cs

results = pd.read_csv("../studies/results/kull2019.csv")
methods = ["Uncal", "DirL2", "DirODIR", "Beta", "TempS", "VecS", "Isot", "WidthB", "FreqB"]
keys = ["dataset", "classifier"]


def scores(measure: str, table: pd.DataFrame = results, columns: list[str] = methods) -> pd.DataFrame:
    return table.pivot_table(index=keys, columns="method", values=measure)[columns]


print(results.groupby(keys).ngroups, "score sets,", results["dataset"].nunique(), "data sets")

# %% [markdown]
# ## Log-loss
#
# Each row is a data set with a classifier; the rank is that of the method among the nine.

# %%
table = cs.rank_table(scores("log_loss"))
print(table)

# %%
table.plot(title="Test log-loss")
plt.show()

# %% [markdown]
# Eleven classifiers on one data set share their rows, so these are not independent tasks: the critical difference above is too
# small. The careful comparison averages over the classifiers of each data set first.

# %%
careful = cs.rank_table(table.ranks.groupby(level="dataset").mean())
print(careful)

# %% [markdown]
# The Dirichlet map with ODIR comes first either way. Mean ranks for each classifier, and those that the paper prints for all
# together:

# %%
by_classifier = table.ranks.groupby(level="classifier").mean()
by_classifier.loc["all"] = table.mean_ranks
by_classifier.loc["paper"] = pd.Series(
    {
        "Uncal": 7.24,
        "DirL2": 2.73,
        "DirODIR": 3.48,
        "Beta": 4.21,
        "TempS": 5.66,
        "VecS": 4.38,
        "Isot": 5.93,
        "WidthB": 5.10,
        "FreqB": 6.28,
    }
)
by_classifier.round(2)

# %% [markdown]
# ODIR is first for seven classifiers and near the first for three others; the few distinct scores of the tree suit
# isotonic regression. ODIR, beta calibration and vector scaling follow each other as in the paper. L2 does not: there it is first.
# Isotonic regression does better here than there, binning worse. [Paper, code and
# calstat](../docs/explanation/paper_code_calstat.md) says what could be found out about L2.
#
# Which methods differ from the Dirichlet map with ODIR? Signed-rank tests of log-losses averaged over the classifiers of each data set:

# %%
averaged = scores("log_loss").groupby(level="dataset").mean()
cs.pairwise_wilcoxon(averaged, control="DirODIR")[["median_difference", "pvalue", "pvalue_holm"]].round(4)

# %% [markdown]
# ## Is the result calibrated?
#
# The p-value of the class-wise error, with labels drawn from the predictions: its ranks (high is good), and the share of score
# sets for which calibration is not rejected at 5%.

# %%
p_ranks = cs.rank_table(scores("p_cw_ece"), lower_is_better=False).mean_ranks
paper = pd.Series(
    {
        "Uncal": 6.50,
        "DirL2": 3.07,
        "DirODIR": 3.97,
        "Beta": 4.12,
        "TempS": 5.40,
        "VecS": 4.21,
        "Isot": 4.01,
        "WidthB": 5.98,
        "FreqB": 7.75,
    }
)
accepted = {f"{name} > 0.05": (scores(name) > 0.05).mean() for name in ("p_cw_ece", "p_conf_ece")}
pd.DataFrame({"rank of p_cw_ece": p_ranks, "printed": paper, **accepted}).loc[methods].round(2)

# %% [markdown]
# "Not rejected" is not "calibrated": a test on a hundred rows rejects little. Before calibration, classifiers differ:

# %%
uncalibrated = results[results["method"] == "Uncal"].assign(accepted=lambda d: d["p_cw_ece"] > 0.05)
uncalibrated.groupby("classifier")["accepted"].mean().sort_values().round(2)

# %% [markdown]
# ## Deep networks
#
# Eleven networks for the ten classes of CIFAR-10, three of them trained on data in which some classes are rare. The maps are
# fitted to validation logits in five folds, and averaged.

# %%
networks = pd.read_csv("../studies/results/kull2019_networks.csv")
six = ["Uncal", "TempS", "VecS", "DirL2", "DirODIR", "MS-ODIR"]
losses = scores("log_loss", networks, [*six, "MS-ODIR-zero"])
losses.round(3)

# %%
ranks = cs.rank_table(losses[six])
print(ranks)
ranks.plot(title="Test log-loss of networks")
plt.show()

# %% [markdown]
# The row `resnet110_kull2019` is a network of the paper; its printed log-losses are 0.358, 0.209, 0.206, 0.203, 0.205 and 0.204.
#
# The class-wise error, as a sum over the ten classes (printed for that row: 0.098, 0.043, 0.037, 0.032, 0.039, 0.036):

# %%
(10 * scores("cw_ece", networks, six)).round(3)

# %% [markdown]
# Do classes bias each other, that is, are the weights off the diagonal needed? `MS-ODIR-zero` is the matrix map with those
# weights set to zero after the fit. What that costs:

# %%
(losses["MS-ODIR-zero"] - losses["MS-ODIR"]).round(4).sort_values()

# %% [markdown]
# Better is not yet good: with 10,000 rows even small errors are plain to see. How many of the eleven networks are not rejected
# at 5%, after each map:

# %%
pd.DataFrame({p: (scores(p, networks, six) > 0.05).sum() for p in ("p_conf_ece", "p_cw_ece")})

# %% [markdown]
# ## One network, closely
#
# The logits of `resnet110_kull2019` are among the test data of the repository (markus93/NN_calibration, MIT licence). How much of
# its miscalibration is one temperature, how much one slope and constant per class, and are weights between classes needed? On the
# validation rows, without a penalty:

# %%
logits = np.load("../tests/reference/multiclass/c10_resnet110.npz")
y, z = logits["val_labels"], logits["val_logits"].astype(float)
maps = [model(y, z).fit() for model in (cs.TemperatureScaling, cs.VectorScaling, cs.MatrixScaling)]
print(cs.compare_models(maps))

# %% [markdown]
# Each step is more than chance by the chi-square law. (With labels drawn 199 times from the smaller map, a reference that does not
# need smooth probabilities, the p-value of the last one is 0.005.) Real is not the same as worth its price: AIC prefers vector
# scaling, BIC one temperature. A penalty is what makes the 99 parameters of the full map pay, as the table of test
# log-losses shows.
#
# The diagrams of the test rows, before and after temperature scaling, with intervals for each bin and the band within which a
# calibrated network would lie:

# %%
y_test, z_test = logits["test_labels"], logits["test_logits"].astype(float)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.6))
cs.reliability_diagram(y_test, softmax(z_test, axis=1), type="confidence", bins=15, ax=axes[0])
cs.reliability_diagram(y_test, maps[0].predict(z_test), type="confidence", bins=15, ax=axes[1])
plt.show()

# %% [markdown]
# One temperature takes most of the error away, and what is left is still more than chance:

# %%
print(cs.pseudo_label_test(y_test, maps[0].predict(z_test), "confidence_ece", bins=15, rng=0))
