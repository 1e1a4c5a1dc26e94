#!/usr/bin/env python3
"""Matrix products against cuBLAS on one Hopper GPU, interleaved: `matmul` in bf16 with B in rows and in columns, and `matmul_fp8`.

    cargo build --release
    python3 benches/peers/matmul.py [--csv FILE] [--only KIND/M/N/K,..]

Needs a GPU of compute capability 9.0 and PyTorch. The kernels are compiled by `lacewing compile` for each shape, with ptxas where it
finds one and by the driver otherwise, and launched through the driver's API. Before it is timed, each product is compared with one in f32
(bf16) or f64 (fp8). Without a compiler on the machine with the GPU, run `--compile-to DIR` on another one first and `--compiled DIR` there.

KIND is `rows` (bf16, B is [K, N]), `columns` (bf16, B is the transpose of [N, K], as weights of a layer are) or `fp8` (e4m3, B the same,
C in bf16). Peers are `torch.matmul` and `torch._scaled_mm`, with fast accumulation, which is ours too, and without. Sizes in bytes of rows
are multiples of 16, as all three need it.

Times are medians of --rounds rounds of some milliseconds; in each, every contestant replays a CUDA graph of launches, one contestant
after the other in an order drawn anew, so that all see the same clocks. TFLOP/s count 2 M N K operations.
"""

import math
import os
import re
import sys

import common

CUBES = [(n, n, n) for n in (1024, 1536, 2048, 3072, 4096, 6144, 8192)]
ODD = [(1000, 1000, 1000), (777, 1032, 2056), (2500, 3000, 2000), (3000, 3000, 3000), (4000, 4104, 4200), (5000, 5000, 5000),
       (6000, 6000, 6000), (4096, 4096, 1024), (8192, 8192, 512)]
SKINNY = [(m, 8192, 8192) for m in (16, 64, 128, 256, 512)]
SHAPES = {
    "rows": CUBES + ODD + SKINNY,
    "columns": CUBES + ODD + SKINNY,
    "fp8": CUBES + [(1008, 1008, 1008), (784, 1040, 2064), (2512, 3008, 2000), (4000, 4096, 4208), (5008, 5008, 5008)] + SKINNY,
}


def name_of(kind, shape):
    return "matmul_%s_%d_%d_%d" % (kind, *shape)


def compile_kernel(program, folder, kind, shape):
    """The trace, which describes the kernel, and a cubin or PTX."""
    path = os.path.join(folder, name_of(kind, shape))
    settings = dict(zip(("rows", "columns", "inner"), shape))
    if kind != "fp8":
        settings |= {"dtype": "bf16", "out": "same", "b": kind}
    common.compile_kernel(program, "matmul_fp8" if kind == "fp8" else "matmul", settings, path)


class Kernel(common.Kernel):
    """A version of `matmul_hopper`."""

    def __init__(self, driver, path):
        super().__init__(driver, path)
        self.cluster = self.number(r"cluster = array<i32: (\d+)", "1")
        # A stage of A's ring has 128 bytes of each row, and two mbarriers.
        stages = self.number(r'"lw\.shared"\(\) \{[^}]*bytes = (\d+) : i64, name = "mbarrier stages\.full"') // 8
        self.block_m = self.number(r'"lw\.shared"\(\) \{[^}]*bytes = (\d+) : i64, name = "a"') // (128 * stages)
        self.block_n = self.number(r'"lw\.wgmma".*? n = (\d+) : i64')
        # C is then computed as its transpose.
        self.turned = 'name = "c in columns"' in self.trace
        self.k_major = bool(re.search(r'b_layout = "k:', self.trace))
        self.m_major = bool(re.search(r'a_layout = "mn:', self.trace))

    def launch_of(self, torch, a, b, c):
        """A launch as a function without arguments."""
        tensors = [b.t(), a.t(), c.t()] if self.turned else [a, b, c]
        (rows, inner), (_, columns) = tensors[0].shape, tensors[1].shape
        in_columns = [self.m_major, self.k_major, self.turned]
        tensors = [tensor.t() if columns else tensor for tensor, columns in zip(tensors, in_columns)]
        arguments = [*zip(tensors, self.boxes), rows, columns, inner]
        if "scaled" in self.name:
            arguments.append(1.0)
        processors = torch.cuda.get_device_properties(0).multi_processor_count
        at_once = processors * 5 // 22 if self.cluster > 2 else processors // self.cluster
        clusters = -(-rows // (self.block_m * self.cluster)) * -(-columns // self.block_n)
        return self.prepare(torch, min(clusters, at_once) * self.cluster, arguments)


def graph_of(torch, run, launches):
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        run()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(launches):
            run()
    graph.replay()
    torch.cuda.synchronize()
    return graph


def timed(torch, graph):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    graph.replay()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end)


def medians(torch, contestants, rounds, milliseconds):
    """Milliseconds of a launch of each."""
    graphs = {}
    for name, run in contestants.items():
        once = timed(torch, graph_of(torch, run, 5)) / 5
        launches = max(3, min(400, int(milliseconds / once)))
        graphs[name] = (graph_of(torch, run, launches), launches)
    timed_alone = lambda of: timed(torch, of[0]) / of[1]
    return {name: time for name, (time,) in common.medians(graphs, rounds, timed_alone).items()}


def measure(torch, driver, folder, kind, shape, rounds, milliseconds):
    rows, columns, inner = shape
    dtype = torch.float8_e4m3fn if kind == "fp8" else torch.bfloat16
    a = torch.randn(rows, inner, device="cuda").to(dtype)
    if kind == "rows":
        b = torch.randn(inner, columns, device="cuda").to(dtype)
    else:
        b = torch.randn(columns, inner, device="cuda").to(dtype).t()
    c = torch.empty(rows, columns, device="cuda", dtype=torch.bfloat16)
    kernel = Kernel(driver, os.path.join(folder, name_of(kind, shape)))
    ours = kernel.launch_of(torch, a, b, c)
    c.fill_(math.nan)
    ours()
    torch.cuda.synchronize()
    part = slice(0, min(rows, 2048))
    if kind == "fp8":
        right = a[part].double() @ b.double()
        # What an instruction cuts off: see `matmul_fp8`.
        allowed = 2 * math.sqrt(-(-inner // 32)) / 8192 * (a[part].double().abs() @ b.double().abs()).max().item()
    else:
        right = a[part].float() @ b.float()
        allowed = 0.0
    error = (c[part].double() - right.double()).abs().max().item()
    if not error <= allowed + right.abs().max().item() / 256:
        raise SystemExit(f"{kind} {shape}: off by {error}")
    if torch.isnan(c.float()).any():
        raise SystemExit(f"{kind} {shape}: elements that nobody wrote")
    contestants = {"lacewing": ours}
    if kind == "fp8":
        one = torch.ones((), device="cuda")
        for fast in (True, False):
            contestants["cublas" if fast else "cublas_slow"] = lambda fast=fast: torch._scaled_mm(
                a, b, one, one, out_dtype=torch.bfloat16, use_fast_accum=fast)
    else:
        out = torch.empty_like(c)
        contestants["cublas"] = lambda: torch.matmul(a, b, out=out)
    tile = f"{kernel.block_m}x{kernel.block_n}x{kernel.cluster}" + (" transposed" if kernel.turned else "")
    times = medians(torch, contestants, rounds, milliseconds)
    return tile, {name: 2 * rows * columns * inner / time / 1e9 for name, time in times.items()}


def main():
    parser = common.options_of(__doc__, "matmul.csv", "shapes, as columns/4096/4096/4096,fp8/8192/8192/8192", 9)
    parser.add_argument("--milliseconds", type=float, default=8.0, help="of each contestant in a round")
    options = parser.parse_args()
    cases = [(kind, shape) for kind, shapes in SHAPES.items() for shape in shapes]
    if options.only:
        words = [case.split("/") for case in options.only.split(",")]
        cases = [(kind, tuple(map(int, sizes))) for kind, *sizes in words]
    folder = common.kernels(options, lambda program, to: [compile_kernel(program, to, *case) for case in cases])
    if not folder:
        return
    torch, driver = common.start()
    rows = []
    for kind, shape in cases:
        tile, speeds = measure(torch, driver, folder, kind, shape, options.rounds, options.milliseconds)
        ratio = speeds["lacewing"] / speeds["cublas"]
        row = dict(kind=kind, m=shape[0], n=shape[1], k=shape[2], tile=tile, ratio=ratio)
        rows.append(row | {name: round(speed, 1) for name, speed in speeds.items()})
        print(f"{kind:8}{shape[0]:5} {shape[1]:5} {shape[2]:5} {tile:16}" +
              "  ".join(f"{name} {speed:.0f}" for name, speed in speeds.items()) + f"  ratio {ratio:.3f}", flush=True)
    for kind in SHAPES:
        ratios = [row["ratio"] for row in rows if row["kind"] == kind]
        if ratios:
            print(f"{kind}: geometric mean of the ratios {common.geometric_mean(ratios):.3f}, least {min(ratios):.3f}")
    fields = ["kind", "m", "n", "k", "tile", "ratio", "lacewing", "cublas", "cublas_slow"]
    common.write_table(options.csv, [dict(row, ratio=f"{row['ratio']:.4f}") for row in rows], fields)


if __name__ == "__main__":
    sys.exit(main())
