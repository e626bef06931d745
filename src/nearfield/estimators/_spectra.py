"""Spectra in an average: each preprocessing is a view of its own."""

from typing import Any

import numpy as np

from nearfield.distances import FeatureView
from nearfield.spectra import Recipe, SpectraRecipes


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
    """Give the columns of each recipe among preprocessed spectra."""
    width = preprocess.n_features_in_
    views = []
    for place, recipe in enumerate(Recipe(*settings) for settings in preprocess.recipes):
        is_scaled = np.full(width, not recipe.is_standardized)
        columns = np.arange(width) + place * width
        views.append(FeatureView(columns, is_scaled, recipe.description))
    return views
