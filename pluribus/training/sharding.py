"""Fully sharded training (FSDP): every process keeps a part of each weight, and fetches the rest while it is needed.

This is Lightning's strategy for torch's `fully_shard` (FSDP2). Lightning writes a folder with a file for each process; we write
one file with whole tensors instead, from which any number of processes, sharded or not, can resume.
"""

from typing import Any

import torch
import torch.distributed as dist
from lightning.pytorch.core.optimizer import LightningOptimizer
from lightning.pytorch.strategies import ModelParallelStrategy
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.fsdp import fully_shard

from .checkpoint_files import SafetensorsIO

WHOLE = StateDictOptions(full_state_dict=True)


class ShardedStrategy(ModelParallelStrategy):
    """Spreads the weights over `processes`, and reads and writes our checkpoints."""

    def __init__(self, processes: int) -> None:
        super().__init__(data_parallel_size=processes, tensor_parallel_size=1, save_distributed_checkpoint=False)
        self._checkpoint_io = SafetensorsIO()

    def shard(self, module: nn.Module) -> nn.Module:
        """Spread the weights of `module` over the processes. A scalar cannot be spread: its gradient is averaged instead."""
        mesh = self.device_mesh["data_parallel"]
        numbers = {parameter for parameter in module.parameters() if parameter.dim() == 0}
        for parameter in numbers:
            parameter.register_post_accumulate_grad_hook(average_gradient)
        fully_shard(module, mesh=mesh, ignored_params=numbers)
        return module

    def lightning_module_state_dict(self) -> dict[str, Any]:
        assert self.model is not None
        return get_model_state_dict(self.model, options=WHOLE)

    def optimizer_state(self, optimizer: Any) -> dict[str, Any]:
        """Return the state as an optimiser that is not sharded has it: parameters by number, not by name."""
        assert self.model is not None
        optimizer = optimizer._optimizer if isinstance(optimizer, LightningOptimizer) else optimizer
        whole: Any = get_optimizer_state_dict(self.model, optimizer, options=WHOLE)
        names = [name for group in whole["param_groups"] for name in group["params"]]
        numbers = {name: number for number, name in enumerate(names)}
        groups = [group | {"params": [numbers[name] for name in group["params"]]} for group in whole["param_groups"]]
        return {"state": {numbers[name]: kept for name, kept in whole["state"].items()}, "param_groups": groups}

    def load_checkpoint(self, checkpoint_path: Any, weights_only: bool | None = None) -> dict[str, Any]:
        assert self.model is not None
        state = self.checkpoint_io.load_checkpoint(checkpoint_path)
        set_model_state_dict(self.model, state["state_dict"], options=WHOLE)
        for optimizer, kept in zip(self.optimizers, state["optimizer_states"], strict=True):
            names_by_id = {id(parameter): name for name, parameter in self.model.named_parameters()}
            names = [names_by_id[id(parameter)] for group in optimizer.param_groups for parameter in group["params"]]
            groups = [group | {"params": [names[number] for number in group["params"]]} for group in kept["param_groups"]]
            named: Any = {"state": {names[number]: values for number, values in kept["state"].items()}, "param_groups": groups}
            set_optimizer_state_dict(self.model, optimizer, named, options=WHOLE)
        return state


def average_gradient(parameter: Tensor) -> None:
    """Replace the gradient of a parameter by its mean over all processes."""
    assert parameter.grad is not None
    dist.all_reduce(parameter.grad)
    parameter.grad /= dist.get_world_size()


def gather_state(module: nn.Module) -> dict[str, Tensor]:
    """Return the state of a sharded module with whole tensors. All processes must call this together."""
    return {name: torch.as_tensor(value) for name, value in get_model_state_dict(module, options=WHOLE).items()}
