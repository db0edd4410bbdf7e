"""What a block is made of, right in several ways."""

import torch
import torch.nn.functional as F
from contracts.right import built, right
from torch import nn


@right("layer_norm")
def norm_by_pytorch(x, gain, bias, eps):
    return F.layer_norm(x, (x.shape[-1],), gain, bias, eps)


@right("layer_norm")
def norm_by_var(x, gain, bias, eps):
    mean = x.mean(-1, keepdim=True)
    variance = x.var(-1, unbiased=False, keepdim=True)
    return gain * (x - mean) / torch.sqrt(variance + eps) + bias


@right("layer_norm")
def norm_by_squares(x, gain, bias, eps):
    centred = x.float() - x.float().mean(-1, keepdim=True)
    scale = (centred.pow(2).mean(-1, keepdim=True) + eps).rsqrt()
    return (centred * scale * gain + bias).to(x.dtype)


@right("layer_norm")
def norm_by_module(x, gain, bias, eps):
    norm = nn.LayerNorm(x.shape[-1], eps)
    named = {"weight": gain, "bias": bias}
    return torch.func.functional_call(norm, named, (x,))


@right("layer_norm")
def norm_by_groups(x, gain, bias, eps):
    rows = x.reshape(-1, x.shape[-1])
    return F.group_norm(rows, 1, gain, bias, eps).reshape(x.shape)


@right("norm_gradient")
def gradient_by_autograd(x, grad, eps):
    with torch.enable_grad():
        leaf = x.detach().clone().requires_grad_()
        F.layer_norm(leaf, leaf.shape[-1:], eps=eps).backward(grad)
    return leaf.grad


@right("norm_gradient")
def gradient_by_projection(x, grad, eps):
    centred = x - x.mean(-1, keepdim=True)
    rest = grad - grad.mean(-1, keepdim=True)
    size = centred.square().mean(-1, keepdim=True) + eps
    part = (rest * centred).mean(-1, keepdim=True) / size
    return (rest - part * centred) * size.rsqrt()


@right("norm_gradient")
def gradient_by_jacobian(x, grad, eps):
    d = x.shape[-1]
    centred = x - x.mean(-1, keepdim=True)
    size = (centred.square().mean(-1, keepdim=True) + eps).sqrt()
    normal = (centred / size)[..., None]
    ones = torch.full((d, d), 1 / d)
    jacobian = torch.eye(d) - ones - normal @ normal.mT / d
    return (jacobian @ grad[..., None])[..., 0] / size


@right("feed_forward")
def feed_by_functions(x):
    W1 = torch.arange(12 * 31.0).view(31, 12).sin() / 2
    W2 = torch.arange(12 * 31.0).view(12, 31).cos() / 2
    return F.linear(F.relu(F.linear(x, W1, W1[:, 0])), W2, W2[:, 0])


class Convolutions(nn.Module):
    """Two convolutions of width 1, which want the features second."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Conv1d(12, 48, 1), nn.Conv1d(48, 12, 1)

    def forward(self, x):
        return self.down(self.up(x.mT).relu()).mT


class Gated(nn.Module):
    """SwiGLU, without biases, with weights as small as GPT-2's."""

    def __init__(self):
        super().__init__()
        self.gate, self.up, self.down = (
            nn.Parameter(0.02 * torch.randn(*shape))
            for shape in ((12, 32), (12, 32), (32, 12))
        )

    def forward(self, x):
        return (F.silu(x @ self.gate) * (x @ self.up)) @ self.down


class Residual(nn.Module):
    """With a norm before it and a sum after it."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(12)
        self.net = network(nn.GELU())

    def forward(self, x):
        return x + self.net(self.norm(x))


def network(activation):
    return nn.Sequential(nn.Linear(12, 48), activation, nn.Linear(48, 12))


right("feed_forward")(built(lambda: network(nn.ReLU())))
right("feed_forward")(built(lambda: network(nn.GELU())))
right("feed_forward")(built(lambda: network(nn.Tanh())))
right("feed_forward")(built(Convolutions))
right("feed_forward")(built(Gated))
right("feed_forward")(built(Residual))
