"""Networks that take their input as a whole: the nodes of one graph, say, which are no rows that could be cut apart.

The plan of such an ensemble needs no search, because a branched batch would be another graph: members run one after the other.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from . import pytrees
from .branching import LOOP, CallRecorder, find_writes, name_member_layers, require_difference
from .passes import Branch, LayerFacts, Plan, Probe

if TYPE_CHECKING:
    from .ensemble import Ensemble
    from .execution import Executor


def plan_whole(twin: "Ensemble", executor: "Executor", batch: Any) -> Plan:
    """The plan of an ensemble that takes its input as a whole. Raises ConversionError if its members would be the same."""
    layers, probe = name_member_layers(twin), Probe(twin.count_probed())
    entering = pytrees.copy_tensors(batch)
    with CallRecorder(twin.net) as calls:
        answer = executor.run_alone(twin, entering, 0, LOOP, probe)
    sizes: Any = {"shared_size": max(calls.sizes), "branched_size": max(calls.sizes), "answer_size": answer.numel()}
    writes_input = find_writes(entering, batch)
    twin.check_order(calls.order)
    if not layers:
        return Plan(Branch("none"), writes_input=writes_input, **sizes)
    alone = []
    for index in range(probe.count):
        probe.restart()
        alone.append(executor.run_alone(twin, pytrees.copy_tensors(batch), index, LOOP, probe))
    require_difference(torch.stack(alone), layers)
    facts = {name: LayerFacts(has_noise=name in probe.noisy, row=probe.rows.get(name)) for name in layers}
    return replace(LOOP, layers=facts, writes_input=writes_input, drawn_size=probe.drawn_size, **sizes)
