#!/usr/bin/env python3
"""Makes the table of GPU measurements again: Lacewing and its peers side by side, as CSV with the machine's description.

    cargo build --release
    python3 benches/gpu_table.py --lacewing target/release/lacewing --output benches/results/NAME.csv

Lacewing is measured by `lacewing bench`, which checks each kernel first. The peers (PyTorch's products and normalisations,
its attention backends, and FlashAttention-3 where `fa3_fwd_interface` can be imported) are measured here in the same way: on
copies of the tensors that are together larger than twice the L2 cache, many calls at a time as one CUDA graph, warm, median of
31. Each row of Lacewing is measured just before its peers, because a chip's clock drifts while it is hot. A peer that refuses
a shape is left out. On Hopper, products and attention are measured in two versions: the one for the chip, and the one for sm_80,
which multiplies by mma.sync, as FlashAttention-2 and Triton's product for sm_80 do.
"""

import argparse
import csv
import json
import math
import os
import subprocess
import sys
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))
import mma_sync

SAMPLES = 31
SAMPLE_SECONDS = 0.002
MOST_COPIES = 64


def attention_rows(quick):
    """As published tables have it: 16384 tokens, 2048 features."""
    for head_dim in (64, 128, 256):
        for length in (1024, 4096, 16384) if not quick else (4096,):
            for causal in (False, True):
                heads, batch = 2048 // head_dim, 16384 // length
                yield dict(B=batch, Hq=heads, Hkv=heads, Sq=length, Sk=length, D=head_dim), causal


def rows(quick):
    """Kernel, sizes, settings, and a function that makes the peers' calls for one copy of the tensors."""
    yield "axpy", dict(N=1 << 26), {}, peers_axpy
    yield "transpose", dict(R=8192, C=8192), dict(dtype="f16"), peers_transpose
    yield "softmax", dict(R=16384, C=4096), dict(dtype="f16"), peers_softmax
    yield "rms_norm", dict(R=16384, C=4096), dict(dtype="bf16"), peers_rms_norm
    for size in (1024, 4096, 8192) if not quick else (4096,):
        yield "matmul", dict(M=size, N=size, K=size), dict(dtype="bf16", out="same"), peers_matmul
    for sizes, causal in attention_rows(quick):
        yield "fmha_fwd", sizes, dict(dtype="bf16", causal=str(causal).lower()), peers_attention


def normal(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device="cuda", dtype=dtype)


def peers_axpy(sizes, settings):
    x, y = normal(sizes["N"], dtype=torch.float32), normal(sizes["N"], dtype=torch.float32)
    return {"torch add_": lambda: y.add_(x, alpha=2.0)}


def peers_transpose(sizes, settings):
    x = normal(sizes["R"], sizes["C"], dtype=torch.float16)
    out = torch.empty(sizes["C"], sizes["R"], device="cuda", dtype=torch.float16)
    return {"torch copy_": lambda: out.copy_(x.t())}


def peers_softmax(sizes, settings):
    x = normal(sizes["R"], sizes["C"], dtype=torch.float16)
    return {"torch softmax": lambda: torch.softmax(x, -1)}


def peers_rms_norm(sizes, settings):
    x, w = normal(sizes["R"], sizes["C"]), normal(sizes["C"])
    return {"torch rms_norm": lambda: torch.nn.functional.rms_norm(x, (sizes["C"],), w)}


def peers_matmul(sizes, settings):
    a, b = normal(sizes["M"], sizes["K"]), normal(sizes["K"], sizes["N"])
    out = torch.empty(sizes["M"], sizes["N"], device="cuda", dtype=torch.bfloat16)
    found = {"torch matmul (cuBLAS)": lambda: torch.matmul(a, b, out=out)}
    try:
        found.update(mma_sync.triton_products(a, b, out))
    except ImportError:
        pass
    return found


def peers_attention(sizes, settings):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    causal = settings["causal"] == "true"
    shape = (sizes["B"], sizes["Sq"], sizes["Hq"], sizes["D"])
    q, k, v = normal(*shape), normal(*shape), normal(*shape)
    heads_first = [tensor.transpose(1, 2) for tensor in (q, k, v)]

    def backend(which):
        def call():
            with sdpa_kernel(which):
                torch.nn.functional.scaled_dot_product_attention(*heads_first, is_causal=causal)

        return call

    found = {
        "torch SDPA flash (FlashAttention-2)": backend(SDPBackend.FLASH_ATTENTION),
        "torch SDPA cuDNN": backend(SDPBackend.CUDNN_ATTENTION),
    }
    try:
        import fa3_fwd_interface

        found["FlashAttention-3"] = lambda: fa3_fwd_interface.flash_attn_func(q, k, v, causal=causal)
    except ImportError:
        pass
    return found


def copies_beyond_cache(footprint):
    properties = torch.cuda.get_device_properties(0)
    free, _ = torch.cuda.mem_get_info()
    wanted = math.ceil(2 * properties.L2_cache_size / footprint) + 1
    return max(1, min(wanted, MOST_COPIES, free // 2 // footprint))


def measure(calls):
    """Seconds of one call, sorted: the calls of all copies take turns."""
    for call in calls:
        call()
    torch.cuda.synchronize()
    estimate = min(timed(calls[0]) for _ in range(5))
    repetitions = max(1, min(1000, math.ceil(SAMPLE_SECONDS / max(estimate, 1e-7))))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for index in range(repetitions):
            calls[index % len(calls)]()
    until = time.time() + 0.05
    while time.time() < until:
        graph.replay()
        torch.cuda.synchronize()
    return sorted(timed(graph.replay) / repetitions for _ in range(SAMPLES))


def timed(work):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    work()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1e3


def quantile(sorted_seconds, share):
    return sorted_seconds[round(share * (len(sorted_seconds) - 1))]


def versions(kernel):
    """The devices to measure a kernel on: this one, and where the chip has more than mma.sync, code for sm_80."""
    if kernel in ("matmul", "fmha_fwd") and torch.cuda.get_device_capability() >= (9, 0):
        return ("cuda:0:sm_80", "cuda:0")
    return ("cuda:0",)


def lacewing(program, device, kernel, sizes, settings, limits):
    command = [program, "bench", kernel, "--device", device, "--json", "-", "--samples", str(SAMPLES)]
    command += ["--shape", ",".join(f"{name}={size}" for name, size in sizes.items())]
    for name, value in settings.items():
        command += ["--set", f"{name}={value}"]
    if not limits:
        command.append("--no-limits")
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        print(f"{kernel} {sizes} {settings}: {run.stderr.strip()}", file=sys.stderr)
        return None
    return json.loads(run.stdout)


def describe(measured, ceiling):
    """What a reader needs to know of the machine, as comment lines."""
    asked = "name,driver_version,vbios_version,power.limit,clocks.max.sm,clocks.max.mem"
    smi = subprocess.run(
        ["nvidia-smi", f"--query-gpu={asked}", "--format=csv,noheader"], capture_output=True, text=True
    )
    lines = [f"{time.strftime('%Y-%m-%d')}; {asked}: {smi.stdout.strip()}"]
    lines.append(f"torch {torch.__version__}, CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}")
    if measured:
        lines.append("lacewing " + measured["version"] + ": " + json.dumps(measured["machine"], sort_keys=True))
        if measured["limits"]:
            lines.append("limits: " + json.dumps(measured["limits"], sort_keys=True))
    if ceiling:
        lines.append(f"mma.sync on random bf16 numbers in registers, and nothing else: {ceiling:.0f} TFLOP/s")
    lines.append("times are medians in microseconds with tenth and ninetieth percentile; each input is read and each")
    lines.append("output written once in bytes; attention counts 4 B H N N D operations, half of them when causal")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lacewing", default="target/release/lacewing", help="the command")
    parser.add_argument("--output", required=True, help="the CSV file")
    parser.add_argument("--only", help="kernels, with commas")
    parser.add_argument("--quick", action="store_true", help="one size of each kernel")
    arguments = parser.parse_args()
    only = arguments.only.split(",") if arguments.only else None

    table, first = [], None
    ceiling = mma_sync.ceiling()
    for kernel, sizes, settings, peers in rows(arguments.quick):
        if only and kernel not in only:
            continue
        measured, ours = {}, None
        for device in versions(kernel):
            found = lacewing(arguments.lacewing, device, kernel, sizes, settings, limits=first is None)
            ours, first = found or ours, first or found
            if found:
                measured["lacewing " + "+".join(found["functions"])] = found["seconds"]["samples"]
        footprint = int(ours["bytes"]) if ours else 1 << 28
        copies = [peers(sizes, settings) for _ in range(copies_beyond_cache(footprint))]
        for name in copies[0]:
            try:
                measured[name] = measure([copy[name] for copy in copies])
            except Exception as refused:
                print(f"{name} {sizes}: {str(refused).splitlines()[0]}", file=sys.stderr)
        del copies
        others = [quantile(seconds, 0.5) for name, seconds in measured.items() if not name.startswith("lacewing")]
        for name, seconds in measured.items():
            median = quantile(seconds, 0.5)
            flops, moved = (ours["flops"], ours["bytes"]) if ours else (None, None)
            table.append(
                {
                    "kernel": kernel,
                    "sizes": " ".join(f"{size}={value}" for size, value in sizes.items()),
                    "settings": " ".join(f"{setting}={value}" for setting, value in settings.items()),
                    "who": name,
                    "us": f"{median * 1e6:.2f}",
                    "us_p10": f"{quantile(seconds, 0.1) * 1e6:.2f}",
                    "us_p90": f"{quantile(seconds, 0.9) * 1e6:.2f}",
                    "tflops": f"{flops / median / 1e12:.1f}" if flops else "",
                    "gb_per_s": f"{moved / median / 1e9:.0f}" if moved else "",
                    "of_best_peer": f"{min(others) / median:.3f}" if others else "",
                }
            )
            print(*table[-1].values(), sep="  ", flush=True)
        # Again after each kernel: a run that is ended early leaves what it has.
        if table:
            write(arguments.output, table, describe(first, ceiling))
    if not table:
        sys.exit("nothing was measured")


def write(path, table, description):
    with open(path, "w", newline="", encoding="utf-8") as file:
        file.writelines(f"# {line}\n" for line in description)
        writer = csv.DictWriter(file, fieldnames=list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


if __name__ == "__main__":
    main()
