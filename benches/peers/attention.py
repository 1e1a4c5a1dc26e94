#!/usr/bin/env python3
"""Attention forward against its peers on one Hopper GPU, interleaved: ours, PyTorch's cuDNN, FlashAttention-3 and -4.

    cargo build --release
    python3 benches/peers/attention.py [--csv FILE] [--svg FILE] [--only D/N/CAUSAL,..]

Needs a GPU of compute capability 9.0, PyTorch, and, to compare with them, the packages fa3-fwd and flash-attn-4. The kernels are compiled by
`lacewing compile`, with ptxas where it finds one and by the driver otherwise, and launched through the driver's API. Before
it is timed, each kernel is compared with attention in f64. Without a compiler on the machine with the GPU, run
`--compile-to DIR` on another one first and `--compiled DIR` there.

Times are medians of --rounds rounds; in each, every contestant runs --launches times in a row, one contestant after the
other in an order drawn anew, so that all see the same clocks. Each is timed twice a round. First on the GPU alone: its launches
wait in the queue of a GPU that is kept busy, so that nobody's time on the host counts (the columns with plain names, and `ratio`). Then
as called: the GPU is idle at first, so that what a call does on the host before its kernel starts counts (columns with `_called`).
The peers are called from Python as their packages offer it and allocate their outputs; ours is launched through the driver's API
into outputs that exist. TFLOP/s count 4 B H N N D operations, half of it when causal. Among the contestants is cuBLAS's product of matrices
of 8192 x 8192, bf16: `share` is what part of its rate our attention reaches on the GPU alone.
"""

import math
import os
import sys

import common

HEAD_DIMS = (64, 128, 256)
LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
TOKENS, WIDTH = 16384, 2048
# The side of the square matrices whose product tells the rate of the tensor cores in this run.
SIDE = 8192
# Of an H200: where kernels are compiled, there may be no GPU to ask.
MULTIPROCESSORS = 132


def name_of(head_dim, seqlen, causal):
    return f"fmha_{head_dim}_{seqlen}_{'causal' if causal else 'full'}"


def shares(head_dim, seqlen, causal):
    """Row blocks that are shared out over all multiprocessors, and tiles of keys for each, as `Shares::choose` of
    the kernel's file; None where there are none."""
    if causal or head_dim < 128:
        return None
    tiles = -(-seqlen // (64 if head_dim == 256 else 128))
    rest = -(-seqlen // 128) * (TOKENS // seqlen) * (WIDTH // head_dim) % MULTIPROCESSORS
    share = -(-rest * tiles // MULTIPROCESSORS)
    return (rest, share) if rest and share + 16 <= tiles else None


def compile_kernel(program, folder, head_dim, seqlen, causal):
    """The trace, which describes the kernel, and a cubin or PTX."""
    path = os.path.join(folder, name_of(head_dim, seqlen, causal))
    settings = {"dtype": "bf16", "head_dim": head_dim, "causal": str(causal).lower(), "seqlen": seqlen}
    if shares(head_dim, seqlen, causal):
        settings["shared"] = "true"
    common.compile_kernel(program, "fmha_fwd", settings, path)


class Kernel(common.Kernel):
    """`fmha_fwd_hopper`, or `fmha_fwd_hopper_shared`."""

    def launch_of(self, torch, q, k, v, kv_len, o, lse, scale):
        """A launch as a function without arguments. All are [B, H, N, D] views."""
        batch, heads, seqlen, head_dim = q.shape
        consumers = self.threads // 128 - 1
        row_blocks = -(-seqlen // (consumers * 64))
        blocks = min(row_blocks * batch * heads, MULTIPROCESSORS)
        of_q, of_k, of_v, of_o = self.boxes[:4]
        arguments = [(q, of_q), (k, of_k), (v, of_v), kv_len, (o, of_o), lse]
        if self.name == "fmha_fwd_hopper_shared":
            rest, share = shares(head_dim, seqlen, False)
            counter = torch.zeros(rest * consumers, dtype=torch.int32, device="cuda")
            partial = torch.empty(blocks + rest, consumers * (head_dim // 8 + 1) * 512, device="cuda")
            numbers = [heads // k.shape[1], k.shape[2], row_blocks * batch * heads - rest, rest, share]
            return self.prepare(torch, blocks, arguments + [counter, partial, *numbers, scale])
        counter = torch.zeros(1, dtype=torch.int32, device="cuda")
        # As `mixed_heads` of the kernel's file.
        groups = [n for n in range(1, 17) if batch * heads % n == 0]
        group = next((n for n in groups if n * row_blocks >= 3 * MULTIPROCESSORS), groups[-1])
        return self.prepare(torch, blocks, arguments + [counter, heads // k.shape[1], k.shape[2], group, scale])


def exact(torch, q, k, v, causal, scale):
    scores = q.double() @ k.double().transpose(-1, -2) * scale
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device="cuda").triu(1)
        scores = scores.masked_fill(hidden, -math.inf)
    return scores.softmax(-1) @ v.double()


def medians(torch, contestants, rounds, launches):
    """By name: a launch's milliseconds on the GPU alone, and as called."""
    for run in contestants.values():
        run(), run()
    torch.cuda.synchronize()
    timers = [lambda run, queued=queued: common.elapsed(torch, run, launches, queued) for queued in (True, False)]
    return common.medians(contestants, rounds, *timers)


def measure(torch, driver, folder, shape, rounds, launches):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    try:
        import fa3_fwd_interface as fa3
    except ImportError:
        fa3 = None
    try:
        from flash_attn.cute import flash_attn_func as fa4
    except ImportError:
        fa4 = None
    head_dim, seqlen, causal = shape
    batch, heads, scale = TOKENS // seqlen, WIDTH // head_dim, 1 / math.sqrt(head_dim)
    tensors = [torch.randn(batch, seqlen, heads, head_dim, device="cuda", dtype=torch.bfloat16) for _ in range(3)]
    q, k, v = (tensor.transpose(1, 2) for tensor in tensors)
    o = torch.empty_like(tensors[0]).transpose(1, 2)
    lse = torch.empty(batch, heads, seqlen, device="cuda")
    kv_len = torch.full((batch,), seqlen, device="cuda", dtype=torch.int32)
    ours = Kernel(driver, os.path.join(folder, name_of(*shape))).launch_of(torch, q, k, v, kv_len, o, lse, scale)

    def cudnn():
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    ours()
    right = exact(torch, q[:1, :1], k[:1, :1], v[:1, :1], causal, scale)
    error = (o[:1, :1].double() - right).abs().max().item()
    if not error <= 0.02 * max(1, right.abs().max().item()):
        raise SystemExit(f"{shape}: off by {error}")
    contestants = {"lacewing": ours, "cudnn": cudnn}
    if fa3:
        contestants["fa3"] = lambda: fa3.flash_attn_func(*tensors, causal=causal)
    if fa4:
        contestants["fa4"] = lambda: fa4(*tensors, causal=causal)
    a, b = (torch.randn(SIDE, SIDE, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    contestants["matmul"] = lambda: torch.mm(a, b)
    operations = 4 * batch * heads * seqlen * seqlen * head_dim / (2 if causal else 1)
    times = medians(torch, contestants, rounds, launches)
    counted = {name: 2 * SIDE**3 if name == "matmul" else operations for name in times}
    return {name: tuple(counted[name] / time / 1e9 for time in both) for name, both in times.items()}


def row_of(shape, speeds):
    """A line of the CSV: `speeds` holds TFLOP/s on the GPU alone and as called, by contestant."""
    alone, called = ({name: both[kind] for name, both in speeds.items()} for kind in (0, 1))
    best = lambda speeds: max(speed for name, speed in speeds.items() if name not in ("lacewing", "matmul"))
    row = dict(head_dim=shape[0], seqlen=shape[1], causal=int(shape[2]))
    row |= dict(ratio=alone["lacewing"] / best(alone), share=alone["lacewing"] / alone["matmul"])
    row |= {name: round(speed, 1) for name, speed in alone.items()}
    row |= dict(ratio_called=called["lacewing"] / best(called))
    return row | {f"{name}_called": round(speed, 1) for name, speed in called.items() if name != "matmul"}


def draw(rows, path):
    """Ratios to the best peer, one bar a shape."""
    width, height, left, top, scale = 14 * len(rows) + 60, 240, 40, 20, 320
    at = lambda ratio: top + height - (ratio - 0.8) * scale
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height + 110}" font-family="sans-serif" '
           'font-size="10">', f'<text x="{left}" y="12">fmha_fwd on an H200: speed over the best peer (1.0), on the GPU alone; marks: as called</text>']
    for ratio in (0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5):
        out.append(f'<path d="M{left} {at(ratio):.1f}H{width - 10}" stroke="{"#000" if ratio == 1 else "#ddd"}"/>'
                   f'<text x="8" y="{at(ratio) + 4:.1f}">{ratio:.1f}</text>')
    for index, row in enumerate(rows):
        x, ratio = left + 6 + 14 * index, min(row["ratio"], 1.55)
        label = f'D {row["head_dim"]} N {row["seqlen"]}{" causal" if row["causal"] else ""}'
        out.append(f'<rect x="{x}" y="{at(ratio):.1f}" width="10" height="{top + height - at(ratio):.1f}" '
                   f'fill="{"#b5651d" if row["causal"] else "#2a7f62"}"><title>{label}: {row["ratio"]:.3f}</title></rect>'
                   f'<path d="M{x} {at(min(row["ratio_called"], 1.55)):.1f}h10" stroke="#000" stroke-width="1.5"/>'
                   f'<text transform="translate({x + 9} {top + height + 6}) rotate(90)">{label}</text>')
    open(path, "w").write("\n".join(out + ["</svg>"]) + "\n")


def main():
    parser = common.options_of(__doc__, "attention.csv", "shapes, as 128/4096/0,128/4096/1", 7)
    parser.add_argument("--svg")
    parser.add_argument("--launches", type=int, default=4)
    options = parser.parse_args()
    shapes = [(d, n, c) for d in HEAD_DIMS for c in (False, True) for n in LENGTHS]
    if options.only:
        wanted = [tuple(map(int, shape.split("/"))) for shape in options.only.split(",")]
        shapes = [(d, n, bool(c)) for d, n, c in wanted]
    folder = common.kernels(options, lambda program, to: [compile_kernel(program, to, *shape) for shape in shapes])
    if not folder:
        return
    torch, driver = common.start()
    rows = []
    for shape in shapes:
        rows.append(row_of(shape, measure(torch, driver, folder, shape, options.rounds, options.launches)))
        print("  ".join(f"{key} {value:.3f}" if "ratio" in key or key == "share" else f"{key} {value:.0f}"
                        for key, value in rows[-1].items()), flush=True)
    for key, of in (("ratio", "on the GPU alone"), ("ratio_called", "as called")):
        ratios = [row[key] for row in rows]
        print(f"{of}: geometric mean of the ratios {common.geometric_mean(ratios):.3f}, least {min(ratios):.3f}")
    short = ("ratio", "share", "ratio_called")
    common.write_table(options.csv, [
        {key: f"{value:.4f}" if key in short else value for key, value in row.items()} for row in rows
    ])
    if options.svg:
        draw(rows, options.svg)


if __name__ == "__main__":
    sys.exit(main())
