"""Spectra: the data sets, and the methods as a chemometrician would use them.

The settings of ``preprocess="spectra"`` were chosen on the same data sets, with splits of other
seeds.
"""

from collections.abc import Mapping
from typing import Any

from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline

from nearfield import NearfieldClassifier
from nearfield.benchmark.methods import Maker, Shape, discriminant, nearfield
from nearfield.benchmark.problems import PROBLEMS, Problem
from nearfield.report import PLS_COMPONENTS, PLSDiscriminantAnalysis
from nearfield.spectra import Recipe, SpectraRecipes

_GOALS = {"meat": 0.05, "greek olive oil": 0.085}
_RECIPES = (
    Recipe(),
    Recipe(has_snv=True),
    Recipe(deriv=1),
    Recipe(has_snv=True, deriv=1),
    Recipe(has_snv=True, deriv=2, window_length=25),
)  # of the peers: those that the goals name


SPECTRA: tuple[Problem, ...] = tuple(
    problem._replace(goal=_GOALS[problem.name]) for problem in PROBLEMS if problem.name in _GOALS
)
"""The data sets."""


def _nearfield(shape: Shape, seed: int) -> Any:
    return NearfieldClassifier(preprocess="spectra", random_state=seed)


def _discriminant(recipe: Recipe) -> Maker:
    return lambda shape, seed: make_pipeline(SpectraRecipes((recipe,)), discriminant(shape, seed))


def _pls(shape: Shape, seed: int) -> Any:
    """Make PLS-DA whose preprocessing and components are chosen together."""
    steps = [("recipe", SpectraRecipes()), ("pls", PLSDiscriminantAnalysis())]
    grid = {
        "recipe__recipes": [(recipe,) for recipe in _RECIPES],
        "pls__n_components": list(PLS_COMPONENTS),
    }
    return GridSearchCV(Pipeline(steps), grid, scoring="neg_log_loss", cv=shape.n_folds)


SPECTRA_METHODS: Mapping[str, Maker] = {
    "nearfield": _nearfield,
    "nearfield, no preprocessing": nearfield,
    "PLS-DA": _pls,
    **{f"LDA, {recipe.description}": _discriminant(recipe) for recipe in _RECIPES},
}
"""Makers of the methods by name."""
