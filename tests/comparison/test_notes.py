"""What a comparison says beside its numbers."""

from pluribus.comparison.notes import UNSTEADY, describe_unsteady_latencies


def test_latencies_that_were_measured_on_a_busy_machine_are_named():
    def method(name, low, high):
        return {"name": name, "cost": {"latency": {"value": 1.0, "low": low, "high": high}}}

    steady, busy = method("single", 1.0, UNSTEADY - 0.01), method("mimo", 1.0, UNSTEADY + 0.01)
    assert describe_unsteady_latencies([steady, {"name": "variance", "cost": None}]) == []
    (note,) = describe_unsteady_latencies([steady, busy])
    assert "The latency of mimo differs between repeats by a factor of more than 1.5: the machine was busy" in note
