"""kernels.py - figures of each kernel on each instruction set that the processor has."""
import subprocess

from harness import BUILD, MIB, prefault, program, speed

PROGRAM = str(BUILD / "bench" / "kernels")
KERNELS = ("blake3", "f16:f32", "bf16:f32", "f32:f16", "f32:bf16", "f16:bf16", "bf16:f16",
           "f32:f8_e4m3fn", "f16:f8_e4m3fn", "bf16:f8_e4m3fn", "f16:f8_e5m2", "bf16:f8_e5m2",
           "f8_e4m3fn:f32", "f8_e4m3fn:bf16", "f8_e4m3fn:f8_e5m2", "f32:i8", "i8:f16", "q4_0",
           "q8_0", "q4_k", "q6_k", "iq4_xs", "mxfp4")
# The most that a kernel may take of memcpy() of its larger side. Without AVX2 there are no
# instructions for f16, and a quarter of the lanes.
LIMITS = {"AVX-512 VBMI": 2.0, "AVX-512": 2.0, "AVX2": 2.25, "SSE4.1": 5.0, "portable": 7.0}
OWN_LIMITS = {("AVX2", "blake3"): 3.0, ("AVX2", "f8_e4m3fn:f8_e5m2"): 2.75}


def kernels(r, inputs, formats, quick):
    """Each kernel on each instruction set that the processor has, on a single thread, compared with
    memcpy() of the larger side."""
    mib, rounds = (16, 4) if quick else (64, 8)
    prefault(2 * mib * MIB)
    for number in subprocess.run([PROGRAM], capture_output=True, check=True).stdout.split():
        name = subprocess.run([PROGRAM, number], capture_output=True, text=True,
                              check=True).stdout.strip()
        for kernel in KERNELS[:4] if quick else KERNELS:
            runs = program("kernels", number.decode(), kernel, mib, rounds)
            if not runs:
                continue  # the portable form is used
            took, copies = zip(*runs[1:])
            limit = OWN_LIMITS.get((name, kernel), LIMITS.get(name))
            r.ratio(f"{kernel.replace(':', ' to ')}, on {name}", took, copies, "memcpy", limit,
                    own=(speed(mib * MIB, took), "GB/s"))
