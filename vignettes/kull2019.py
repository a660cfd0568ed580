# %% [markdown]
# # Nine ways to calibrate: a published comparison, run again
#
# Kull et al. (2019, [arXiv:1910.12656](https://doi.org/10.48550/arXiv.1910.12656)) introduced Dirichlet calibration and compared
# it with eight other ways on 21 data sets with 11 classifiers each, and on deep networks. The script `studies/kull2019.py` runs
# such a comparison on any folder of predictions, using public functions of calstat only. This page reads its results, which
# are in `studies/results`, and asks what holds.
#
# The 231 score sets are not in the repository, their results are: `python studies/kull2019.py FOLDER --results
# studies/results/kull2019.csv`, which took about nine minutes of one processor, tests included.
#
# The predictions were made anew, on the same UCI data and with the same kinds of classifiers, with one split into training and
# test rows where the paper has 25. Numbers therefore differ from the printed ones; what should agree is the order.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.special import softmax
from scipy.stats import binomtest
from statsmodels.stats.proportion import proportion_confint

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
# The map is not the reason. Here a strength is judged by the predictions of other classifiers, and each set is one split; there
# it is judged on the classifier's training rows, and 25 splits are averaged before they are ranked. Done in that way, on 24 pairs
# of a data set and a classifier, L2 is first here too, with a mean rank of 2.65: [Paper, code and
# calstat](../docs/explanation/paper_code_calstat.md) has the experiment. The averaging also explains why isotonic regression, whose
# zeros cost much in a few splits, does better here than there.
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
# Shares are estimates too. The paper draws them without intervals; here they have 95% limits (Wilson), on the left for each
# method over all sets, on the right for each classifier before any calibration, over the 21 data sets:


# %%
def draw_shares(ax: plt.Axes, accepted: pd.DataFrame, title: str) -> None:
    """Share of rows in which each column holds, with its interval."""
    accepted = accepted[accepted.mean().sort_values().index]
    limits = proportion_confint(accepted.sum().to_numpy(), len(accepted), method="wilson")
    share, place = accepted.mean().to_numpy(), np.arange(accepted.shape[1])
    ax.errorbar(share, place, xerr=np.abs(np.array(limits) - share), fmt="o", capsize=3)
    ax.set(xlim=(0, 1), xlabel="share not rejected at 5%", title=title)
    ax.set_yticks(place, accepted.columns)
    ax.grid(axis="x", alpha=0.4)


uncalibrated = results[results["method"] == "Uncal"].pivot_table(
    index="dataset", columns="classifier", values="p_cw_ece"
)
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
draw_shares(axes[0], scores("p_cw_ece") > 0.05, "After each method (231 sets)")
draw_shares(axes[1], uncalibrated > 0.05, "Before calibration, by classifier (21 sets)")
plt.show()

# %% [markdown]
# "Not rejected" is not "calibrated": a test on a hundred rows rejects little. The limits on the left take the sets as
# independent, which eleven classifiers on one data set are not, so they are somewhat too narrow. Those on the right rest
# on 21 data sets each and are wide: a neural network passes more often than naive Bayes, nearest neighbours or discriminant
# analysis, but the order of those in the middle is not known.

# %% [markdown]
# ## Deep networks
#
# Fourteen networks that classify small photographs: eleven for the ten classes of CIFAR-10, and three for the hundred classes of
# CIFAR-100. Three of the eleven (`c10lt`) have training and validation photographs in which some classes are rare, and test
# photographs in which none is. The maps are fitted to validation logits in
# five folds, and averaged; strengths of penalties are those with the lowest log-loss on rows left out. The two Dirichlet
# maps work on log probabilities, the others on logits. Test log-loss, on 10,000 photographs:

# %%
networks = pd.read_csv("../studies/results/kull2019_networks.csv")
networks["cw_ece_sum"] = networks["cw_ece"] * networks["n_classes"]
six = ["Uncal", "TempS", "VecS", "DirL2", "DirODIR", "MS-ODIR"]
losses = scores("log_loss", networks, [*six, "MS-ODIR-zero"])
losses.round(3)

# %%
ranks = cs.rank_table(losses[six])
print(ranks)
ranks.plot(title="Test log-loss of fourteen networks")
plt.show()

# %% [markdown]
# Matrix ODIR is first on eleven of the fourteen. Fourteen tasks make a critical difference of two ranks, so it cannot be told from
# the Dirichlet maps by ranks alone, but it can from vector and temperature scaling. (Networks of one family, judged on the
# same photographs, are not quite independent tasks.)
#
# With 100 classes a full map has 10,100 parameters and 4,000 rows to learn them from. It comes first there too, with a strong
# penalty: the grid of strengths reaches further up. Vector scaling, with 199 parameters, is no better there than no map:

# %%
by_classes = ranks.ranks.groupby(level="dataset").mean()
by_classes.rename({"c10": "10 classes", "c10lt": "10 classes, some rare", "c100": "100 classes"}).round(2)

# %% [markdown]
# The class-wise error, as a sum over classes like the paper's Table 3:

# %%
errors = scores("cw_ece_sum", networks, six)
errors.round(3)

# %%
error_ranks = cs.rank_table(errors)
print(error_ranks)
error_ranks.plot(title="Class-wise error of fourteen networks")
plt.show()

# %% [markdown]
# The row `resnet110_kull2019` is a network of the paper, on the very logits. Beside the printed numbers of its Tables 3 and 4:

# %%
printed = pd.DataFrame(
    {
        "log-loss, printed": [0.358, 0.209, 0.206, 0.203, 0.205, 0.204],
        "log-loss": losses.loc[("c10", "resnet110_kull2019"), six].to_numpy(),
        "class-wise error, printed": [0.098, 0.043, 0.037, 0.032, 0.039, 0.036],
        "class-wise error": errors.loc[("c10", "resnet110_kull2019")].to_numpy(),
    },
    index=six,
)
printed.round(4)

# %% [markdown]
# Better is not yet good: with 10,000 rows even small errors are plain to see. How many of the fourteen networks are not
# rejected at 5%, after each map:

# %%
pd.DataFrame({p: (scores(p, networks, six) > 0.05).sum() for p in ("p_conf_ece", "p_cw_ece")})

# %% [markdown]
# ## Are weights between classes real, and do they help?
#
# Matrix scaling gives each class a say in the logit of every other; vector scaling gives it a slope and a constant of its own
# only. The paper asked what the weights off the diagonal are good for by setting them to zero after the fit (MS-ODIR-zero).
# That confounds two things, since the rest of the map was fitted with them in place. A test asks directly: vector scaling is
# matrix scaling with 80 contrasts of weights at zero, so there is a likelihood-ratio test, and a score test that needs the fit of
# the smaller map only. Here for the eleven networks with ten classes, on the validation rows, without a penalty. (With 100
# classes there would be 9,900 such contrasts for 5,000 rows, and nothing to test.)

# %%
off = pd.read_csv("../studies/results/kull2019_off_diagonal.csv").set_index(keys).sort_index()
off[["lr", "p_lr_chi2", "score", "p_score_chi2", "p_score", "excess", "df"]].map("{:.3g}".format)

# %% [markdown]
# `excess` says by how much the variance of the score statistic exceeds that of its chi-square law: beyond 0.05 chi-square p-values
# (`p_lr_chi2`, `p_score_chi2`) are not to be trusted, and for the eight networks with 5,000 validation rows it is 0.2 to 0.7.
# Sharp probabilities do that: a few surprising photographs decide. `p_score` is the p-value from labels that were drawn 999 times from the fitted vector scaling, which is
# fitted to each anew (`compare_models(maps, n_resamples=999, simulate="score")`).
#
# Do the weights help on the test rows? Differences in log-loss for the same photographs, in thousandths, with 95% intervals:

# %%
questions = {
    "penalised": "matrix ODIR\nless vector scaling",
    "zeroed": "matrix ODIR with zeros\nless matrix ODIR",
    "plain": "matrix, no penalty,\nless vector scaling",
}
place = np.arange(len(off))[::-1]
figure, axes = plt.subplots(1, 3, figsize=(10.5, 4.4), sharey=True, layout="constrained")
for ax, (name, title) in zip(axes, questions.items(), strict=True):
    ax.errorbar(1000 * off[name], place, xerr=1960 * off[f"{name}_se"], fmt="o", capsize=3)
    ax.axvline(0.0, color="0.5", lw=1)
    ax.set(title=title, xlabel="difference, thousandths")
axes[0].set_yticks(place, [f"{data} {net}" for data, net in off.index])
plt.show()

# %% [markdown]
# - *Are they real?* Yes: the drawn p-values lie between 0.001 and 0.014, and all eleven stay below 0.05 with Holm's correction.
#   The chi-square ones are smaller, by a factor of 900 for `resnet110_mukhoti2020`; it happens not to change the answer here.
# - *Do they help?* With a penalty, matrix ODIR is better than vector scaling on all eleven, clearly so on seven or eight.
#   Networks that were trained with the focal loss gain the least.
# - *Without a penalty* the same weights cost more than they bring on six of the eight networks with 5,000 validation rows.
#   There are about 200 to 270 wrong answers in these, and 80 weights learnt from so few are too noisy, real as they are. The three
#   with rare classes have 1,000 to 2,800 wrong answers to learn from, and two of them gain.
# - *Setting them to zero* after the fit mostly costs as much as they had brought, or more, since the diagonal that is left was
#   fitted beside them. On `resnet110_SD_sctl` it helps. There all maps with a constant for each class lose to a temperature: they learn
#   from the validation rows how common each class is, and in the test rows that is different.

# %% [markdown]
# ## One network, closely
#
# The logits of `resnet110_kull2019` are among the test data of the repository (markus93/NN_calibration, MIT licence). How much of
# its miscalibration is one temperature, how much one slope and constant per class, and are weights between classes needed? On the
# validation rows, without a penalty:

# %%
logits = np.load("../tests/reference/multiclass/c10_resnet110.npz")
names = np.array(["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"])
y, z = names[logits["val_labels"]], logits["val_logits"].astype(float)
y_test, z_test = names[logits["test_labels"]], logits["test_logits"].astype(float)
maps = [model(y, z).fit() for model in (cs.TemperatureScaling, cs.VectorScaling, cs.MatrixScaling)]
print(cs.compare_models(maps))

# %% [markdown]
# Each step is more than chance, and the table above says the same of the last one without the chi-square law. Real is not the
# same as worth its price: AIC prefers vector scaling, BIC one temperature. A penalty is what makes the 99 parameters of the full
# map pay, as the test log-losses show.
#
# ### Before and after
#
# The test photographs. Above, the probability of the most probable class, before and after temperature scaling. Below, the
# probability of one class, "cat", after temperature scaling and after a Dirichlet map with ODIR of the strength that was chosen
# above. Bars are intervals of each bin; the shaded band is where a calibrated network would lie.

# %%
dirichlet = cs.DirichletCalibration(y, z, scores="logit", penalty=cs.ODIR(10, mu=0.1)).fit()
before = softmax(z_test, axis=1)
temperature, after = maps[0].predict(z_test), dirichlet.predict(z_test)
cat = list(dirichlet.classes).index("cat")
panels = {
    "Most probable class, uncalibrated": (y_test, before, {"type": "confidence"}),
    "Most probable class, temperature": (y_test, temperature, {"type": "confidence"}),
    "Cat, temperature": (y_test == "cat", temperature[:, cat], {"event": True}),
    "Cat, Dirichlet map": (y_test == "cat", after[:, cat], {"event": True}),
}
figure, axes = plt.subplots(2, 2, figsize=(9.5, 10), layout="constrained")
for ax, (title, (outcome, p, reading)) in zip(axes.flat, panels.items(), strict=True):
    cs.reliability_diagram(outcome, p, **reading, bins=15, rng=0, ax=ax)
    ax.set_title(f"{title}\n{ax.get_title(loc='left')}", loc="left", fontsize=9)
plt.show()

# %% [markdown]
# One temperature takes most of the error away, and what is left is still more than chance:

# %%
print(cs.pseudo_label_test(y_test, temperature, "confidence_ece", bins=15, rng=0))

# %% [markdown]
# ### What the map does
#
# The canonical form of the Dirichlet map: A has in each column the weights of one class's log probability in the logits of all,
# less the smallest; c is what becomes of the uniform prediction. A calibrated network has ones on the diagonal, zeros off it,
# and c = 0.1. Stars mark what differs from that, by 95% limits:

# %%
dirichlet.canonical().plot()
plt.show()

# %% [markdown]
# The network was too sure of every class, most of cats and dogs, whose log probabilities count for a third of what they say.
# An undecided prediction is a cat a little more often than one time in ten. No single weight between classes stands out: what
# the tests found is spread over many of them.
#
# The map may change which class is the most probable, which a temperature cannot. Counts of the test photographs after
# calibration, and their change:

# %%
cs.confusion_diagram(y_test, before, after)
plt.show()

# %%
right = [names[p.argmax(axis=1)] == y_test for p in (before, after)]
lost, won = (right[0] & ~right[1]).sum(), (right[1] & ~right[0]).sum()
print(f"{right[0].sum()} right before, {right[1].sum()} after: {won} won and {lost} lost,", end=" ")
print(f"p = {binomtest(won, won + lost).pvalue:.2f} (exact McNemar test)")

# %% [markdown]
# Of 10,000 photographs 85 change sides, about as many in either direction: the map corrects probabilities, not decisions.
#
# ### A map of three classes
#
# With three classes the map is a picture. The paper shows a neural network that tells the sex of abalones: female, infant, or
# male. Arrows lead from predictions to calibrated ones; the grey cells are where the predictions lie. The orange lines start at
# the uniform prediction and at the middles of the sides; shaded are joint 95% confidence regions for where they end.

# %%
sets = np.load("../tests/reference/multiclass/score_sets.npz")
sex = np.array(["F", "I", "M"])[sets["abalone_mlp_y"]]
abalone = cs.DirichletCalibration(sex, sets["abalone_mlp_p"]).fit_cv("odir")
cs.simplex_diagram(abalone, sets["abalone_mlp_p"])
plt.show()

# %%
print(abalone.canonical())

# %% [markdown]
# Where no class is ruled out the map does little. Where the network rules out males, or females, it says infant too rarely; the
# region at the bottom is long because hardly any prediction lies there. The canonical form says the same in numbers, with
# limits: the diagonal of A below 1, and a weight between males and females in either direction, which the network tells apart
# badly.
