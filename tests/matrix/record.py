"""Try every method on every network, record the outcomes, and make the table of docs/networks.md of them.

    python -m tests.matrix.record [--exports] [--methods single,mimo] [--networks BERT;ViT]

Every pair is recorded as soon as it is tried. With --exports, a pair that was exported already is not tried again.
"""

import argparse
import importlib.metadata
import json

import torch

from .networks import NETWORKS
from .page import OUTCOMES, read_outcomes, write_page
from .trial import METHODS, try_method


def main() -> None:
    parser = argparse.ArgumentParser(description="Record what every method makes of every network")
    parser.add_argument("--exports", action="store_true")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--networks", default=";".join(NETWORKS))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    recorded = read_outcomes() if OUTCOMES.is_file() else {"versions": {}, "networks": {}}
    recorded["versions"] = {name: importlib.metadata.version(name) for name in ("torch", "transformers")}
    known = recorded["networks"]
    recorded["networks"] = {name: known.get(name, {"about": "", "outcomes": {}}) for name in NETWORKS}
    for method in arguments.methods.split(","):
        for name in arguments.networks.split(";"):
            network = recorded["networks"][name]
            network["about"] = NETWORKS[name].about
            before = network["outcomes"].get(method, {})
            if arguments.exports and ("export" in before or before.get("convert")):
                continue
            network["outcomes"][method] = try_method(NETWORKS[name], method, arguments.exports)
            OUTCOMES.write_text(json.dumps(recorded, indent=1) + "\n")
            print(name, method, network["outcomes"][method], flush=True)
    write_page(recorded)


if __name__ == "__main__":
    main()
