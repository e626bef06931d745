"""Fits that happen as a whole or not at all."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

_Parameters = ParamSpec("_Parameters")
_Estimator = TypeVar("_Estimator")
_Result = TypeVar("_Result")
_Method = Callable[Concatenate[_Estimator, _Parameters], _Result]


def all_or_nothing(
    method: _Method[_Estimator, _Parameters, _Result],
) -> _Method[_Estimator, _Parameters, _Result]:
    """Let a method that fails or is interrupted leave all attributes of its object as they were.

    A fitted estimator keeps its old answers, another one stays without. The method must set
    attributes, not change what they hold.
    """

    @wraps(method)
    def run(self: _Estimator, /, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        before = dict(vars(self))
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return run
