"""The papers whose experiments can be run: one row for each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from .dally.catalogue import DALLY
from .experiment import PaperExperiments
from .gpu_sharing.catalogue import GPU_SHARING
from .pcs.catalogue import PCS
from .shockwave.catalogue import SHOCKWAVE

#: The experiments of each paper, by the name that `equipoise bench` takes.
EXPERIMENTS: Mapping[str, PaperExperiments] = MappingProxyType(
    {"shockwave": SHOCKWAVE, "gpu-sharing": GPU_SHARING, "pcs": PCS, "dally": DALLY}
)
