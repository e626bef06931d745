"""Spectra: the data sets, and the methods as a chemometrician would use them.

The settings of ``preprocess="spectra"`` were chosen on the same data sets, with splits of other
seeds.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from nearfield.benchmark.methods import METHODS, Maker, Shape
from nearfield.benchmark.problems import PROBLEMS, Problem
from nearfield.report import PLS_COMPONENTS, PLSDiscriminantAnalysis
from nearfield.spectra import Recipe, SpectraRecipes

_GOALS = {"meat": 0.05, "greek olive oil": 0.085}


SPECTRA: tuple[Problem, ...] = tuple(
    problem._replace(goal=_GOALS[problem.name]) for problem in PROBLEMS if problem.name in _GOALS
)
"""The data sets."""


def _nearfield(shape: Shape, seed: int) -> Any:
    from nearfield import NearfieldClassifier

    return NearfieldClassifier(preprocess="spectra", random_state=seed)


def _discriminant(recipe: Recipe) -> Maker:
    def make(shape: Shape, seed: int) -> Any:
        from sklearn.pipeline import make_pipeline

        return make_pipeline(SpectraRecipes((recipe,)), METHODS["shrinkage LDA"](shape, seed))

    return make


def _pls(shape: Shape, seed: int) -> Any:
    """Make PLS-DA whose preprocessing and components are chosen together."""
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import Pipeline

    steps = [("recipe", SpectraRecipes()), ("pls", PLSDiscriminantAnalysis())]
    grid = {
        "recipe__recipes": [(recipe,) for recipe in SpectraRecipes().recipes],
        "pls__n_components": list(PLS_COMPONENTS),
    }
    return GridSearchCV(Pipeline(steps), grid, scoring="neg_log_loss", cv=shape.n_folds)


SPECTRA_METHODS: Mapping[str, Maker] = MappingProxyType(
    {
        "nearfield": _nearfield,
        "nearfield, no preprocessing": METHODS["nearfield"],
        "PLS-DA": _pls,
        **{
            f"LDA, {Recipe(*recipe).description}": _discriminant(Recipe(*recipe))
            for recipe in SpectraRecipes().recipes
        },
    }
)
"""Makers of the methods by name."""
