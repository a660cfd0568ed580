"""Type names used in signatures."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
Label: TypeAlias = Any
"""A class label: a string, a number, a bool, any hashable level of a Categorical."""
RNGLike: TypeAlias = int | np.random.Generator | None
"""None, an integer seed, or a Generator, which then advances."""
Scale: TypeAlias = Literal["probability", "logit"]

__all__ = ["ArrayLike", "BoolArray", "FloatArray", "IntArray", "Label", "RNGLike", "Scale"]
