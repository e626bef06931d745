"""Several preprocessings of the same spectra, side by side."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from nearfield._fitting import all_or_nothing
from nearfield.spectra._transformers import SavitzkyGolay, StandardNormalVariate
from nearfield.spectra.axis import MIN_WAVELENGTHS

Floats = NDArray[np.float64]

_ORDINALS = ("smoothed", "first derivative", "second derivative")


class Recipe(NamedTuple):
    """A preprocessing of spectra.

    Attributes
    ----------
    has_snv : bool
        Whether standard normal variate comes first.
    deriv : int or None
        The order of the Savitzky-Golay derivative that follows; None for no filter.
    window_length : int
        The window of the filter, in wavelengths.

    Examples
    --------
    >>> from nearfield.spectra import Recipe
    >>> Recipe(has_snv=True, deriv=1).description
    'SNV, first derivative (7)'
    """

    has_snv: bool = False
    deriv: int | None = None
    window_length: int = 7

    @property
    def description(self) -> str:
        """The recipe in words."""
        words = ["SNV"] if self.has_snv else []
        if self.deriv is not None:
            words.append(f"{_ORDINALS[self.deriv]} ({self.window_length})")
        return ", ".join(words) or "as measured"

    @property
    def is_standardized(self) -> bool:
        """Whether each wavelength is to have variance one.

        Not in second derivatives, which are noise wherever the spectrum has no band: it would
        count as much as the bands.
        """
        return self.deriv != 2

    @property
    def is_possible(self) -> bool:
        """Whether the filter, if any, has a polynomial to take the derivative of."""
        if self.deriv is None:
            return True
        is_odd = isinstance(self.window_length, int) and self.window_length % 2 == 1
        return self.deriv in (0, 1, 2) and is_odd and self.window_length >= 3

    def apply(self, X: Floats) -> Floats:
        """Preprocess spectra, shape (n_samples, n_wavelengths)."""
        if self.has_snv:
            X = StandardNormalVariate().fit_transform(X)
        if self.deriv is None:
            return X
        return SavitzkyGolay(self.window_length, deriv=self.deriv).fit_transform(X)


# Chosen on the meat and the Greek olive oil spectra (1,050 wavelengths in steps of 2 nm; splits of
# seeds 100 to 111 and 200 to 239). Of first derivatives a window of 15 is better for meat, one of 7
# for oil; 31 is worse for both. Second derivatives (windows of 15 and 25) gain nothing beside them.
RECIPES = (
    Recipe(),
    Recipe(has_snv=True),
    Recipe(deriv=1),
    Recipe(deriv=1, window_length=15),
    Recipe(has_snv=True, deriv=1),
)
"""What `NearfieldClassifier` tries on spectra."""


class SpectraRecipes(TransformerMixin, BaseEstimator):
    """Preprocess spectra in several ways, and put the results side by side.

    No recipe learns from other spectra, so that nothing leaks between folds.

    Parameters
    ----------
    recipes : sequence of (has_snv, deriv, window_length)
        See `Recipe`; by default spectra as measured, SNV, first derivatives with windows of 7 and
        15, SNV and first derivative.

    Attributes
    ----------
    n_features_in_ : int
        The number of wavelengths, at least 20.

    Examples
    --------
    >>> import numpy as np
    >>> from nearfield.spectra import SpectraRecipes
    >>> spectra = np.sin(np.arange(200.0).reshape(4, 50) / 9.0)
    >>> SpectraRecipes().fit_transform(spectra).shape
    (4, 250)
    """

    def __init__(self, recipes: Sequence[tuple[bool, int | None, int]] = RECIPES) -> None:
        self.recipes = recipes

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the spectra.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_wavelengths)
        y : ignored
        """
        X = validate_data(self, X, dtype=np.float64)
        if X.shape[1] < MIN_WAVELENGTHS:
            raise ValueError(
                f"Expected spectra of at least {MIN_WAVELENGTHS} wavelengths; got "
                f"{X.shape[1]} feature(s). Leave the preprocessing of spectra out."
            )
        return self

    def transform(self, X: Any) -> Floats:
        """Preprocess spectra; the columns of one recipe come after those of another."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.hstack([Recipe(*recipe).apply(X) for recipe in self.recipes])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")
