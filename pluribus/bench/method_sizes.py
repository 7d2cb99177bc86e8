"""The methods of the benchmark, read from the registry of specs: their order, sizes and options."""

from collections import Counter
from collections.abc import Collection

from ..core.spec import Spec, list_methods

LETTERS = {"members": "M", "copies": "m", "samples": "K"}
"""How the pages call the size of a method, by the option that sets it."""


def build_benchmark_spec(method: str) -> Spec:
    """Build the spec of a registered method with its benchmark options.

    >>> str(build_benchmark_spec("treenet"))
    'TreeNet(members=4)'
    """
    kind = Spec.registry[method]
    return kind(**kind.benchmark_options)


def describe_sizes(methods: Collection[str]) -> str:
    """Say at which sizes methods are measured: the usual number for each letter, and exceptions in brackets.

    >>> describe_sizes(["single", "mimo", "treenet", "multihead", "inner", "variance"])
    'M = 4 (MIMO 3), m = 4, K = 20'
    """
    sizes: dict[str, dict[str, int]] = {option: {} for option in LETTERS}
    for method in list_methods(methods):
        kind = Spec.registry.get(method)
        if kind is not None and kind.size_option is not None:
            sizes.setdefault(kind.size_option, {})[kind.__name__] = getattr(build_benchmark_spec(method), kind.size_option)
    parts = []
    for option, by_name in sizes.items():
        if by_name:
            usual = Counter(by_name.values()).most_common(1)[0][0]
            others = [f"{name} {size}" for name, size in by_name.items() if size != usual]
            parts.append(f"{LETTERS.get(option, option)} = {usual}" + (f" ({', '.join(others)})" if others else ""))
    return ", ".join(parts)
