"""Settings of the copy-heavy runs: link rates of the simulated GPU, size of a batch, compute per step.

A batch of `megabytes` float inputs goes through an MLP; on the simulated GPU its two large products
take `compute_ms` by the choice of GPUSIM_TFLOPS. The first layer needs no gradient of its input, so
that a step has 2 x 2 x inputs x hidden operations there; the rest is small.
"""

from dataclasses import dataclass

FEATURES = HIDDEN = 1024


@dataclass(frozen=True)
class Preset:
    name: str
    pinned_gbps: float
    pageable_gbps: float
    megabytes: int
    compute_ms: float

    @property
    def batch(self):
        return self.megabytes * 10**6 // (4 * FEATURES)

    def environment(self):
        """The simulated GPU's settings."""
        operations = 4 * self.batch * FEATURES * HIDDEN
        return {
            "GPUSIM_PINNED_GBPS": f"{self.pinned_gbps:g}",
            "GPUSIM_PAGEABLE_GBPS": f"{self.pageable_gbps:g}",
            "GPUSIM_TFLOPS": f"{operations / (self.compute_ms * 1e-3) / 1e12:.4f}",
            "GPUSIM_BYTES": "sampled",  # a copy engine does not use the processor
        }

    def arguments(self, steps=40, log_every=0):
        """Arguments of train_naive.py and train_tuned.py."""
        return [
            "--model=mlp", "--prebatched", f"--batch={self.batch}", f"--features={FEATURES}",
            f"--hidden={HIDDEN}", f"--steps={steps}", "--warmup=10", f"--log-every={log_every}",
        ]  # fmt: skip


PRESETS = {
    preset.name: preset
    for preset in [
        Preset("A20", pinned_gbps=3, pageable_gbps=1, megabytes=20, compute_ms=30.1),
        Preset("A80", pinned_gbps=3, pageable_gbps=1, megabytes=80, compute_ms=60.0),
        Preset("B64", pinned_gbps=12, pageable_gbps=4, megabytes=64, compute_ms=20.2),
    ]
}
