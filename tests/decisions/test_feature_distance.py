"""The distance of features: by hand, of every kind of method, and the rate of false alarms that it keeps."""

import math

import pytest
import torch
from torch import nn

import pluribus
from pluribus.core.errors import Unsupported
from pluribus.decisions.feature_distance import SHRINKAGE, FeatureNetwork, fit_feature_distance, learn_training_distance
from tests.networks import DenseCNN, NestedMLP, images, vectors


def test_it_is_the_smallest_mahalanobis_distance_to_a_class():
    torch.manual_seed(0)
    features, labels = torch.randn(60, 3, dtype=torch.double), torch.arange(60) % 4
    features[labels == 2] += 5
    known = fit_feature_distance(features, labels)
    means = torch.stack([features[labels == c].mean(0) for c in range(4)])
    rest = features - means[labels]
    covariance = rest.mT @ rest / 60
    covariance += SHRINKAGE * covariance.trace() / 3 * torch.eye(3, dtype=torch.double)
    new = torch.randn(7, 3, dtype=torch.double)
    difference = new.unsqueeze(1) - means  # [B, C, D]
    expected = torch.einsum("bci,ij,bcj->bc", difference, torch.linalg.inv(covariance), difference).amin(1).sqrt()
    torch.testing.assert_close(known.measure(new), expected, rtol=1e-10, atol=0)


def test_features_that_never_change_do_not_make_it_infinite():
    features = torch.zeros(10, 2, dtype=torch.double)
    features[:, 0] = torch.arange(10.0)
    distance = fit_feature_distance(features, torch.zeros(10)).measure(features + 1)
    assert distance.isfinite().all()
    assert fit_feature_distance(torch.ones(5, 2), torch.zeros(5)).measure(torch.ones(1, 2)).item() == 0


def test_features_are_what_the_last_layer_gets_averaged_over_places():
    net = nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Conv2d(4, 3, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()).double()
    x = torch.randn(5, 2, 6, 6, dtype=torch.double)
    ensemble = pluribus.ensemble(net, pluribus.Single())
    torch.testing.assert_close(FeatureNetwork(ensemble, x).extract(x), net[:2](x).mean((2, 3)), rtol=0, atol=1e-12)
    tokens = nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 3)).double()
    ensemble = pluribus.ensemble(tokens, pluribus.Single())
    x = torch.randn(5, 7, 4, dtype=torch.double)
    torch.testing.assert_close(FeatureNetwork(ensemble, x).extract(x), tokens[0](x).mean(1), rtol=0, atol=1e-12)


@pytest.mark.parametrize("spec", [spec() for name, spec in pluribus.Spec.registry.items() if name != "maxout"], ids=repr)
def test_every_method_with_plain_members_has_the_same_features_each_time(spec):
    torch.manual_seed(0)
    x = images(600, torch.float)
    ensemble = pluribus.ensemble(DenseCNN(), spec, example=x[:2])
    first, second = (FeatureNetwork(ensemble, x[:2]).extract(rows) for rows in (x, x))
    assert first.shape[0] == 600
    assert torch.equal(first, second)
    torch.testing.assert_close(FeatureNetwork(ensemble, x[:2]).extract(x[510:515]), first[510:515], rtol=1e-4, atol=1e-5)
    state = torch.get_rng_state()
    FeatureNetwork(ensemble, x[:2])
    assert ensemble.sampled or torch.equal(torch.get_rng_state(), state)


def test_a_method_without_plain_members_has_no_features():
    ensemble = pluribus.ensemble(NestedMLP(), pluribus.Maxout(copies=2))
    with pytest.raises(Unsupported, match="no plain form"):
        FeatureNetwork(ensemble, vectors(2, torch.float))


def train_on_clusters():
    torch.manual_seed(0)
    centres = torch.tensor([[4.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 4.0]])
    draw = lambda count: (labels := torch.randint(3, (count,)), centres[labels] + torch.randn(count, 3))[::-1]  # noqa: E731
    net = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 3))
    ensemble = pluribus.ensemble(net, pluribus.Single())
    training = draw(600)
    pluribus.fit(ensemble, training, epochs=10, lr=1e-2, progress=False)
    return ensemble, training, draw


def test_the_alarm_by_distance_keeps_its_rate_and_finds_rows_that_the_network_is_sure_about():
    """Rows far beyond a cluster: the network is surer of them than of any other, and their features are far away."""
    ensemble, training, draw = train_on_clusters()
    far = 5 * draw(200)[0]
    x, y = draw(400)
    calibrated = pluribus.calibrate(ensemble, x, y, false_alarms=0.1, foreign=far, training=training)
    assert calibrated.rules.alarm_score == "distance"
    assert calibrated.predict(far).is_foreign.double().mean() > 0.95
    rate = calibrated.predict(draw(2000)[0]).is_foreign.double().mean().item()
    assert abs(rate - 0.1) < 4 * math.sqrt(0.09 * (1 / 2000 + 1 / 200))
    by_entropy = pluribus.calibrate(ensemble, x, y, false_alarms=0.1)
    assert by_entropy.predict(far).is_foreign.double().mean() < 0.1
    batches = far.split(64)
    assert torch.equal(calibrated.predict(iter(batches)).is_foreign, calibrated.predict(far).is_foreign)


def test_the_score_can_be_chosen_and_wishes_that_cannot_be_are_told():
    ensemble, training, draw = train_on_clusters()
    x, y = draw(200)
    asked = pluribus.calibrate(ensemble, x, y, false_alarms=0.1, training=training, alarm="distance")
    assert asked.rules.alarm_score == "distance"
    assert "alarm where distance is above" in str(asked)
    expected = learn_training_distance(ensemble, *training).measure(x) > asked.rules.alarm_threshold
    assert torch.equal(asked.predict(x).is_foreign, expected)
    assert pluribus.calibrate(ensemble, x, y, false_alarms=0.1, alarm="energy").rules.alarm_score == "energy"
    with pytest.raises(ValueError, match=r"training=\(x, y\)"):
        pluribus.calibrate(ensemble, x, y, false_alarms=0.1, alarm="distance")
    with pytest.raises(ValueError, match="how many false alarms"):
        pluribus.calibrate(ensemble, x, y, coverage=0.9, alarm="energy")
