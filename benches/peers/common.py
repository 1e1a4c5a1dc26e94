"""What the comparisons with peers on a GPU share: options, kernels compiled by `lacewing` and launched through the driver's API,
and medians of contestants that take turns."""

import argparse
import csv
import ctypes
import math
import os
import random
import re
import subprocess

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def options_of(doc, table, only, rounds):
    """A parser of the options that all have; `table` is where results go, `only` says how `--only` names shapes."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--csv", default=table)
    parser.add_argument("--only", help=only)
    parser.add_argument("--compile-to", metavar="DIR", help="compile the kernels there and stop")
    parser.add_argument("--compiled", metavar="DIR", help="kernels that --compile-to made")
    parser.add_argument("--lacewing", default=os.path.join(ROOT, "target", "release", "lacewing"), help="the program")
    parser.add_argument("--rounds", type=int, default=rounds)
    return parser


def kernels(options, compile_all):
    """The folder of the kernels, which `compile_all(program, folder)` makes unless they are there; None where that is all."""
    folder = options.compile_to or options.compiled or os.path.join(ROOT, "target", "peers")
    if not options.compiled:
        os.makedirs(folder, exist_ok=True)
        compile_all(options.lacewing, folder)
    return None if options.compile_to else folder


def start():
    """PyTorch with a context on the GPU, and the driver."""
    import torch
    torch.cuda.init()
    torch.manual_seed(0)
    torch.zeros(1, device="cuda")
    return torch, load_driver()


def write_table(path, rows, fields=None):
    """CSV, in the columns of the first row or in these."""
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, fields or list(rows[0]), lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(rows)


def medians(contestants, rounds, *timers):
    """By name: the median of what each timer says of a contestant. In a round each is timed once, in an order drawn anew."""
    times = {name: [[] for _ in timers] for name in contestants}
    for _ in range(rounds):
        order = list(contestants.items())
        random.shuffle(order)
        for name, run in order:
            for taken, timer in zip(times[name], timers):
                taken.append(timer(run))
    return {name: tuple(sorted(taken)[len(taken) // 2] for taken in all_of) for name, all_of in times.items()}


def compile_kernel(program, kernel, settings, path):
    """The trace, which describes the kernel, and a cubin, or PTX where there is no ptxas."""
    command = [program, "compile", kernel, "--target", "sm_90a"]
    command += [word for setting in settings.items() for word in ("--set", "%s=%s" % setting)]
    subprocess.run(command + ["--emit", "trace", "-o", path + ".mlir"], check=True)
    made = subprocess.run(command + ["--emit", "cubin", "-o", path + ".image"], capture_output=True)
    if made.returncode:
        subprocess.run(command + ["--emit", "ptx", "-o", path + ".image"], check=True)


def load_driver():
    """Calls the driver by a function's name and arguments; what fails is raised."""
    library = ctypes.CDLL("libcuda.so.1")

    def call(function, *arguments):
        status = getattr(library, function)(*arguments)
        if status:
            text = ctypes.c_char_p()
            library.cuGetErrorString(status, ctypes.byref(text))
            raise RuntimeError(f"{function}: {text.value.decode() if text.value else status}")

    return call


def load_function(driver, image, name, shared_bytes):
    """A kernel of compiled code or of PTX, which may have so much dynamic shared memory."""
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    driver("cuModuleLoadData", ctypes.byref(module), image + b"\0")
    driver("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
    driver("cuFuncSetAttribute", function, 8, shared_bytes)
    return function


class Attribute(ctypes.Structure):
    """`CUlaunchAttribute` of the driver's API, for values of one word."""

    _fields_ = [("id", ctypes.c_uint32), ("pad", ctypes.c_uint32), ("value", ctypes.c_uint32 * 16)]


class LaunchConfig(ctypes.Structure):
    """`CUlaunchConfig` of the driver's API."""

    _fields_ = [("grid", ctypes.c_uint32 * 3), ("block", ctypes.c_uint32 * 3), ("shared", ctypes.c_uint32),
                ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(Attribute)), ("count", ctypes.c_uint32)]


# CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
OVERLAPPING = 6


def launch_config(blocks, threads, shared_bytes, overlapping):
    """What `cuLaunchKernelEx` takes for a grid of one dimension; an overlapping launch may start before the one before it is
    through, and its kernel waits where it must."""
    attributes = (Attribute * 1)(Attribute(OVERLAPPING, 0, (ctypes.c_uint32 * 16)(1)))
    return LaunchConfig((blocks, 1, 1), (threads, 1, 1), shared_bytes, None, attributes, int(overlapping))


class Kernel:
    """A compiled kernel, loaded; its trace says how to launch it."""

    def __init__(self, driver, path):
        self.driver = driver
        self.trace = open(path + ".mlir").read()
        self.name = re.search(r"gpu\.func @(\w+)", self.trace).group(1)
        self.threads = self.number(r"known_block_size = array<i32: (\d+)")
        self.shared = self.number(r"lw\.shared_bytes = (\d+)", "0")
        self.overlapping = "lw.grid_dependency" in self.trace
        boxes = re.findall(r"lw\.box = array<i64: ([\d, ]+)>.*?lw\.swizzle = (\d+)", self.trace)
        self.boxes = [([int(n) for n in box.split(",")], int(swizzle)) for box, swizzle in boxes]
        self.function = load_function(driver, open(path + ".image", "rb").read(), self.name, self.shared)

    def number(self, pattern, otherwise=None):
        """What the trace says there."""
        found = re.search(pattern, self.trace)
        if not found and otherwise is None:
            raise SystemExit(f"{self.name}: the trace has no `{pattern}`")
        return int(found.group(1) if found else otherwise)

    def tensor_map(self, tensor, box, swizzle):
        """128 bytes, aligned to 64 (CUDA driver API, cuTensorMapEncodeTiled)."""
        storage = (ctypes.c_uint8 * 192)()
        address = (ctypes.addressof(storage) + 63) & ~63
        rank = tensor.dim()
        dims = (ctypes.c_uint64 * rank)(*reversed(tensor.shape))
        strides = [tensor.element_size() * stride for stride in reversed(tensor.stride()[:-1])]
        strides = (ctypes.c_uint64 * (rank - 1))(*strides)
        box, ones = (ctypes.c_uint32 * rank)(*box), (ctypes.c_uint32 * rank)(*[1] * rank)
        kind = {"torch.bfloat16": 9, "torch.float8_e4m3fn": 0}[str(tensor.dtype)]
        mode = {0: 0, 32: 1, 64: 2, 128: 3}[swizzle]
        promote_128 = 2
        self.driver("cuTensorMapEncodeTiled", ctypes.c_void_p(address), kind, rank, ctypes.c_void_p(tensor.data_ptr()),
                    dims, strides, box, ones, 0, mode, promote_128, 0)
        return address, storage

    def prepare(self, torch, grid, arguments):
        """A launch of so many blocks as a function without arguments. An argument of the kernel is a tensor, a pair of a tensor and a
        box to copy, an int or a float."""
        kept, pointers = [], []
        for argument in arguments:
            if isinstance(argument, tuple):
                address, storage = self.tensor_map(argument[0], *argument[1])
                kept += [storage, argument[0]]
                pointers.append(address)
                continue
            if isinstance(argument, int):
                values = [ctypes.c_int32(argument)]
            elif isinstance(argument, float):
                values = [ctypes.c_float(argument)]
            else:
                values = [ctypes.c_uint64(argument.data_ptr())]
                values += [ctypes.c_int32(extent) for extent in argument.shape]
                values += [ctypes.c_int64(stride) for stride in argument.stride()]
            kept += values + [argument]
            pointers += [ctypes.addressof(value) for value in values]
        pointers = (ctypes.c_void_p * len(pointers))(*pointers)
        config = launch_config(grid, self.threads, self.shared, self.overlapping)

        def launch(_keep=kept):
            config.stream = torch.cuda.current_stream().cuda_stream
            self.driver("cuLaunchKernelEx", ctypes.byref(config), self.function, pointers, None)

        return launch


def elapsed(torch, run, launches, queued):
    """Milliseconds a launch."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    if queued:
        # About a millisecond, in which all launches reach the queue.
        torch.cuda._sleep(2_000_000)
    start.record()
    for _ in range(launches):
        run()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / launches


def geometric_mean(numbers):
    return math.exp(sum(map(math.log, numbers)) / len(numbers))
