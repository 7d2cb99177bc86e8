"""What the tables measure of a trained ensemble: once for all tables that need it."""

from pathlib import Path

from ...analysis.cost import choose_deployment, divide_counts
from ...analysis.diversity import normalised_disagreement
from ...core.describe import count_flops, count_parameters
from ...file_formats.reading import read_json, write_json
from ...file_formats.schema import NotNegative, Share, Size
from ...runs.config import build_config
from ...runs.loading import build_network
from ..classification_scores import Blocks, Scores, measure_corrupted, measure_scores
from ..recipe import Json, Workspace
from ..trained_runs import Trained, name_training, take_run_settings, train_once
from .rows import BASELINE, configure_row

CORRUPTED: dict[str, Json] = {"smoke": {"count": 20, "kinds": 1}, "cpu": {"count": 500}, "paper": {"count": 10_000}}


class Measured(Scores):
    """Scores on clean and corrupted images, diversity, parameters, and FLOPs as a ratio to the baseline."""

    cacc: Share
    cnll: NotNegative
    cece: Share
    cnll_blocks: Blocks
    cerror_blocks: Blocks
    diversity: NotNegative
    parameters: Size
    share: NotNegative
    flops: NotNegative


def measure(options: Json, workspace: Workspace) -> Json:
    """Train an ensemble and measure it, or read what another table measured of it."""
    settings = options["training"] | {"seed": options["seed"]}
    place = workspace.shared / f"{name_training(settings)}.measured.json"
    if not place.is_file():
        write_json(place, measure_trained(train_once(settings, workspace), options["scale"], workspace))
    return read_measured(place)


def read_measured(place: Path) -> Json:
    return read_json(place, Measured)


def measure_trained(trained: Trained, scale: str, workspace: Workspace) -> Json:
    workspace.report("corruptions")
    found = measure_scores(trained) | measure_corrupted(trained, **CORRUPTED[scale])
    data = trained.data
    plain = configure_row(scale, BASELINE) | {"data": trained.config.data}
    network = build_network(build_config(take_run_settings(plain)), data.shape, data.outputs)
    parameters = count_parameters(trained.ensemble)
    answer = trained.ensemble.predict(trained.x)
    row = trained.x[:1]
    _, flops, _ = choose_deployment(trained.ensemble.describe(row))
    return found | {
        "diversity": normalised_disagreement(answer, trained.y),
        "parameters": parameters,
        "share": parameters / count_parameters(network),
        "flops": divide_counts(flops, count_flops(network, row)),
    }
