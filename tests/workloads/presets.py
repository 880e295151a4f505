"""Settings of the copy-heavy runs: link rates of the simulated GPU, size of a batch, compute per step.

A batch of `megabytes` float inputs goes through the model; on the simulated GPU the kernels of a step take
`compute_ms` by the choice of GPUSIM_TFLOPS. The MLP's first layer needs no gradient of its input: 2 products of
2 x inputs x hidden operations there, 3 of 2 x hidden x 10 in the second.
"""

from dataclasses import dataclass

FEATURES = HIDDEN = 1024
IMAGE_SIZE = 64
BYTES_PER_SAMPLE = {"mlp": 4 * FEATURES, "resnet18": 4 * 3 * IMAGE_SIZE**2, "resnet50": 4 * 3 * IMAGE_SIZE**2}
# The ResNets' as torch.utils.flop_counter counts them, forward and backward.
OPERATIONS_PER_SAMPLE = {"mlp": 4 * FEATURES * HIDDEN + 6 * HIDDEN * 10, "resnet18": 869_038_080, "resnet50": 1_982_717_952}
# What is no product or convolution: measured for the MLP with the simulator's truth, at its default rates.
REST_MS, REST_MS_PER_SAMPLE = 0.11, 3.9e-5


@dataclass(frozen=True)
class Preset:
    name: str
    pinned_gbps: float
    pageable_gbps: float
    megabytes: int
    compute_ms: float

    def batch(self, model="mlp"):
        return self.megabytes * 10**6 // BYTES_PER_SAMPLE[model]

    def environment(self, model="mlp"):
        """The simulated GPU's settings."""
        operations = OPERATIONS_PER_SAMPLE[model] * self.batch(model)
        products_ms = self.compute_ms - (REST_MS + REST_MS_PER_SAMPLE * self.batch(model) if model == "mlp" else 0)
        return {
            "GPUSIM_PINNED_GBPS": f"{self.pinned_gbps:g}",
            "GPUSIM_PAGEABLE_GBPS": f"{self.pageable_gbps:g}",
            "GPUSIM_TFLOPS": f"{operations / (products_ms * 1e-3) / 1e12:.4f}",
            "GPUSIM_BYTES": "sampled",  # a copy engine does not use the processor
        }

    def arguments(self, steps=40, log_every=0, model="mlp"):
        """Arguments of train_naive.py and train_tuned.py."""
        return [
            f"--model={model}", "--prebatched", f"--batch={self.batch(model)}", f"--features={FEATURES}",
            f"--hidden={HIDDEN}", f"--image-size={IMAGE_SIZE}", f"--steps={steps}", "--warmup=10",
            f"--log-every={log_every}",
        ]  # fmt: skip


PRESETS = {
    preset.name: preset
    for preset in [
        Preset("A20", pinned_gbps=3, pageable_gbps=1, megabytes=20, compute_ms=30.1),
        Preset("A80", pinned_gbps=3, pageable_gbps=1, megabytes=80, compute_ms=60.0),
        Preset("B64", pinned_gbps=12, pageable_gbps=4, megabytes=64, compute_ms=20.2),
    ]
}
