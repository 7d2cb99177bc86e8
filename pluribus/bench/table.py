"""The cost table: a training step and a prediction of every method on every network."""

from collections.abc import Collection

from ..core.spec import list_methods
from .measurement import Candidate, Job, Measurement, convert_with
from .method_sizes import build_benchmark_spec
from .networks import NETWORKS
from .workloads import Workload

TABLE_WORKLOADS: tuple[Workload, ...] = ("training step", "forward")


def list_table_keys(
    networks: Collection[str] = NETWORKS, methods: Collection[str] | None = None
) -> list[tuple[str, str, Workload]]:
    """List (network, method, workload) of the rows of the table, in their order."""
    return [
        (network, method, workload)
        for network in NETWORKS
        for method in list_methods(methods)
        for workload in TABLE_WORKLOADS
        if network in networks
    ]


def plan_table(networks: Collection[str], methods: Collection[str]) -> list[Job]:
    """Plan one measurement for each row of the table, so that the base network runs close to every method."""
    return [_plan_row(*key) for key in list_table_keys(networks, methods)]


def _plan_row(network: str, method: str, workload: Workload) -> Job:
    candidate = Candidate(method, convert_with(build_benchmark_spec(method)))
    key = {"network": network, "method": method, "work": workload}
    measurement = Measurement(NETWORKS[network], workload, (candidate,))
    return Job(method, measurement, lambda ratios: [key | ratios[method].to_json()])
