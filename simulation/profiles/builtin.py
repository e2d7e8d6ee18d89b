"""Built-in profiles: five models by one formula, for use without measured data."""

from __future__ import annotations

from math import log2
from typing import NamedTuple

from .rules import CriticalEpochs, ProfileColumns

GPU_COUNTS = (1, 2, 4, 8)


class _Model(NamedTuple):
    """Samples per epoch; batch sizes; seconds per step that are fixed, per sample, and per doubling of the GPUs."""

    samples: int
    batch_sizes: tuple[int, ...]
    fixed_s: float
    sample_s: float
    doubling_s: float


# Round figures of the order of a data-centre GPU's; they are not measurements.
_MODELS = {
    "ResNet-18": _Model(50_000, (16, 32, 64, 128, 256), 5e-3, 6e-4, 2e-3),
    "ResNet-50": _Model(100_000, (16, 32, 64, 128), 2e-2, 5e-3, 1e-2),
    "Transformer": _Model(10_000, (16, 32, 64, 128), 1e-2, 7e-3, 5e-3),
    "LM": _Model(59_675, (5, 10, 20, 40, 80), 5e-3, 5e-4, 2e-3),
    "Recommendation": _Model(117_907, (512, 1024, 2048, 4096, 8192), 1e-3, 1e-5, 5e-4),
}


def builtin_columns() -> ProfileColumns:
    """Return the columns of five models with their batch sizes on 1, 2, 4 and 8 GPUs.

    Notes
    -----
    A step of batch size B on each of g GPUs takes ``fixed_s + sample_s * B + doubling_s * log2(g)`` seconds: launch
    and synchronisation, then arithmetic, then an all-reduce by halving. The rate is g steps in that time. With
    ``doubling_s < fixed_s`` an epoch gets shorter with every larger batch and every doubling of the GPUs, by less
    than half for the GPUs. The constants are round figures of a plausible order, not measurements: use
    `Profiles.read` for those.

    Accordion: epochs 0-9 and 150-159 are critical (the start and one learning-rate drop), and the first 30% of all
    epochs stay at the initial size. GNS: the batch size doubles every 10 (1 + log2(g)) epochs up to the largest;
    with more GPUs the same noise scale is met by a larger total batch already, so doublings come later.
    """
    rates = {}
    gns = {}
    for name, model in _MODELS.items():
        for gpus in GPU_COUNTS:
            for size in model.batch_sizes:
                step_s = model.fixed_s + model.sample_s * size + model.doubling_s * log2(gpus)
                rates[name, size, gpus] = gpus / step_s
                larger = [other for other in model.batch_sizes if other >= size]
                wait = round(10 * (1 + log2(gpus)))
                gns[name, size, gpus] = tuple((wait * k, other) for k, other in enumerate(larger))
    critical = (CriticalEpochs(0, 9), CriticalEpochs(150, 159))
    return ProfileColumns(
        name="builtin",
        rates=rates,
        dataset_sizes={name: model.samples for name, model in _MODELS.items()},
        max_batch_sizes={name: model.batch_sizes[-1] for name, model in _MODELS.items()},
        accordion={(name, None, use): critical for name in _MODELS for use in ("profile", "runtime")},
        gns=gns,
    )
