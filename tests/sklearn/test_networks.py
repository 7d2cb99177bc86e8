"""The networks of the estimators: columns as on the command line; names, sizes of layers and functions choose the network."""

import pickle

import numpy as np
import pandas
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from torch import nn

from pluribus.data import load
from pluribus.models.tabular import ColumnEmbeddings
from pluribus.sklearn import EnsembleClassifier, EnsembleRegressor
from pluribus.sklearn.networks import build_network
from tests.sklearn.test_estimators import make_people

QUICK = {"epochs": 2, "batch_size": 32, "random_state": 0}


def find_embeddings(model):
    return next((module for module in model.ensemble_.net.modules() if isinstance(module, ColumnEmbeddings)), None)


def test_a_frame_is_encoded_and_embedded_as_the_command_line_does_with_its_file(tmp_path):
    """Numbers with gaps, categories and truth values: each becomes a column of the network "tabular" of its own."""
    frame, income = make_people()
    frame.assign(income=income).to_csv(tmp_path / "people.csv", index=False)
    data = load(str(tmp_path / "people.csv"), test=0.0)
    model = EnsembleRegressor(**QUICK).fit(frame, income)
    assert model.columns_.columns == data.preparation.columns
    torch.testing.assert_close(model._encode(frame).float(), data.train.x)
    assert data.preparation.column_widths == (0, 1, 3, 2)  # age, "age is missing", town, member
    embeddings = find_embeddings(model)
    assert embeddings.places == [0]
    assert [table.shape[-2] for table in embeddings.tables] == [1, 3, 2]


def test_the_default_network_learns_what_categories_and_gaps_say():
    frame, income = make_people()
    options = {"epochs": 15, "batch_size": 16, "lr": 0.01, "random_state": 0}
    assert EnsembleRegressor(**options).fit(frame, income).score(frame, income) > 0.8
    rich = np.where(income > np.median(income), "rich", "poor")
    assert EnsembleClassifier(**options).fit(frame, rich).score(frame, rich) > 0.85


def test_new_rows_have_what_training_rows_had_or_are_told():
    frame, income = make_people()
    model = EnsembleRegressor(**QUICK).fit(frame.fillna({"age": 40.0}), income)
    with pytest.raises(ValueError, match="age"):  # a gap where training had none
        model.predict(frame)
    moved = frame.fillna({"age": 40.0}).assign(town="Lima")
    with pytest.warns(UserWarning, match="category that training did not have"):
        assert np.isfinite(model.predict(moved)).all()


def test_names_sizes_and_functions_choose_the_network():
    frame, income = make_people(60)
    mlp = EnsembleRegressor(**QUICK, method="single", hidden=(8,)).fit(frame, income)
    named = EnsembleRegressor(**QUICK, method="single", network="mlp:hidden=[8]").fit(frame, income)
    assert find_embeddings(mlp) is None
    assert np.array_equal(mlp.predict(frame), named.predict(frame))
    thin = EnsembleRegressor(**QUICK, network="tabular:width=16,depth=1,embedding=periodic").fit(frame, income)
    assert type(find_embeddings(thin).numbers).__name__ == "Periodic"
    own = EnsembleRegressor(**QUICK, method="single", network=nn.Linear, hidden=(8,)).fit(frame, income)
    assert isinstance(own.ensemble_.net, nn.Linear)
    assert isinstance(build_network(None, None, 1001, 1)[1], nn.Linear)  # too many columns to embed each


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ("tabula", "did you mean 'tabular'"),
        ("tabular:breadth=3", "has no option"),
        ("tabular:trunk=oak", "trunk must be"),
        ("resnet20", "takes images"),
        (7, "network must be a function"),
    ],
)
def test_wrong_networks_are_told(network, message):
    with pytest.raises(ValueError, match=message):
        EnsembleRegressor(**QUICK, network=network).fit(np.eye(12), np.arange(12.0))


def test_constant_columns_are_no_obstacle():
    model = EnsembleRegressor(**QUICK).fit(np.ones((20, 3)), np.arange(20.0))
    assert np.isfinite(model.predict(np.ones((2, 3)))).all()


def test_clones_pickles_pipelines_and_grid_search_take_the_network_by_its_name():
    frame, income = make_people(60)
    made = EnsembleRegressor(**QUICK, network="tabular:width=8,depth=1")
    assert clone(made).get_params() == made.get_params()
    pipeline = make_pipeline(FunctionTransformer(pandas.DataFrame.copy), made)
    networks = ["tabular:width=8,depth=1", None]
    search = GridSearchCV(pipeline, {"ensembleregressor__network": networks, "ensembleregressor__hidden": [(4,)]}, cv=2)
    search.fit(frame, income)
    assert search.best_params_["ensembleregressor__network"] in networks
    again = pickle.loads(pickle.dumps(search))
    assert np.array_equal(again.predict(frame), search.predict(frame))
