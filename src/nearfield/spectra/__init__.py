"""Preprocessing of spectra, as scikit-learn transformers.

Rows are spectra, columns are wavelengths in equal steps. The number of columns stays the same, so
that results can be drawn on the spectrum; `SpectraRecipes` alone puts several results side by side,
as ``NearfieldClassifier(preprocess="spectra")`` does. None of the transformers takes labels: in a
pipeline they come before a classifier.
"""

from nearfield.spectra._recipes import Recipe, SpectraRecipes
from nearfield.spectra._transformers import (
    MultiplicativeScatterCorrection,
    SavitzkyGolay,
    StandardNormalVariate,
)

__all__ = [
    "MultiplicativeScatterCorrection",
    "Recipe",
    "SavitzkyGolay",
    "SpectraRecipes",
    "StandardNormalVariate",
]
