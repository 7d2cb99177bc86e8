"""How weights are drawn anew."""

import torch
from torch import nn

from pluribus.core.initialization import redraw_weights


class Ramp(nn.Module):
    """Starts with a weight that grows along its rows, which no normal draw has."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(3, 4))
        self.last = nn.Linear(3, 2)
        self.reset_parameters()

    def reset_parameters(self):
        with torch.no_grad():
            self.weight.copy_(torch.arange(12.0).view(3, 4) + torch.rand(3, 1))


def test_a_module_that_can_reset_its_parameters_does_so_when_it_is_drawn_anew():
    module = Ramp()
    last = module.last.weight.detach().clone()
    first = module.weight.detach().clone()
    redraw_weights(module)
    torch.testing.assert_close(module.weight.diff(dim=1), torch.ones(3, 3))
    assert not torch.equal(module.weight, first)
    assert not torch.equal(module.last.weight, last), "what it leaves out is drawn as in any network"
    module.last.requires_grad_(False)
    kept = module.last.weight.detach().clone()
    redraw_weights(module)
    assert torch.equal(module.last.weight, kept)


def test_a_reset_that_needs_arguments_is_not_called():
    class Scaled(nn.Linear):
        def reset_parameters(self, scale=None, *, spread=None):
            nn.init.normal_(self.weight)

    class Needy(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 2)

        def reset_parameters(self, spread):
            raise AssertionError("called without what it needs")

    module = nn.Sequential(Scaled(4, 3), Needy())
    first = module[1].layer.weight.detach().clone()
    redraw_weights(module)
    assert not torch.equal(module[1].layer.weight, first)
