"""The network of didact-vision in PyTorch: for the golden file of its tests, and for times of the same step.

    python vit.py golden OUT.safetensors      one block and more, with logits and all gradients
    python vit.py bench [--batch 256]         milliseconds per step of one model on the GPU, eager and compiled

Written for PyTorch 1.13 or newer; safetensors files are written here without a package.
"""

import argparse
import json
import struct
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads, expansion):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, expansion * width)
        self.down = nn.Linear(expansion * width, width)
        self.lora = None

    def forward(self, x):
        n, t, d = x.shape
        h = self.norm1(x)
        q, k, v = self.qkv(h).chunk(3, dim=-1)
        if self.lora is not None:
            factor, (qa, qb, va, vb) = self.lora
            q = q + factor * (h @ qa.T) @ qb.T
            v = v + factor * (h @ va.T) @ vb.T
        split = lambda z: z.reshape(n, t, self.heads, d // self.heads).transpose(1, 2)
        q, k, v = split(q), split(k), split(v)
        p = torch.softmax(q @ k.transpose(-1, -2) / (d // self.heads) ** 0.5, dim=-1)
        x = x + self.out((p @ v).transpose(1, 2).reshape(n, t, d))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Vit(nn.Module):
    def __init__(self, channels, side, patch, width, depth, heads, expansion, classes):
        super().__init__()
        self.patch = patch
        self.embed = nn.Linear(channels * patch * patch, width)
        self.positions = nn.Parameter(0.02 * torch.randn((side // patch) ** 2, width))
        self.blocks = nn.ModuleList(Block(width, heads, expansion) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, images):
        n, c, s, _ = images.shape
        p = self.patch
        x = images.reshape(n, c, s // p, p, s // p, p).permute(0, 2, 4, 1, 3, 5).reshape(n, -1, c * p * p)
        x = self.embed(x) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(dim=1))


def write(path, tensors, about):
    header, data = {"__metadata__": about}, b""
    for name, tensor in tensors.items():
        raw = tensor.detach().cpu().float().contiguous().flatten().tolist()
        raw = struct.pack(f"<{len(raw)}f", *raw)
        header[name] = {"dtype": "F32", "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def golden(path):
    """Two models of two blocks: training of all parameters, then LoRA. Pixels are whole numbers, so that they are the same everywhere."""
    tensors = {}
    for model in range(2):
        torch.manual_seed(model)
        net = Vit(2, 6, 3, 8, 2, 2, 2, 3)
        for p in net.parameters():
            p.data += 0.1 * torch.randn_like(p)
        pixels = torch.randint(0, 256, (4, 2, 6, 6))
        labels = torch.tensor([0, 2, 1, 2])
        mean, deviation = torch.tensor([0.4, 0.5]).view(1, 2, 1, 1), torch.tensor([0.3, 0.25]).view(1, 2, 1, 1)
        images = (pixels / 255.0 - mean) / deviation
        factors = [[torch.randn(2, 8), torch.randn(8, 2), torch.randn(2, 8), torch.randn(8, 2)] for _ in net.blocks]
        tensors[f"{model}.pixels"] = pixels
        tensors[f"{model}.labels"] = labels
        for name, p in net.named_parameters():
            tensors[f"{model}.value.{name}"] = p
        for b, four in enumerate(factors):
            for name, factor in zip(("q.a", "q.b", "v.a", "v.b"), four):
                factor.mul_(0.2).requires_grad_()
                tensors[f"{model}.value.blocks.{b}.lora.{name}"] = factor
        for kind in ("whole", "lora"):
            for b, block in enumerate(net.blocks):
                block.lora = (1.5, factors[b]) if kind == "lora" else None
            logits = net(images)
            loss = F.cross_entropy(logits, labels)
            trained = dict(net.named_parameters())
            if kind == "lora":
                trained = {n: p for n, p in trained.items() if n.startswith("head")}
                for b, four in enumerate(factors):
                    trained.update({f"blocks.{b}.lora.{n}": f for n, f in zip(("q.a", "q.b", "v.a", "v.b"), four)})
            tensors[f"{model}.{kind}.logits"] = logits
            tensors[f"{model}.{kind}.loss"] = loss.reshape(1)
            for name, gradient in zip(trained, torch.autograd.grad(loss, list(trained.values()))):
                tensors[f"{model}.{kind}.gradient.{name}"] = gradient
    write(path, tensors, {"made by": "crates/vision/peers/vit.py golden", "PyTorch": torch.__version__, "precision": "float32"})


def bench(batch, steps, precision):
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    device = torch.device("cuda")
    images, labels = torch.randn(batch, 1, 28, 28, device=device), torch.randint(0, 10, (batch,), device=device)
    for kind in ("eager", "compiled"):
        torch.manual_seed(1)
        net = Vit(1, 28, 4, 192, 3, 4, 4, 10).to(device)
        optimiser = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-4, fused=True)
        run = torch.compile(net) if kind == "compiled" else net

        def step():
            optimiser.zero_grad(set_to_none=True)
            F.cross_entropy(run(images), labels).backward()
            optimiser.step()

        for _ in range(20):
            step()
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
        each = 1e3 * (time.perf_counter() - began) / steps
        print(json.dumps({"peer": f"PyTorch {torch.__version__}", "kind": kind, "precision": precision, "batch": batch, "ms-per-step": round(each, 4)}))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("golden").add_argument("path")
    timed = commands.add_parser("bench")
    timed.add_argument("--batch", type=int, default=256)
    timed.add_argument("--steps", type=int, default=100)
    timed.add_argument("--precision", choices=("tf32", "float32"), default="tf32")
    arguments = parser.parse_args(sys.argv[1:])
    if arguments.command == "golden":
        golden(arguments.path)
    else:
        bench(arguments.batch, arguments.steps, arguments.precision)
