"""Spectra in an average: each preprocessing, of the whole spectrum or a part, is a view."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearfield.distances import FeatureView
from nearfield.spectra import Recipe, SpectraRecipes
from nearfield.spectra.axis import MIN_WAVELENGTHS

# First derivatives are also read in parts, for few bands may tell the classes apart: in the visible
# for meat, in the near infrared for oil. Over 40 splits of each (seeds 200 to 239) the thirds, with
# the second window of the derivative, take the mean log loss from 0.153 to 0.130 (meat) and from
# 0.210 to 0.188 (Greek olive oil). The first half, and thirds of four other recipes, gained less.
_PARTS = ("first third", "second third", "last third")


def check_spectra(encoder: Any) -> None:
    """Refuse tables that hold more than numbers, or have gaps; these alone are encoded."""
    if encoder is None:
        return
    columns = [str(name) for name, kind in encoder.columns_.items() if kind != "number"]
    found = f"{columns[0]!r} of another kind" if columns else "missing values"
    raise ValueError(
        'Expected numbers without gaps in every column, with preprocess="spectra"; got '
        f"{found}. Leave out columns that are no wavelengths and rows with missing values, or use "
        "preprocess=None."
    )


def spectra_views(preprocess: SpectraRecipes) -> list[FeatureView]:
    """Give the columns of each recipe among preprocessed spectra, and thirds of some."""
    width = preprocess.n_features_in_
    views = []
    for place, recipe in enumerate(Recipe(*settings) for settings in preprocess.recipes):
        columns = np.arange(width) + place * width
        views.append(_view(columns, recipe, recipe.description))
        if recipe.deriv == 1 and not recipe.has_snv and width >= len(_PARTS) * MIN_WAVELENGTHS:
            views += [
                _view(some, recipe, f"{recipe.description}, {part}")
                for some, part in zip(np.array_split(columns, len(_PARTS)), _PARTS, strict=True)
            ]
    return views


def _view(columns: NDArray[np.int64], recipe: Recipe, description: str) -> FeatureView:
    return FeatureView(columns, np.full(len(columns), not recipe.is_standardized), description)
