"""The errors and warnings of calstat: one tree of each.

Every error is a ``ValueError`` as well, so that code written for other libraries catches it.
"""

from __future__ import annotations


class CalstatError(ValueError):
    """Base of all errors raised on purpose by calstat."""


class InputError(CalstatError):
    """An argument has the wrong type, shape, length or range."""


class LabelError(InputError):
    """Labels cannot be read without guessing: the event, a class or its column is not clear."""


class ProbabilityError(InputError):
    """Values given as probabilities are not probabilities."""


class MissingDataError(InputError):
    """Missing or infinite values where none are allowed."""


class NotEstimableError(CalstatError):
    """The data do not determine what was asked for."""


class NotDefinedError(CalstatError):
    """The question has no answer for this model: a test of the identity of a margin, for instance."""


class CalstatWarning(UserWarning):
    """Base of all warnings issued on purpose by calstat."""


class SeparationWarning(CalstatWarning):
    """Scores separate the classes: the maximum of the likelihood is at infinity."""


class ConvergenceWarning(CalstatWarning):
    """The optimiser stopped before its gradient test was met."""


class RankWarning(CalstatWarning):
    """The information matrix is singular: some coefficients are not determined by the data."""


class BoundaryWarning(CalstatWarning):
    """A parameter lies at the edge of its range."""


class DataWarning(CalstatWarning):
    """The data are accepted, but hold something that the reader of the result has to know."""


class NotEstimableWarning(CalstatWarning):
    """A number was returned as NaN since the data do not determine it."""
