from dataclasses import replace

import pytest
import yaml

import pluribus
from pluribus.data import load
from pluribus.runs import config as configs
from pluribus.runs.choices import ChoiceError, format_choice, parse_choice, split_choices
from pluribus.runs.config import ConfigError, build_config, build_spec
from pluribus.runs.recipes import RECIPES
from pluribus.runs.training import resolve_config


def test_a_configuration_survives_its_file(tmp_path):
    made = build_config(
        {"data": "digits", "method": "mimo:members=4,first=conv", "model": "mlp:hidden=[8, 8]", "lr": 1e-4, "seed": 3}
    )
    configs.save_config(made, tmp_path / "config.yaml")
    assert configs.read_config(tmp_path / "config.yaml") == made
    content = yaml.safe_load((tmp_path / "config.yaml").read_text())
    assert content["method"] == {"name": "mimo", "members": 4, "first": "conv"}
    assert next(iter(content)) == "data"


@pytest.mark.parametrize("name", pluribus.Spec.registry)
def test_every_method_has_a_spec_by_its_name(name):
    assert build_spec({"name": name}) == pluribus.Spec.registry[name]()


def test_options_of_a_method_may_be_another_method():
    assert build_spec(parse_choice("deep-ensemble:members=2,of=inner")) == pluribus.DeepEnsemble(members=2, of=pluribus.Inner())


def test_choices_are_read_and_written():
    assert parse_choice("mimo") == {"name": "mimo"}
    assert parse_choice("mimo:members=3,input_repetition=0.5") == {"name": "mimo", "members": 3, "input_repetition": 0.5}
    assert parse_choice("a.b:make") == {"name": "a.b:make"}
    assert parse_choice("a.b:make:lr=1e-3,on=true,rest=null") == {"name": "a.b:make", "lr": 1e-3, "on": True, "rest": None}
    assert parse_choice("table.csv:target=price,drop=[a, b]") == {"name": "table.csv", "target": "price", "drop": ["a", "b"]}
    assert format_choice(parse_choice("mimo:members=3")) == "mimo:members=3"
    assert split_choices("inner,mimo:members=3,batch_repetition=2,deep-ensemble") == [
        *("inner", "mimo:members=3,batch_repetition=2", "deep-ensemble"),
    ]


@pytest.mark.parametrize("text", ["", "members=3", "mimo:=3", "mimo:members=3,4", ":members=3"])
def test_choices_that_cannot_be_read_are_refused(text):
    with pytest.raises(ChoiceError, match=r"write NAME|option=value"):
        parse_choice(text)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"epoch": 3}, "no setting 'epoch': did you mean 'epochs'"),
        ({"method": "mino"}, "did you mean 'mimo'"),
        ({"method": "mimo:member=3"}, "mimo has no option 'member'; it has: members"),
        ({"method": "mimo:members=1"}, "members must be at least 2"),
        ({"method": {"members": 3}}, "needs a name"),
        ({"optimizer": "sdg"}, "optimizer"),
        ({"epochs": 2, "warmup": 3}, "warmup must be shorter"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(options, message):
    with pytest.raises(ConfigError, match=message) as caught:
        build_config(options)
    assert "\n" not in str(caught.value)


def test_a_recipe_gives_defaults_that_other_settings_override():
    config = build_config({"recipe": "fast", "epochs": 3, "model": "small-cnn"})
    assert (config.optimizer, config.schedule, config.augment) == ("muon", "linear", "small-crop-alternate")
    assert (config.epochs, config.model) == (3, {"name": "small-cnn"})
    assert build_config({}).optimizer == "adamw"


def test_every_recipe_is_a_configuration_and_is_read_back_as_it_was(tmp_path):
    for name in RECIPES:
        config = build_config({"recipe": name, "lr": 0.01})
        configs.save_config(config, tmp_path / "config.yaml")
        assert configs.read_config(tmp_path / "config.yaml") == config


def test_an_unknown_recipe_is_named_with_those_that_there_are():
    with pytest.raises(ConfigError, match=r"recipe 'fats'.*fast"):
        build_config({"recipe": "fats"})


@pytest.mark.parametrize(("name", "found"), [("cifar10", "crop-flip"), ("mnist", "none")])
def test_images_are_augmented_by_themselves_for_cifar_alone(name, found):
    data = replace(load("digits"), name=name)
    assert resolve_config(build_config({"data": "digits"}), data).augment == found


def test_a_recipe_leaves_the_schedule_to_epochs_that_are_not_fixed():
    made = build_config({"recipe": "fast", "epochs": "auto"})
    assert (made.epochs, made.schedule, made.optimizer, made.warmup) == ("auto", "wsd", "muon", 0.8)
    assert build_config({"recipe": "fast"}).schedule == "linear"
    again = build_config(made.model_dump(mode="json"))
    assert again == made
