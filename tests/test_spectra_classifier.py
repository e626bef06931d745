"""`NearfieldClassifier(preprocess="spectra")`: recipes, files, decisions, refusals."""

import json

import numpy as np
import pandas as pd
import pytest
from cli_files import run

import nearfield
from nearfield import NearfieldClassifier
from nearfield.distances import DiscriminantMetric, WithinMetric, euclidean_distances_to
from nearfield.spectra import Recipe, SpectraRecipes

N_WAVELENGTHS = 40


def spectra(n_points, seed=0):
    """Draw spectra whose classes differ by a small band, under random offsets and scales."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n_points) % 2
    grid = np.linspace(0.0, 1.0, N_WAVELENGTHS)
    band = np.exp(-0.5 * ((grid - 0.6) / 0.06) ** 2)
    shape = 2.0 + np.sin(5.0 * grid) + 0.15 * labels[:, None] * band
    shape = shape + 0.02 * rng.normal(size=(n_points, N_WAVELENGTHS))
    X = rng.uniform(0.5, 2.0, (n_points, 1)) * shape + rng.normal(size=(n_points, 1))
    return X, np.array(["pure", "mixed"])[labels]


def frame(X):
    return pd.DataFrame(X, columns=[f"nm{400 + 2 * j}" for j in range(X.shape[1])])


def quick(**settings):
    settings = {"metrics": ("within",), "n_folds": 2, "random_state": 0} | settings
    return NearfieldClassifier(preprocess="spectra", **settings)


@pytest.fixture(scope="module")
def fitted():
    X, y = spectra(40)
    return quick().fit(frame(X), y)


def test_recipes_put_each_preprocessing_side_by_side():
    X, _ = spectra(5)
    recipes = SpectraRecipes()
    found = np.split(recipes.fit_transform(X), len(recipes.recipes), axis=1)
    for block, recipe in zip(found, recipes.recipes, strict=True):
        np.testing.assert_array_equal(block, Recipe(*recipe).apply(X))
    np.testing.assert_array_equal(found[0], X)


def test_new_spectra_are_told_apart_whatever_their_offset_and_scale(fitted):
    X, y = spectra(60, seed=1)
    assert (fitted.predict(frame(X)) == y).mean() > 0.9
    shifted = fitted.predict_proba(frame(3.0 * X + 5.0))
    assert (fitted.classes_[shifted.argmax(axis=1)] == y).mean() > 0.9


def test_recipes_are_weighed_with_the_estimators(fitted):
    summary = fitted.summary()
    names = [Recipe(*recipe).description for recipe in SpectraRecipes().recipes]
    assert set(summary["features"]) == set(names)
    np.testing.assert_allclose(summary["weight"].sum(), 1.0)
    by_recipe = summary.groupby("features")["log_score"].max()
    assert by_recipe.drop("as measured").max() > by_recipe["as measured"]
    assert {tuple(e.metric_params) for e in fitted.estimators_} == {("max_shrinkage",)}


def test_default_metric_whitens():
    X, y = spectra(24)
    model = NearfieldClassifier(preprocess="spectra", n_folds=2, random_state=0).fit(X, y)
    assert set(model.summary()["metric"]) == {"within"}


def test_thirds_of_first_derivatives_have_estimators_of_their_own(tmp_path):
    X, y = spectra(24)
    wide = np.repeat(X, 2, axis=1)
    model = quick(kernels=("gaussian",)).fit(wide, y)
    features = model.summary()["features"].tolist()
    for recipe in ("first derivative (7)", "first derivative (15)"):
        parts = (f"{recipe}, {part} third" for part in ("first", "second", "last"))
        assert {recipe, *parts} <= set(features)
    assert len(features) == len(set(features)) == len(SpectraRecipes().recipes) + 6
    nearfield.save(model, tmp_path / "model")
    again = nearfield.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(wide), model.predict_proba(wide))


def test_a_file_gives_the_same_predictions_and_decisions(fitted, tmp_path):
    X = frame(spectra(20, seed=2)[0])
    nearfield.save(fitted, tmp_path / "model")
    again = nearfield.load(tmp_path / "model")  # before held-out probabilities are computed
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    np.testing.assert_array_equal(again.held_out_proba_, fitted.held_out_proba_)
    np.testing.assert_array_equal(again.predict_set(X), fitted.predict_set(X))
    np.testing.assert_array_equal(again.decide(X), fitted.decide(X))
    assert again.summary().equals(fitted.summary())


def test_a_table_read_in_two_ways_decides_the_same_from_a_file(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 2
    table = pd.DataFrame({"code": rng.integers(0, 4, 60) + labels, "x": rng.normal(size=60)})
    model = NearfieldClassifier(metrics=["euclidean"], n_folds=2, random_state=0)
    model.fit(table, labels)
    assert len(model.encoder_.views_) == 2
    nearfield.save(model, tmp_path / "model")
    again = nearfield.load(tmp_path / "model")
    np.testing.assert_array_equal(again.held_out_proba_, model.held_out_proba_)


def test_an_explanation_names_wavelengths(fitted):
    explanation = fitted.explain(frame(spectra(1, seed=3)[0]))[0]
    assert len(explanation.features) == N_WAVELENGTHS
    assert explanation.features[0].feature == "nm400"
    assert any(part.attribution != 0.0 for part in explanation.features)


@pytest.mark.long
def test_partial_fit_and_many_points_take_spectra():
    X, y = spectra(2_100)
    model = quick(kernels=("gaussian",)).fit(X[:2_050], y[:2_050])
    assert model.score(X[2_050:], y[2_050:]) > 0.9
    model.partial_fit(X[2_050:], y[2_050:])
    assert len(model.labels_) == 2_100


def test_counts_are_wavelengths_and_no_codes():
    X, y = spectra(40)
    counts = frame(np.round(2.0 * X))
    assert quick().fit(counts, y).encoder_ is None


@pytest.mark.parametrize(
    ("change", "settings", "message"),
    [
        (lambda X: X.assign(site=["a", "b"] * 20), {}, "'site' of another kind"),
        (lambda X: X.mask(X.eq(X.iloc[3, 4])), {}, "missing values"),
        (lambda X: X.iloc[:, :19], {}, "at least 20 wavelengths; got 19"),
        (lambda X: X, {"averaging": "evidence"}, "stacking"),
    ],
)
def test_what_is_no_spectrum_is_refused(change, settings, message):
    X, y = spectra(40)
    with pytest.raises(ValueError, match=message):
        quick(**settings).fit(change(frame(X)), y)


def test_another_word_is_refused():
    X, y = spectra(40)
    with pytest.raises(ValueError, match="Expected preprocess among"):
        NearfieldClassifier(preprocess="images").fit(X, y)


@pytest.mark.parametrize("kind", [WithinMetric, DiscriminantMetric])
def test_a_rotation_changes_no_distance_that_whitening_learns(kind):
    # Folds of wide points are learned in the space that all points span.
    rng = np.random.default_rng(0)
    points, labels = rng.normal(size=(20, 30)), np.arange(20) % 2
    points[labels == 1, :3] += 1.0
    basis = np.linalg.svd(points, full_matrices=False)[2].T
    found = [kind().learn(p, labels).place(p) for p in (points, points @ basis)]
    distances = [euclidean_distances_to(each, each) for each in found]
    np.testing.assert_allclose(distances[0], distances[1], rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("kind", [WithinMetric, DiscriminantMetric])
def test_the_shrinkage_is_at_most_what_is_asked(kind):
    rng = np.random.default_rng(0)
    points, labels = rng.normal(size=(20, 60)), np.arange(20) % 2
    assert kind().fit(points, labels).shrinkage_ > 0.1
    assert kind(max_shrinkage=0.1).fit(points, labels).shrinkage_ == 0.1


@pytest.fixture
def table(tmp_path):
    X, y = spectra(30)
    path = tmp_path / "spectra.csv"
    frame(X).assign(kind=y).to_csv(path, index=False)
    return path


def test_the_command_fits_and_predicts_spectra(table, tmp_path):
    out = tmp_path / "model"
    result = run("fit", table, "--target", "kind", "--spectra", "--out", out)
    assert result.exit_code == 0, result.output
    assert "SNV, first derivative (7)" in result.output
    assert nearfield.load(out).preprocess == "spectra"
    predicted = run("predict", out, table)
    assert predicted.exit_code == 0, predicted.output


def test_the_command_refuses_spectra_of_other_models(table, tmp_path):
    out = tmp_path / "model"
    result = run("fit", table, "-t", "kind", "--spectra", "--model", "knn", "--out", out)
    assert result.exit_code != 0
    assert "choose nearfield" in result.output


def test_the_command_evaluates_spectra(table, monkeypatch):
    monkeypatch.setattr("nearfield.cli.evaluate._peers", lambda *_, **__: {})
    result = run("evaluate", table, "--target", "kind", "--spectra", "--folds", "2", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["settings"]["preprocess"] == "spectra"
