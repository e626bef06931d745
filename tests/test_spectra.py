"""Transformers of spectra against their definitions."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import nearfield
from nearfield import DistanceNeighborsClassifier
from nearfield.spectra import (
    MultiplicativeScatterCorrection,
    SavitzkyGolay,
    StandardNormalVariate,
)

RNG = np.random.default_rng(0)
SPECTRA = RNG.normal(size=(6, 40)).cumsum(axis=1) + 5.0


@parametrize_with_checks(
    [StandardNormalVariate(), MultiplicativeScatterCorrection(), SavitzkyGolay(3, 1)]
)
def test_transformers_keep_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


def test_snv_gives_each_spectrum_mean_zero_and_deviation_one():
    found = StandardNormalVariate().fit_transform(SPECTRA)
    np.testing.assert_allclose(found.mean(axis=1), 0.0, atol=1e-12)
    np.testing.assert_allclose(found.std(axis=1, ddof=1), 1.0)
    again = StandardNormalVariate().fit_transform(3.0 * SPECTRA - 7.0)
    np.testing.assert_allclose(again, found)


def test_msc_inverts_the_line_through_the_mean_spectrum():
    transformer = MultiplicativeScatterCorrection().fit(SPECTRA)
    mean = SPECTRA.mean(axis=0)
    for spectrum, found in zip(SPECTRA, transformer.transform(SPECTRA), strict=True):
        slope, offset = np.polyfit(mean, spectrum, 1)
        np.testing.assert_allclose(found, (spectrum - offset) / slope)
    np.testing.assert_allclose(transformer.transform(0.5 * mean[None] + 2.0), mean[None])


@pytest.mark.parametrize("deriv", [0, 1, 2])
def test_savitzky_golay_is_the_derivative_of_the_local_polynomial(deriv):
    found = SavitzkyGolay(9, 3, deriv).fit_transform(SPECTRA)
    steps = np.arange(-4, 5)
    for place in (4, 17, 35):
        for spectrum, row in zip(SPECTRA, found, strict=True):
            local = np.polynomial.Polynomial.fit(steps, spectrum[place - 4 : place + 5], 3)
            expected = local.deriv(deriv)(0.0) if deriv else local(0.0)
            np.testing.assert_allclose(row[place], expected, atol=1e-9)


@pytest.mark.parametrize(
    "settings", [{"window_length": 8}, {"polyorder": 15}, {"deriv": 3}, {"deriv": -1}]
)
def test_windows_without_a_polynomial_are_refused(settings):
    with pytest.raises(ValueError, match="Expected"):
        SavitzkyGolay(**settings).fit(SPECTRA)
    with pytest.raises(ValueError, match="Expected"):
        SavitzkyGolay().fit(SPECTRA).set_params(**settings).transform(SPECTRA)


def test_a_constant_spectrum_stays_finite():
    flat = np.ones((3, 20))
    for transformer in (StandardNormalVariate(), MultiplicativeScatterCorrection()):
        assert np.isfinite(clone(transformer).fit_transform(flat)).all()


def test_a_pipeline_takes_out_offset_and_scale():
    labels = np.repeat([0, 1], 15)
    shapes = np.where(labels[:, None] == 0, np.sin(np.arange(40) / 5), np.cos(np.arange(40) / 5))
    spectra = RNG.uniform(0.5, 2.0, (30, 1)) * shapes + RNG.normal(size=(30, 1))
    model = make_pipeline(
        StandardNormalVariate(), DistanceNeighborsClassifier(inference="pseudolikelihood")
    )
    assert model.fit(spectra[::2], labels[::2]).score(spectra[1::2], labels[1::2]) == 1.0


def test_a_pipeline_with_spectra_goes_to_a_file_and_back(tmp_path):
    model = make_pipeline(
        StandardNormalVariate(),
        SavitzkyGolay(7),
        MultiplicativeScatterCorrection(),
        DistanceNeighborsClassifier(inference="pseudolikelihood"),
    )
    model.fit(SPECTRA, [0, 1, 0, 1, 0, 1])
    nearfield.save(model, tmp_path / "model.nearfield")
    again = nearfield.load(tmp_path / "model.nearfield")
    np.testing.assert_array_equal(again.predict_proba(SPECTRA), model.predict_proba(SPECTRA))
