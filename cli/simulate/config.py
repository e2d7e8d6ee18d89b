"""Configuration of a simulation, read from the options: trace, cluster, profiles and rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from ...formulations.checks import as_integer
from ...simulation import Profiles, Trace, exclusive_s, read_durations, read_trace
from ...simulation.engines import DEFAULT_ENGINE, Engine, find_engine
from ...simulation.network import CommunicationTable
from ...simulation.placement import ModelTable, SharedSpeeds
from ...simulation.traces.durations import is_duration_trace
from ..console import print_status
from ..errors import CommandError
from ..profiles import BUILTIN, PROFILE_FILES, named_profiles
from .engine_options import EngineOptions, divides_gpus
from .policy_arguments import read_value
from .policy_spec import read_options
from .workload import (
    chosen_jobs,
    drawn_jobs,
    elastic_jobs,
    file_and_options,
    first_jobs,
    fitting_jobs,
    generated_jobs,
    in_order,
    is_drawn,
    is_elastic,
    is_generated,
    is_published,
    published_jobs,
    sampled_jobs,
    with_models,
    with_published_models,
)

#: The name of the profiles where a trace of durations comes without others.
OWN_PROFILES = "the trace's own"


@dataclass(frozen=True, kw_only=True)
class SimulationConfig:
    """The configuration that all policies of one comparison share.

    `trace_name` is as written on the command line; `speeds` and `rules` are as the engine takes them. Mappings are by
    GPU type. `policy_defaults` has values for options of policies that are left out, in place of the policies' own.
    `asked` has the other options of the command line, for the command that repeats the run.
    """

    engine_name: str
    trace_name: str
    trace: Trace
    profiles: Profiles | Mapping[str, Profiles]
    profiles_name: str
    cluster: str | None
    gpus: int | Mapping[str, int]
    rules: Any
    seed: int
    split_gpus: int | None
    own: EngineOptions
    speeds: Any
    policy_defaults: Mapping[str, Any]
    asked: tuple[str, ...] = ()

    @property
    def engine(self) -> Engine:
        """The entry of the engine in the registry."""
        return find_engine(self.engine_name)

    @property
    def total_gpus(self) -> int:
        """Number of GPUs of all types."""
        return self.gpus if isinstance(self.gpus, int) else sum(self.gpus.values())

    def metadata(self) -> dict[str, Any]:
        """Return the configuration as fields of a result's document."""
        return {
            "engine": self.engine_name,
            "trace": self.trace_name,
            "num_jobs": len(self.trace),
            "gpus": self.gpus if isinstance(self.gpus, int) else dict(self.gpus),
            "profiles": self.profiles_name,
            "cluster": self.cluster,
            **self.own.metadata(self.engine_name),
            "rules": {each.name: getattr(self.rules, each.name) for each in fields(self.rules)},
            "seed": self.seed,
        }


def read_config(
    trace: str,
    *,
    gpus: str | None,
    engine: str,
    profiles: str | None,
    cluster: str | None,
    jobs: int | None,
    rules: str | None,
    seed: int,
    sort: bool,
    skip_wide: bool,
    split_gpus: int | None,
    own: EngineOptions,
) -> SimulationConfig:
    """Read and check everything but the policies.

    InvalidInput or CommandError names the option, or the column and the line of the trace.
    """
    rules_type = find_engine(engine).rules_type
    own.check(engine)
    amounts = _gpus(own.gpus(gpus))
    machines = own.cluster(amounts)
    widest = amounts if isinstance(amounts, int) else max(amounts.values())
    as_integer("--seed", seed, minimum=0)
    for option, count in (("--jobs", jobs), ("--split-gpus", split_gpus)):
        if count is not None:
            as_integer(option, count, minimum=1)
    # Under an engine that divides GPUs, GPU types name speedups, not profiles.
    typed = widest if divides_gpus(engine) else amounts
    known: Profiles | Mapping[str, Profiles] = _profiles(profiles, cluster, typed)
    first = known if not isinstance(known, Mapping) else next(iter(known.values()))
    profiles_name = profiles or BUILTIN
    # Read once, each for its engine: the files of models and of speedups.
    models = own.model_speeds(amounts)
    speedups = own.speedup_tables() if divides_gpus(engine) else None
    file, options = file_and_options(trace, speedups is not None, models is not None)
    if speedups is not None and is_elastic(trace):
        found = elastic_jobs(trace, jobs, widest, seed, speedups)
    elif models is None and is_published(trace) and "--speeds" in find_engine(engine).options:
        found, profiles_name = published_jobs(trace, jobs, widest, seed), profiles or OWN_PROFILES
    elif models is not None and is_drawn(trace):
        if is_generated(trace):
            found = drawn_jobs(trace, jobs, widest, seed, models.table)
        else:
            found = sampled_jobs(chosen_jobs(read_trace(file), file, options), options, seed, models.table)
        known = models.profiles(zip(found.model, found.batch_size.tolist(), found.gang_gpus.tolist(), strict=True))
        profiles_name = OWN_PROFILES
    elif is_generated(trace):
        found = generated_jobs(trace, jobs, widest, seed, first)
    elif is_duration_trace(file):
        if profiles is None and own.take_durations(engine):
            found, profiles_name = read_trace(file), OWN_PROFILES
        else:
            # The durations hold on the first type of GPU; without --profiles, the profiles are made of them alone.
            found, of_durations = read_durations(file, None if profiles is None or models else first, models=models)
            if profiles is None or models:
                known, profiles_name = of_durations, OWN_PROFILES
        found = in_order(chosen_jobs(found, file, options), sort)
        if models is None and "--speeds" in find_engine(engine).options:
            found = with_published_models(found, file, seed)
    else:
        found = in_order(chosen_jobs(read_trace(file), file, options), sort)
        if profiles is None and all((Path(file).parent / name).is_file() for name in PROFILE_FILES):
            print_status(f"profiles: built in; --profiles {Path(file).parent} takes those beside the trace")
    if speedups is not None and isinstance(known, Profiles):
        found = with_models(_sized(found, known), options, seed, speedups)
    repeated = (
        (("--engine", engine), engine != DEFAULT_ENGINE),
        (("--profiles", BUILTIN), profiles == BUILTIN),
        (("--jobs", str(jobs)), jobs is not None),
        (("--rules", str(rules)), rules is not None),
        (("--seed", str(seed)), True),
        (("--sort",), sort),
        (("--skip-wide",), skip_wide),
        (("--split-gpus", str(split_gpus)), split_gpus is not None),
        *(((option, str(value)), True) for option, value in own.given().items()),
    )
    found = fitting_jobs(first_jobs(found, jobs), widest, skip_wide)
    checked_rules = _rules(rules, rules_type)
    speeds = speedups or own.speeds_for(engine, found, known, models, checked_rules, seed, machines)
    return SimulationConfig(
        engine_name=engine,
        trace_name=trace,
        trace=found,
        profiles=known,
        profiles_name=profiles_name,
        cluster=cluster if isinstance(known, Mapping) or profiles in (None, BUILTIN) else first.name,
        gpus=amounts,
        rules=checked_rules,
        seed=seed,
        split_gpus=split_gpus,
        own=own,
        speeds=speeds,
        policy_defaults={"seed": seed} | _skews(speeds),
        asked=tuple(word for words, given in repeated if given for word in words),
    )


def _sized(trace: Trace, profiles: Profiles) -> Trace:
    """Return the trace with the durations that follow from the profiles, unless it states durations or sizes."""
    if trace.duration_s is not None or trace.size_s is not None:
        return trace
    return replace(trace, duration_s=exclusive_s(trace, profiles))


def _skews(speeds: Any) -> dict[str, Any]:
    """Return the option of policies that holds the skews of models, if the table of the speeds states them."""
    table = getattr(speeds.speeds, "table", None) if isinstance(speeds, SharedSpeeds) else None
    return {"skew": table.skews} if isinstance(table, ModelTable | CommunicationTable) else {}


def _gpus(text: str) -> int | dict[str, int]:
    hint = "a number such as 32, or types such as v100=16,p100=8, each the name of a cluster in --profiles."
    if "=" not in text:
        number = read_value(text)
        if not isinstance(number, int):
            raise CommandError(f"--gpus {text}: not a number of GPUs", hint)
        return as_integer("--gpus", number, minimum=1)
    amounts = read_options(text, "--gpus", hint)
    return {name: as_integer(f"--gpus {name}", amount, minimum=1) for name, amount in amounts.items()}


def _profiles(folder: str | None, cluster: str | None, gpus: int | dict[str, int]) -> Profiles | dict[str, Profiles]:
    if isinstance(gpus, int):
        return named_profiles(BUILTIN if folder is None else folder, cluster)
    if folder in (None, BUILTIN):
        raise CommandError(
            "--gpus with types needs --profiles FOLDER", "each type is the name of a cluster in its throughputs.csv."
        )
    if cluster is not None:
        raise CommandError(f"--cluster {cluster}: --gpus names the clusters already", "leave --cluster out.")
    return {name: named_profiles(str(folder), name) for name in gpus}


def _rules(text: str | None, rules_type: type[Any]) -> Any:
    known = {each.name for each in fields(rules_type)}
    hint = f"such as --rules KEY=VALUE,KEY=VALUE; there are {', '.join(sorted(known)) or 'none in this engine'}."
    options = read_options(text or "", "--rules", hint)
    for name in options:
        if name not in known:
            raise CommandError(f"--rules {name}: no such rule", hint)
    return rules_type(**options)
