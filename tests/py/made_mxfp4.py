"""made_mxfp4.py - experts of gpt-oss in MXFP4, as its files have them and as GGUF has them.

The definition of OCP: 32 numbers of 4 bits (E2M1) share a power of two (E8M0).  gpt-oss stores
pairs of neighbours in a byte, GGUF the number i beside the number i + 16, after the power."""
import numpy as np

VALUES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
GROUP = 32


class Experts:
    """Random weights of several experts: codes (experts, outputs, inputs), and their powers."""

    def __init__(self, experts, outputs, inputs, seed, powers=(122, 126)):
        random = np.random.default_rng(seed)
        self.codes = random.integers(0, 16, (experts, outputs, inputs), np.uint8)
        self.powers = random.integers(*powers, (experts, outputs, inputs // GROUP), np.uint8)

    def numbers(self):
        """Return the numbers as transformers has them: inputs are the rows."""
        scale = np.ldexp(np.float32(1), self.powers.astype(np.int32) - 127)
        return (VALUES[self.codes] * np.repeat(scale, GROUP, -1)).transpose(0, 2, 1)

    def blocks(self):
        pairs = self.codes.reshape(*self.powers.shape, GROUP // 2, 2)
        return pairs[..., 0] | pairs[..., 1] << 4

    def gguf(self, outputs):
        """Return the bytes of some outputs of each expert, `outputs` a slice."""
        codes, powers = self.codes[:, outputs], self.powers[:, outputs]
        groups = codes.reshape(*powers.shape, GROUP)
        halves = groups[..., :GROUP // 2] | groups[..., GROUP // 2:] << 4
        return np.concatenate([powers[..., None], halves], -1).astype(np.uint8).tobytes()
