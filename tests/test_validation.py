"""Input checks: what is read, what is refused, and in which words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from calstat._input.validation import (
    align,
    check_alpha,
    check_binary,
    check_choice,
    check_count,
    check_eps,
    check_groups,
    check_multiclass,
    check_rng,
    check_sample,
    check_weights,
)
from calstat.exceptions import InputError, LabelError, MissingDataError, ProbabilityError

P2 = [0.1, 0.9]
P3 = [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1], [0.1, 0.8, 0.1]]


# -- binary labels -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "event", "nonevent"),
    [
        ([0, 1], 1, 0),
        ([0.0, 1.0], 1, 0),
        (np.array([0, 1], dtype=np.uint8), 1, 0),
        ([False, True], True, False),
        (np.array([False, True], dtype=object), True, False),
        ([-1, 1], 1, -1),
        (pd.Series([0, 1], dtype="Int64"), 1, 0),
        (pd.Series([False, True], dtype="boolean"), True, False),
        (pd.Series(["no", "yes"], dtype="category"), "yes", "no"),
        (pd.Categorical(["no", "yes"], categories=["no", "maybe", "yes"]), "yes", "no"),
        (pd.Categorical(["yes", "no"], categories=["yes", "no"]), "no", "yes"),
    ],
)
def test_the_event_is_read_from_the_coding(y: object, event: object, nonevent: object) -> None:
    sample = check_binary(y, P2)
    assert (sample.event, sample.nonevent) == (event, nonevent)
    assert sample.y.tolist() == [0.0, 1.0]


def test_a_one_two_coding_is_taken_with_a_remark() -> None:
    sample = check_binary([1, 2, 2], [0.1, 0.2, 0.3])
    assert sample.y.tolist() == [0.0, 1.0, 1.0]
    assert "2 was taken as the event" in sample.notes[0]


def test_strings_need_the_event_and_the_message_names_both_labels() -> None:
    with pytest.raises(LabelError, match=r"'eggs', 'spam'.*event='spam'"):
        check_binary(["spam", "eggs"], P2)
    sample = check_binary(["spam", "eggs"], P2, event="spam")
    assert sample.y.tolist() == [1.0, 0.0]
    assert sample.nonevent == "eggs"


def test_the_event_may_be_either_label_of_a_number_coding() -> None:
    assert check_binary([0, 1], P2, event=0).y.tolist() == [1.0, 0.0]
    with pytest.raises(LabelError, match=r"`event` is 2, but the labels in `y` are 0, 1"):
        check_binary([0, 1], P2, event=2)
    with pytest.raises(LabelError, match=r"`event` is 1, but the labels in `y` are '0', '1'"):
        check_binary(["0", "1"], P2, event=1)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 0.5], r"y\[1\] = 0.5"),
        ([0, 2], r"y\[1\] = 2"),
        ([2, 2], r"neither 0 nor 1"),
        (["a", "b", "c"], r"got 3: 'a', 'b', 'c'"),
        (pd.Categorical(["a", "a"], categories=["a", "b", "c"]), r"two used levels"),
    ],
)
def test_labels_that_are_not_binary_are_refused(y: object, message: str) -> None:
    with pytest.raises(LabelError, match=message):
        check_binary(y, [0.5] * len(y))  # type: ignore[arg-type]  # every case has a length


@pytest.mark.parametrize("y", [[0, None], [0, np.nan], pd.Series([0, None], dtype="Int64"), ["a", None], [0, np.inf]])
def test_missing_labels_are_refused_with_their_row(y: object) -> None:
    with pytest.raises(MissingDataError, match=r"`y`.*y\[1\]"):
        check_binary(y, P2)


def test_swapped_arguments_are_noticed() -> None:
    with pytest.raises(LabelError, match=r"swapped\? The order is \(y, p\)"):
        check_binary([0.1, 0.7, 0.3], [0, 1, 1])


# -- probabilities -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "error", "message"),
    [
        ([10.0, 95.0], ProbabilityError, r"2 of 2 values do not, the first is p\[0\] = 10. Were percentages passed"),
        ([-1.3, 2.2], ProbabilityError, r"p\[0\] = -1.3. Were logits passed"),
        ([0.1, np.nan], MissingDataError, r"p\[1\] = nan"),
        ([0.1, np.inf], MissingDataError, r"p\[1\] = inf"),
        (["a", "b"], InputError, r"`p` must be numeric, got strings"),
        ([True, False], InputError, r"got bools"),
        ([0.1, "b"], InputError, r"must be numeric"),
        ([1j, 0.5], InputError, r"complex"),
        ([], InputError, r"`p` is empty"),
        (0.5, InputError, r"must be a vector"),
        ([[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]], InputError, r"one or two columns"),
        ([[0.2, 0.9], [0.1, 0.9]], ProbabilityError, r"row 0 with sum 1.1"),
        ([0.1, 0.2, 0.3], InputError, r"`y` and `p` must have the same length, got 2 and 3"),
    ],
)
def test_what_is_not_a_probability_is_refused(p: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        check_binary([0, 1], p)


def test_rounding_at_the_ends_is_clipped_and_the_input_left_alone() -> None:
    p = np.array([1.0000001, -1e-17, 1.0 + 5e-7])
    before = p.tobytes()
    assert check_binary([0, 1, 1], p).p.tolist() == [1.0, 0.0, 1.0]
    assert p.tobytes() == before
    with pytest.raises(ProbabilityError):
        check_binary([0, 1], [1.000002, 0.5])


def test_two_columns_are_binary_with_the_event_second_or_by_name() -> None:
    assert check_binary([0, 1], [[0.9, 0.1], [0.3, 0.7]]).p.tolist() == [0.1, 0.7]
    frame = pd.DataFrame({"p_yes": [0.1, 0.7], "p_no": [0.9, 0.3]})
    assert check_binary(["no", "yes"], frame, event="yes").p.tolist() == [0.1, 0.7]
    assert check_binary(["no", "yes"], frame, event="no").p.tolist() == [0.9, 0.3]
    logits = check_binary([0, 1], [[0.0, 1.5], [2.0, -1.0]], scores="logit")
    assert logits.p.tolist() == [1.5, -3.0]


def test_nullable_and_object_numbers_are_read() -> None:
    assert check_binary([0, 1], pd.Series([0.1, 0.2], dtype="Float64")).p.tolist() == [0.1, 0.2]
    assert check_binary([0, 1], np.array([0.1, 1], dtype=object)).p.tolist() == [0.1, 1.0]
    with pytest.raises(MissingDataError):
        check_binary([0, 1], pd.Series([0.1, None], dtype="Float64"))


# -- alignment ---------------------------------------------------------------------------------------


def test_series_are_paired_by_label() -> None:
    y = pd.Series([0, 1], index=["a", "b"])
    p = pd.Series([0.9, 0.1], index=["b", "a"])
    sample = check_binary(y, p)
    assert sample.p.tolist() == [0.1, 0.9]
    assert sample.index is not None
    assert sample.index.tolist() == ["a", "b"]


def test_indexes_that_differ_are_refused() -> None:
    y = pd.Series([0, 1], index=["a", "b"])
    with pytest.raises(InputError, match=r"'b' is only in `y`"):
        check_binary(y, pd.Series([0.9, 0.1], index=["a", "c"]))
    with pytest.raises(InputError, match=r"`p` has more rows|different index"):
        check_binary(y, pd.Series([0.9, 0.1, 0.2], index=["a", "b", "c"]))


def test_repeated_labels_pair_only_when_the_indexes_are_equal() -> None:
    y = pd.Series([1, 0, 1, 0], index=[0, 0, 1, 1])
    p = pd.Series([0.9, 0.1, 0.8, 0.2], index=[0, 0, 1, 1])
    assert check_binary(y, p).p.tolist() == [0.9, 0.1, 0.8, 0.2]
    with pytest.raises(InputError, match="repeated labels"):
        check_binary(y, p.iloc[[1, 2, 0, 3]])


def test_arrays_beside_a_series_are_positional() -> None:
    index, (y, p) = align(y=pd.Series([0, 1], index=[5, 7]), p=[0.1, 0.2])
    assert index is not None
    assert index.tolist() == [5, 7]
    assert p == [0.1, 0.2]
    assert y.tolist() == [0, 1]


# -- classes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "p", "classes", "codes"),
    [
        ([0, 1, 2], P3, (0, 1, 2), [0, 1, 2]),
        ([0, 1, 1], P3, (0, 1, 2), [0, 1, 1]),
        ([1, 2, 3], P3, (1, 2, 3), [0, 1, 2]),
        ([10.0, 20.0, 30.0], P3, (10, 20, 30), [0, 1, 2]),
        (["b", "c", "a"], P3, ("a", "b", "c"), [1, 2, 0]),
        (pd.Categorical(["lo", "hi", "lo"], categories=["lo", "mid", "hi"]), P3, ("lo", "mid", "hi"), [0, 2, 0]),
        (["dog", "cat", "cat"], pd.DataFrame(P3, columns=["cat", "eel", "dog"]), ("cat", "eel", "dog"), [2, 0, 0]),
        (
            ["dog", "cat", "cat"],
            pd.DataFrame(P3, columns=["p_cat", "p_dog", "p_eel"]),
            ("cat", "dog", "eel"),
            [1, 0, 0],
        ),
        ([3, 1, 1], pd.DataFrame(P3, columns=["p1", "p2", "p3"]), (1, 2, 3), [2, 0, 0]),
        ([1, 2, 0], pd.DataFrame(P3), (0, 1, 2), [1, 2, 0]),
        (["ab", "aa", "ab"], pd.DataFrame(P3, columns=["q_aa", "q_ab", "q_ac"]), ("aa", "ab", "ac"), [1, 0, 1]),
        (["a", "b", "a"], pd.DataFrame(P3, columns=["a_prob", "b_prob", "c_prob"]), ("a", "b", "c"), [0, 1, 0]),
    ],
)
def test_classes_and_columns_find_each_other(
    y: object, p: object, classes: tuple[object, ...], codes: list[int]
) -> None:
    sample = check_multiclass(y, p)
    assert sample.classes == classes
    assert sample.y.tolist() == codes


def test_the_common_prefix_is_not_taken_for_part_of_a_label() -> None:
    """ "p_v" is common to all columns, but the labels start with v."""
    frame = pd.DataFrame(P3, columns=["p_va", "p_vb", "p_vc"])
    assert check_multiclass(["vb", "va", "vc"], frame).classes == ("va", "vb", "vc")


@pytest.mark.parametrize(
    ("y", "p", "message"),
    [
        (["a", "b", "a"], P3, r"2 distinct labels \('a', 'b'\) for 3 columns.*classes="),
        ([1, 2, 1], P3, r"2 distinct labels \(1, 2\) for 3 columns"),
        ([1, 2, 7], pd.DataFrame(P3, columns=["p1", "p2", "p3"]), r"match some labels.*not '7'"),
        (pd.Categorical(["a", "b", "a"]), P3, r"2 levels \(2 used\), but there are 3 columns"),
    ],
)
def test_unclear_classes_are_refused(y: object, p: object, message: str) -> None:
    with pytest.raises(LabelError, match=message):
        check_multiclass(y, p)


def test_given_classes_settle_the_columns() -> None:
    sample = check_multiclass(["b", "a", "b"], P3, classes=["b", "c", "a"])
    assert sample.y.tolist() == [0, 2, 0]
    assert sample.class_counts.tolist() == [2.0, 0.0, 1.0]
    with pytest.raises(LabelError, match="labels without a column: 'z'"):
        check_multiclass(["b", "z", "b"], P3, classes=["b", "c", "a"])
    with pytest.raises(LabelError, match="each of the 3 columns once"):
        check_multiclass(["b", "a", "b"], P3, classes=["b", "a"])


def test_column_names_that_say_nothing_are_matched_by_position_with_a_remark() -> None:
    sample = check_multiclass([0, 1, 2], pd.DataFrame(P3, columns=["red", "green", "blue"]))
    assert "matched by position: red=0, green=1, blue=2" in sample.notes[0]


@pytest.mark.parametrize(
    ("p", "error", "message"),
    [
        ([[0.2, 0.3]] * 3, ProbabilityError, r"3 of 3 do not, the first is row 0 with sum 0.5"),
        ([[0.5, 0.3, 0.199]] * 3, ProbabilityError, r"sum to 1"),
        ([[0.5, 0.5, np.nan]] * 3, MissingDataError, r"p\[0, 2\] = nan"),
        ([[1.5, -0.5, 0.0]] * 3, ProbabilityError, r"p\[0, 0\] = 1.5"),
        ([0.1, 0.2, 0.7], InputError, r"one column per class"),
        (np.empty((0, 3)), InputError, r"empty"),
    ],
)
def test_matrices_that_are_not_probabilities_are_refused(p: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        check_multiclass([0, 1, 2], p)


def test_a_float32_softmax_passes() -> None:
    z = np.random.default_rng(0).normal(size=(200, 10)).astype(np.float32)
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    assert check_multiclass(np.arange(200) % 10, p).p.dtype == np.float64


def test_the_shape_decides_between_binary_and_multiclass() -> None:
    assert check_sample([0, 1], [[0.9, 0.1], [0.2, 0.8]]).p.ndim == 1
    assert check_sample([0, 1], [[0.9, 0.1], [0.2, 0.8]], type="classwise").p.ndim == 2
    with pytest.raises(InputError, match=r"is for matrices"):
        check_sample([0, 1], P2, type="confidence")
    with pytest.raises(InputError, match=r"`event` is for a binary outcome"):
        check_sample([0, 1, 2], P3, event=1)


# -- weights, groups, options ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, -1], r"freq_weights\[1\] = -1"),
        ([1, np.nan], r"freq_weights\[1\] = nan"),
        ([0, 0], r"all 0"),
        ([1, 2, 3], r"shape \(2,\), got shape \(3,\)"),
        ([1, 1.5], r"whole numbers.*freq_weights\[1\] = 1.5"),
        ("w", r"names a column, but no table"),
    ],
)
def test_weights_are_checked(weights: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_weights(weights, 2, integer=True)


def test_fractions_are_weights_where_no_inference_is_made() -> None:
    weights = check_weights([0.5, 1.5], 2)
    assert weights is not None
    assert weights.tolist() == [0.5, 1.5]


def test_groups_become_codes() -> None:
    assert check_groups(["b", "a", "b"], 3).tolist() == [0, 1, 0]
    with pytest.raises(InputError, match="one label per row"):
        check_groups(["a"], 2)
    with pytest.raises(MissingDataError, match=r"groups\[1\]"):
        check_groups(["a", None], 2)


@pytest.mark.parametrize("value", [0, -1, 2.5, np.nan, np.inf, "10", True, None, [5, 10]])
def test_counts_must_be_whole_and_large_enough(value: object) -> None:
    with pytest.raises(InputError, match="`bins` must be a whole number of at least 1"):
        check_count("bins", value)


@pytest.mark.parametrize("value", [0, 1, -0.1, "0.05", None, True])
def test_levels_must_lie_between_zero_and_one(value: object) -> None:
    with pytest.raises(InputError, match="`alpha`"):
        check_alpha(value)


@pytest.mark.parametrize("value", [0, 0.5, -1e-9, None, [1e-9]])
def test_clipping_bounds_must_keep_logs_finite(value: object) -> None:
    with pytest.raises(InputError, match="`eps`"):
        check_eps(value)


@pytest.mark.parametrize("value", [-1, 1.7, "a", True, np.random.RandomState])
def test_what_is_no_source_of_randomness_is_refused(value: object) -> None:
    with pytest.raises(InputError, match="`rng` must be None"):
        check_rng(value)  # type: ignore[arg-type]  # the point of the test


def test_choices_are_listed() -> None:
    with pytest.raises(InputError, match="must be one of 'a', 'b'; got 'c'"):
        check_choice("which", "c", ("a", "b"))
