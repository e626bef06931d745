import json

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from cli_files import QUICK, error_of, iris_table, run
from scipy.spatial.distance import cdist
from sklearn.pipeline import make_pipeline

import nearfield
from nearfield import (
    DistanceNeighborsClassifier,
    KNeighborsClassifierCV,
    NearfieldClassifier,
    ProbabilisticKNeighborsClassifier,
)
from nearfield.datasets import load_iris
from nearfield.plotting import ExplanationDisplay
from nearfield.prediction.explanation import (
    N_STEPS,
    Contrast,
    find_change,
    path_attributions,
    single_effects,
)
from nearfield.spectra import StandardNormalVariate

IRIS = load_iris()
X, Y = IRIS.data[::3], np.asarray(IRIS.target_names)[IRIS.target[::3]]
NEW = IRIS.data[70:72]
FAST = {"inference": "pseudolikelihood"}
MODELS = {
    "d-nn": DistanceNeighborsClassifier(**FAST),
    "graph": DistanceNeighborsClassifier(n_neighbors=5, **FAST),
    "pk-nn": ProbabilisticKNeighborsClassifier(**FAST),
    "average": NearfieldClassifier(("gaussian",), ("euclidean", "within"), n_folds=2),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param].fit(X, Y)


def log_odds(probabilities, model, why):
    first, second = (model.classes_.tolist().index(name) for name in (why.first, why.second))
    return np.log(probabilities[:, first]) - np.log(probabilities[:, second])


def test_explanations_state_the_prediction_and_the_leading_influences(model):
    explanations = model.explain(NEW, n_samples=5)
    influence = model.influence(NEW)
    for i, why in enumerate(explanations):
        np.testing.assert_allclose(why.probabilities, model.predict_proba(NEW)[i], rtol=1e-9)
        assert why.first == model.predict(NEW)[i]
        assert why.second == model.classes_[np.argsort(-model.predict_proba(NEW)[i])[1]]
        plain = sorted(range(len(Y)), key=lambda j: -abs(influence[i, j]))[:5]
        found = [(s.row, s.label) for s in why.samples]
        assert found == [(j, Y[j]) for j in plain if influence[i, j] != 0.0]
        sizes = [s.influence for s in why.samples]
        np.testing.assert_allclose(sizes, [influence[i, row] for row, _ in found], rtol=1e-9)


def test_attributions_are_those_of_a_plain_loop_along_the_path(model):
    mean = X.mean(axis=0)
    for i, why in enumerate(model.explain(NEW)):
        step = (NEW[i] - mean) / N_STEPS
        for f, feature in enumerate(why.features):
            assert (feature.feature, feature.value) == (f, NEW[i, f])
            total = 0.0
            for s in range(N_STEPS):
                ends = np.tile(mean + (s + 0.5) * step, (2, 1))
                ends[0, f] -= 0.5 * step[f]
                ends[1, f] += 0.5 * step[f]
                total += np.diff(log_odds(model.predict_proba(ends), model, why))[0]
            assert feature.attribution == pytest.approx(total, rel=1e-6, abs=1e-8)


def test_attributions_add_up_to_the_log_odds_beside_the_mean():
    model = DistanceNeighborsClassifier(**FAST).fit(X, Y)
    mean, groups = X.mean(axis=0), list(np.arange(4)[:, None])
    for point in NEW:
        both = model.predict_proba(np.stack([point, mean]))
        contrast = Contrast.from_probabilities(both[0])
        expected = -np.diff(contrast.log_odds(both))[0]
        errors = [
            path_attributions(model._proba_of, point, mean, groups, contrast, n_steps).sum()
            - expected
            for n_steps in (N_STEPS, 16 * N_STEPS)
        ]
        # The error of the midpoint rule falls with the square of the step.
        assert abs(errors[1]) < max(abs(errors[0]) / 64, 1e-6)


def wide_case(log_odds_of):
    """Give the arguments of an attribution to 120 features, of log odds that are known."""
    rng = np.random.default_rng(0)
    point, mean, slope, bend = rng.normal(size=(4, 120)) / 10.0

    def predict(points):
        half = 0.5 * log_odds_of(points, slope, bend)
        return np.exp(np.column_stack([half, -half]))  # odds will do

    return (predict, point, mean, list(np.arange(120)[:, None]), Contrast(0, 1)), slope, bend


def test_wide_attributions_are_integrals_of_derivatives():
    arguments, slope, bend = wide_case(lambda x, slope, bend: x @ slope + 0.5 * (x @ bend) ** 2)
    _, point, mean, _, _ = arguments
    gradient = slope + (0.5 * (point + mean) @ bend) * bend  # linear: the mean over the path
    # The step of 1e-7 leaves an error of that order, and rounding one of 1e-9.
    np.testing.assert_allclose(
        path_attributions(*arguments), gradient * (point - mean), rtol=1e-5, atol=1e-7
    )


def test_wide_attributions_of_log_odds_that_jump_are_not_zero():
    arguments, _, _ = wide_case(lambda x, slope, _: np.round(1e4 * (x @ slope)) / 1e4)
    _, point, mean, _, contrast = arguments
    attributions = path_attributions(*arguments)
    expected = -np.diff(contrast.log_odds(arguments[0](np.stack([point, mean]))))[0]
    assert attributions.any()
    # Both ends of each difference are rounded, with a standard deviation of 1e-4 / sqrt(12).
    standard_error = 1e-4 * np.sqrt(2 / 12 * 120 * N_STEPS)
    assert abs(attributions.sum() - expected) < 4 * standard_error < 0.1 * abs(expected)


def test_values_of_the_nearest_other_sample_change_the_class(model):
    for i, why in enumerate(model.explain(NEW)):
        other = why.nearest_other
        assert other.label == why.second == Y[other.row]
        assert why.change is not None
        replaced = NEW[i : i + 1].copy()
        for feature, value in why.change.values[:-1]:
            replaced[0, feature] = value
        assert model.predict(replaced)[0] == why.first  # the last value is needed
        feature, value = why.change.values[-1]
        replaced[0, feature] = value
        assert model.predict(replaced)[0] == why.change.label != why.first
        assert Y[why.change.row] == why.second
        assert all(value == X[why.change.row, feature] for feature, value in why.change.values)


def test_nearest_other_sample_is_nearest_in_standardized_features():
    why = DistanceNeighborsClassifier(**FAST).fit(X, Y).explain(NEW[:1])[0]
    distances = cdist(NEW[:1] / X.std(axis=0), X / X.std(axis=0))[0]
    distances[why.second != Y] = np.inf
    assert why.nearest_other.row == distances.argmin()


def test_feature_that_does_not_matter_has_no_attribution():
    constant = np.column_stack([X, np.full(len(X), 3.0)])
    new = np.column_stack([NEW, [7.0, -2.0]])
    for why in DistanceNeighborsClassifier(**FAST).fit(constant, Y).explain(new):
        assert why.features[-1].attribution == pytest.approx(0.0, abs=1e-10)
        assert max(abs(feature.attribution) for feature in why.features[:-1]) > 0.1


def test_permuted_columns_have_permuted_attributions():
    order = [2, 0, 3, 1]
    straight = DistanceNeighborsClassifier(**FAST).fit(X, Y).explain(NEW)
    permuted = DistanceNeighborsClassifier(**FAST).fit(X[:, order], Y).explain(NEW[:, order])
    for a, b in zip(straight, permuted, strict=True):
        found = [feature.attribution for feature in b.features]
        expected = [a.features[f].attribution for f in order]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-8)


def test_linear_log_odds_are_attributed_exactly_and_the_fewest_values_found():
    slopes = np.array([0.5, -1.0, 2.0, 0.0])

    def predict(points):
        p = 1.0 / (1.0 + np.exp(-points @ slopes))
        return np.column_stack([p, 1.0 - p])

    point, other = np.array([1.0, 0.5, 1.0, 9.0]), np.array([-1.0, 1.0, 0.1, -9.0])
    groups, contrast = list(np.arange(4)[:, None]), Contrast(0, 1)
    effects = single_effects(predict, point, other, groups, contrast)
    np.testing.assert_allclose(effects, slopes * (point - other), atol=1e-12)
    shares = path_attributions(predict, point, other, groups, contrast)
    np.testing.assert_allclose(shares, slopes * (point - other), atol=1e-11)
    features, new_class = find_change(predict, point, other, groups, contrast)
    assert (features.tolist(), new_class) == ([2, 0], 1)
    assert find_change(predict, point, point + 1.0, groups[2:], contrast) is None


def test_quadratic_log_odds_are_attributed_exactly():
    rng = np.random.default_rng(3)
    square = rng.normal(size=(4, 4))
    square += square.T
    point, mean = rng.normal(scale=0.5, size=(2, 4))

    def predict(points):
        p = 1.0 / (1.0 + np.exp(-np.einsum("mi,ij,mj->m", points, square, points)))
        return np.column_stack([p, 1.0 - p])

    shares = (point - mean) * (square @ (point + mean))
    for n_steps in (1, 3):
        found = path_attributions(
            predict, point, mean, list(np.arange(4)[:, None]), Contrast(0, 1), n_steps
        )
        np.testing.assert_allclose(found, shares, rtol=1e-9, atol=1e-11)
    found = path_attributions(
        predict, point, mean, [np.array([0, 2]), np.array([1, 3])], Contrast(0, 1)
    )
    np.testing.assert_allclose(found, [shares[0] + shares[2], shares[1] + shares[3]], atol=1e-10)


def test_batches_of_features_change_nothing(monkeypatch):
    model = DistanceNeighborsClassifier(**FAST).fit(X, Y)
    whole = model.explain(NEW)
    monkeypatch.setattr("nearfield.prediction.explanation._VALUES_AT_ONCE", 1)
    for a, b in zip(whole, model.explain(NEW), strict=True):
        assert [p[0] for p in a.change.values] == [p[0] for p in b.change.values]
        sizes = [[f.attribution for f in why.features] for why in (a, b)]
        np.testing.assert_allclose(*sizes, rtol=1e-9, atol=1e-10)


def mixed_table(n=60):
    rng = np.random.default_rng(0)
    colour = np.array(["red", "green", "blue"])[np.arange(n) % 3]
    dose = np.where(colour == "red", 3.0, 0.0) + rng.normal(size=n)
    dose[5] = np.nan
    size = pd.Categorical(rng.choice(["s", "m", "l"], n), ["s", "m", "l"], ordered=True)
    table = pd.DataFrame({"dose": dose, "colour": colour, "size": size, "new": dose > 1.0})
    return table, np.where(colour == "red", "a", "b")


@pytest.mark.parametrize("name", ["d-nn", "average"])
def test_tables_are_explained_by_their_own_columns_and_values(name):
    table, y = mixed_table()
    model = MODELS[name].fit(table[10:], y[10:])
    rows = table[:10]
    explanations = model.explain(rows)
    sizes = np.abs([[f.attribution for f in why.features] for why in explanations]).mean(axis=0)
    assert sizes[1] > sizes[2]  # the colour tells the class, the size tells nothing
    for i, why in enumerate(explanations):
        assert [feature.feature for feature in why.features] == list(table.columns)
        values = {feature.feature: feature.value for feature in why.features}
        row = rows.iloc[i].to_dict()
        assert values.pop("dose") == (None if np.isnan(row["dose"]) else row["dose"])
        assert all(values[key] == row[key] for key in values)
        for feature, value in why.change.values:
            known = table[feature].iloc[10 + why.change.row]
            assert value == known or (value is None and pd.isna(known))
        json.dumps(why.to_dict(), allow_nan=False)


def test_unknown_level_has_no_value_and_no_attribution():
    table, y = mixed_table()
    model = MODELS["d-nn"].fit(table.assign(colour=table["colour"]), y)
    why = model.explain(table[:1].assign(colour="violet"))[0]
    assert why.features[1].value is None
    assert why.features[1].attribution == pytest.approx(0.0, abs=1e-6)


def test_distances_alone_have_samples_and_no_features():
    model = DistanceNeighborsClassifier(metric="precomputed", **FAST).fit(cdist(X, X), Y)
    why = model.explain(cdist(NEW, X))[0]
    assert why.features == ()
    assert why.change is None
    assert len(why.samples) == 10
    assert len(why.to_frame()) == 0
    with pytest.raises(ValueError, match="Use InfluenceDisplay"):
        ExplanationDisplay(why).plot()


def test_missing_numbers_and_sparse_features_are_explained():
    gaps = NEW.copy()
    gaps[0, 1] = np.nan
    model = DistanceNeighborsClassifier(metric="nan_euclidean", **FAST).fit(X, Y)
    assert model.explain(gaps)[0].features[1].value is None
    dense = DistanceNeighborsClassifier(standardize=False, **FAST).fit(X, Y).explain(NEW)[0]
    model = DistanceNeighborsClassifier(standardize=False, **FAST).fit(sp.csr_matrix(X), Y)
    sparse = model.explain(sp.csr_matrix(NEW))[0]
    sizes = [[f.attribution for f in why.features] for why in (dense, sparse)]
    np.testing.assert_allclose(*sizes, rtol=1e-5, atol=1e-7)


def test_explanations_become_tables_and_json():
    why = MODELS["d-nn"].fit(X, Y).explain(NEW)[0]
    frame = why.to_frame("features")
    assert (frame["attribution"].abs().diff().dropna() <= 0.0).all()
    assert why.to_frame("samples")["row"].tolist() == [sample.row for sample in why.samples]
    record = json.loads(json.dumps(why.to_dict(), allow_nan=False))
    assert record["first"] == why.first
    assert record["change"]["values"][0]["feature"] == why.change.values[0][0]
    with pytest.raises(ValueError, match='Expected part as "features" or "samples"'):
        why.to_frame("points")
    with pytest.raises(AttributeError):
        why.first = "other"
    with pytest.raises(ValueError, match="n_samples"):
        MODELS["d-nn"].explain(NEW, n_samples=0)


def spectra():
    rng = np.random.default_rng(1)
    y = np.arange(30) % 2
    values = rng.normal(scale=0.3, size=(30, 25)).cumsum(axis=1)
    values[:, 10:13] += 3.0 * y[:, None]
    return pd.DataFrame(values, columns=[f"{400 + 10 * i}" for i in range(25)]), y


def test_spectra_are_drawn_on_their_axis_and_other_features_as_bars():
    frame, y = spectra()
    model = MODELS["d-nn"].fit(frame[4:], y[4:])
    display = ExplanationDisplay.from_estimator(model, frame[:1], s=33.0)
    points = display.ax_.collections[0]
    np.testing.assert_array_equal(points.get_offsets()[:, 0], 400 + 10 * np.arange(25))
    np.testing.assert_array_equal(points.get_offsets()[:, 1], frame.iloc[0])
    expected = [feature.attribution for feature in display.explanation.features]
    np.testing.assert_array_equal(points.get_array(), expected)
    assert points.get_sizes()[0] == 33.0
    bars = display.plot(kind="bars", n_features=3, linewidth=2.0).ax_.patches
    assert len(bars) == 3
    assert bars[0].get_linewidth() == 2.0
    assert set(np.argsort(-np.abs(expected))[:3]) <= {10, 11, 12}
    pipeline = make_pipeline(StandardNormalVariate(), MODELS["d-nn"]).fit(frame, y)
    ExplanationDisplay.from_estimator(pipeline, frame[:1], kind="spectrum", marker="s")
    plt.close("all")


def test_displays_refuse_what_they_cannot_draw():
    with pytest.raises(ValueError, match="Expected one point"):
        ExplanationDisplay.from_estimator(MODELS["d-nn"].fit(X, Y), X)
    with pytest.raises(ValueError, match="Expected an estimator with explain"):
        ExplanationDisplay.from_estimator(KNeighborsClassifierCV().fit(X, Y), X[:1])
    table, y = mixed_table()
    why = MODELS["d-nn"].fit(table, y).explain(table[:1])[0]
    for options, message in (
        ({"kind": "spectrum"}, "Expected numbers"),
        ({"kind": "pie"}, "Expected kind among"),
        ({"n_features": 0}, "Expected n_features >= 1"),
    ):
        with pytest.raises(ValueError, match=message):
            ExplanationDisplay(why).plot(**options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with tables that name their samples, and a model."""
    path = tmp_path_factory.mktemp("data")
    whole = iris_table(60).assign(plant=[f"P{i:02d}" for i in range(60)])
    whole.iloc[:45].to_csv(path / "iris.csv", index=False)
    whole.iloc[45:].to_csv(path / "new.csv", index=False)
    arguments = ("--target", "species", "--id", "plant", "--out", path / "iris.model")
    assert run("fit", path / "iris.csv", *arguments, *QUICK).exit_code == 0
    return path


def test_command_explains_a_row_as_python_does(folder):
    model = nearfield.load(folder / "iris.model")
    new = pd.read_csv(folder / "new.csv")
    why = model.explain(new[["sepal_length", "sepal_width", "petal_length", "petal_width"]])[4]
    arguments = ("explain", folder / "iris.model", folder / "new.csv", "--row", 5)
    record = json.loads(run(*arguments, "--json").stdout)
    assert (record["row"], record["id"], record["first"]) == (5, "P49", why.first)
    assert [s["sample"] for s in record["samples"]] == [s.row + 1 for s in why.samples]
    assert record["probabilities"] == dict(zip(why.classes, why.probabilities, strict=True))
    assert [f["feature"] for f in record["features"]] == [f.feature for f in why.features]
    text = run(*arguments, "--top", 2).stdout
    assert text.startswith(f"Row 5 (P49): {why.first} (setosa: ")
    assert f"  {model.training_ids_[why.samples[1].row]} " in text  # as --id named it at fit
    name = model.training_ids_[why.nearest_other.row]
    assert f"The nearest training sample of {why.second} is {name}." in text
    assert text.count("petal_") + text.count("sepal_") == 2 + len(why.change.values)


@pytest.mark.parametrize("row", [0, 16, -1])
def test_row_that_is_not_there_is_one_clear_error(folder, row):
    result = run("explain", folder / "iris.model", folder / "new.csv", "--row", row)
    assert error_of(result).startswith(
        f"Expected --row between 1 and 15, for the table has 15 rows; got {row}."
    )


def test_model_without_explanations_is_refused(folder, tmp_path):
    arguments = ("--target", "species", "--model", "knn", "--out", tmp_path / "knn.model")
    run("fit", folder / "iris.csv", *arguments)
    result = run("explain", tmp_path / "knn.model", folder / "new.csv", "--row", 1)
    assert "got KNeighborsClassifierCV. Fit one with --model nearfield" in error_of(result)
