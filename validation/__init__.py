"""Certificates of plans, the contract of backends, proofs and statements of the theory, benchmarks and experiments."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .certificates.certify import (
        budget_clearing,
        certify,
        duality_gap,
        feasibility,
        market_clearing,
        optimal_spending,
        price_total,
    )
    from .certificates.check_result import Certificate, CheckResult, Witness
    from .certificates.efficiency import maximal_nash_welfare, pareto_optimality
    from .certificates.fairness import envy_freeness, finish_time_fairness_product, proportionality, sharing_incentive
    from .contract.suite import check_backend
    from .exact.certificate import exact_certificate
    from .instances.markets import random_fisher_market
    from .instances.taillard import TaillardInstance
    from .instances.window import random_window
    from .statements.verify import verify
    from .theorems.catalogue import prove

__all__ = [
    "Certificate",
    "CheckResult",
    "TaillardInstance",
    "Witness",
    "budget_clearing",
    "certify",
    "check_backend",
    "duality_gap",
    "envy_freeness",
    "exact_certificate",
    "feasibility",
    "finish_time_fairness_product",
    "market_clearing",
    "maximal_nash_welfare",
    "optimal_spending",
    "pareto_optimality",
    "price_total",
    "proportionality",
    "prove",
    "random_fisher_market",
    "random_window",
    "sharing_incentive",
    "verify",
]

# The module of each name, imported on first use: some need sympy, and most load solvers.
_MODULES = {
    "certificates.certify": (
        "budget_clearing", "certify", "duality_gap", "feasibility", "market_clearing", "optimal_spending",
        "price_total",
    ),
    "certificates.check_result": ("Certificate", "CheckResult", "Witness"),
    "certificates.efficiency": ("maximal_nash_welfare", "pareto_optimality"),
    "certificates.fairness": (
        "envy_freeness", "finish_time_fairness_product", "proportionality", "sharing_incentive",
    ),
    "contract.suite": ("check_backend",),
    "exact.certificate": ("exact_certificate",),
    "instances.markets": ("random_fisher_market",),
    "instances.taillard": ("TaillardInstance",),
    "instances.window": ("random_window",),
    "statements.verify": ("verify",),
    "theorems.catalogue": ("prove",),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
