"""What the comparisons with peers on a GPU share: kernels compiled by `lacewing` and loaded through the driver's API."""

import ctypes
import math
import subprocess


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


def load_function(driver, path, name, shared_bytes):
    """A kernel of a compiled file, which may have so much dynamic shared memory."""
    image = open(path, "rb").read() + b"\0"
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    driver("cuModuleLoadData", ctypes.byref(module), image)
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


def geometric_mean(numbers):
    return math.exp(sum(map(math.log, numbers)) / len(numbers))
