"""SNV, MSC, and Savitzky-Golay smoothing and derivatives."""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.signal import savgol_filter
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from nearfield._checks import check_whole
from nearfield._fitting import all_or_nothing

Floats = NDArray[np.float64]


class _SpectraTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """A function of each spectrum, with nothing or little to fit."""

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the spectra, and learn what the transformation needs of them.

        Parameters
        ----------
        X : array-like, shape (n_samples, n_wavelengths)
        y : ignored
        """
        self._learn(validate_data(self, X, dtype=np.float64, ensure_min_features=2))
        return self

    def transform(self, X: Any) -> Floats:
        """Transform spectra, shape (n_samples, n_wavelengths)."""
        check_is_fitted(self)
        return self._apply(validate_data(self, X, dtype=np.float64, reset=False))

    def _learn(self, X: Floats) -> None:
        """Learn from spectra that were checked; by default nothing."""

    def _apply(self, X: Floats) -> Floats:
        raise NotImplementedError

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")


class StandardNormalVariate(_SpectraTransformer):
    r"""Standard normal variate (SNV): each spectrum less its mean, over its standard deviation.

    .. math:: x_{ij} \mapsto (x_{ij} - \bar x_i) / s_i

    Takes out the offset and the scale that scattering gives a whole spectrum. A constant spectrum
    becomes zero. Barnes, Dhanoa and Lister (1989).

    Attributes
    ----------
    n_features_in_ : int

    Examples
    --------
    >>> from nearfield.spectra import StandardNormalVariate
    >>> StandardNormalVariate().fit_transform([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]])
    array([[-1.,  0.,  1.],
           [-1.,  0.,  1.]])
    """

    def _apply(self, X: Floats) -> Floats:
        centred = X - X.mean(axis=1, keepdims=True)
        deviation = centred.std(axis=1, ddof=1, keepdims=True)
        return centred / np.where(deviation > 0.0, deviation, 1.0)


class MultiplicativeScatterCorrection(_SpectraTransformer):
    r"""Multiplicative scatter correction (MSC): each spectrum on the scale of the mean spectrum.

    With the line :math:`x_i \approx a_i + b_i m` fitted by least squares to the mean spectrum m of
    the training spectra,

    .. math:: x_{ij} \mapsto (x_{ij} - a_i) / b_i

    A spectrum that has nothing in common with the mean (b of zero) is left uncorrected by scale.
    Geladi, MacDougall and Martens (1985).

    Attributes
    ----------
    reference_ : ndarray, shape (n_wavelengths,)
        The mean of the training spectra.
    n_features_in_ : int

    Examples
    --------
    >>> from nearfield.spectra import MultiplicativeScatterCorrection
    >>> spectra = [[0.0, 1.0, 4.0], [1.0, 3.0, 9.0]]  # the second is twice the first, plus one
    >>> MultiplicativeScatterCorrection().fit_transform(spectra)
    array([[0.5, 2. , 6.5],
           [0.5, 2. , 6.5]])
    """

    reference_: Floats

    def _learn(self, X: Floats) -> None:
        self.reference_ = X.mean(axis=0)

    def _apply(self, X: Floats) -> Floats:
        mean = X.mean(axis=1, keepdims=True)
        reference = self.reference_ - self.reference_.mean()
        variation = reference @ reference
        slope = ((X - mean) @ reference / (variation if variation > 0.0 else 1.0))[:, None]
        return (X - mean) / np.where(slope == 0.0, 1.0, slope) + self.reference_.mean()


class SavitzkyGolay(_SpectraTransformer):
    """Savitzky-Golay smoothing, or a derivative: a polynomial fitted in a window about each point.

    Parameters
    ----------
    window_length : int
        Odd; spectra with fewer wavelengths take the longest that fits.
    polyorder : int
        The order of the polynomial, below the window's length.
    deriv : int
        The order of the derivative, per step of the wavelengths; 0 smooths.

    Attributes
    ----------
    n_features_in_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from nearfield.spectra import SavitzkyGolay
    >>> line = 3.0 * np.arange(20.0)[None]
    >>> SavitzkyGolay(window_length=7, deriv=1).fit_transform(line).round(6)[0, :3]
    array([3., 3., 3.])
    """

    def __init__(self, window_length: int = 15, polyorder: int = 2, deriv: int = 0) -> None:
        self.window_length = window_length
        self.polyorder = polyorder
        self.deriv = deriv

    def _learn(self, X: Floats) -> None:
        self._check_window(X.shape[1])

    def _check_window(self, n_wavelengths: int) -> None:
        check_whole(self.polyorder, "polyorder", minimum=0)
        check_whole(self.deriv, "deriv", minimum=0)
        length = check_whole(self.window_length, "window_length", minimum=1)
        if length % 2 == 0 or self.polyorder >= length or self.deriv > self.polyorder:
            raise ValueError(
                "Expected an odd window_length above polyorder, and deriv <= polyorder; got "
                f"window_length={length} for {n_wavelengths} wavelengths, "
                f"polyorder={self.polyorder}, deriv={self.deriv}. "
                "Try window_length=15, polyorder=2."
            )

    def _apply(self, X: Floats) -> Floats:
        self._check_window(X.shape[1])  # again: settings may have changed since
        longest = X.shape[1] - 1 + X.shape[1] % 2
        length = min(self.window_length, longest)
        polyorder = min(self.polyorder, length - 1)
        return savgol_filter(X, length, polyorder, deriv=self.deriv, axis=1)
