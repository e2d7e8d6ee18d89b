"""What `equipoise simulate` and `compare` are to run on: trace, cluster, profiles and rules, from their options."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...formulations.checks import as_integer
from ...formulations.errors import InvalidInput
from ..errors import CommandError
from ..snapshot import BUILTIN, PROFILE_FILES, named_profiles
from .policy_spec import read_options, read_value

if TYPE_CHECKING:
    from ...simulation import Engine, Profiles, Trace

#: What stands for the profiles where a trace of durations comes without others.
OWN_PROFILES = "the trace's own"
GENERATED = "generated"
GENERATED_JOBS = 120
_GENERATED_HINT = f"such as {GENERATED}:900,mean_interarrival_s=20 or {GENERATED}:120,static=0.5,gns=0.5."


@dataclass(frozen=True, kw_only=True)
class Setting:
    """All that the policies of one comparison have in common.

    Attributes
    ----------
    engine_name : str
    trace_name : str
        As written on the command line.
    trace : Trace
    profiles : Profiles or mapping of GPU type to Profiles
    profiles_name, cluster : str, str or None
    gpus : int or mapping of GPU type to int
    rules : object
        The engine's.
    seed : int
    asked : tuple of str
        The remaining options, as they must be repeated.
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
    asked: tuple[str, ...] = ()

    @property
    def engine(self) -> Engine:
        """The row of the engine."""
        from ...simulation.engines import find_engine

        return find_engine(self.engine_name)

    @property
    def total_gpus(self) -> int:
        """GPUs of all types."""
        return self.gpus if isinstance(self.gpus, int) else sum(self.gpus.values())

    def facts(self) -> dict[str, Any]:
        """Return what a result was made from, for its document."""
        return {
            "engine": self.engine_name,
            "trace": self.trace_name,
            "num_jobs": len(self.trace),
            "gpus": self.gpus if isinstance(self.gpus, int) else dict(self.gpus),
            "profiles": self.profiles_name,
            "cluster": self.cluster,
            "rules": {each.name: getattr(self.rules, each.name) for each in fields(self.rules)},
            "seed": self.seed,
        }


def read_setting(
    trace: str,
    *,
    gpus: str,
    engine: str,
    profiles: str | None,
    cluster: str | None,
    jobs: int | None,
    rules: str | None,
    seed: int,
    sort: bool,
    skip_wide: bool,
) -> Setting:
    """Read and check everything but the policies.

    Raises
    ------
    InvalidInput, CommandError
        Naming the option, or the column and the line of the trace.
    """
    from ...simulation import read_durations, read_trace
    from ...simulation.engines import DEFAULT_ENGINE, find_engine
    from ...simulation.traces.durations import is_duration_trace

    rules_type = find_engine(engine).rules_type
    amounts = _gpus(gpus)
    widest = amounts if isinstance(amounts, int) else max(amounts.values())
    as_integer("--seed", seed, minimum=0)
    if jobs is not None:
        as_integer("--jobs", jobs, minimum=1)
    known: Profiles | Mapping[str, Profiles] = _profiles(profiles, cluster, amounts)
    first = known if not isinstance(known, Mapping) else next(iter(known.values()))
    profiles_name = profiles or BUILTIN
    if trace == GENERATED or trace.startswith(f"{GENERATED}:"):
        found = _generated(trace, jobs, widest, seed, first)
    elif is_duration_trace(trace):
        # Durations are those on the first type of GPU; without --profiles, they are all there is to know.
        found, own = read_durations(trace, None if profiles is None else first)
        found = _in_order(found, sort)
        if profiles is None:
            known, profiles_name = own, OWN_PROFILES
    else:
        found = _in_order(read_trace(trace), sort)
        if profiles is None and all((Path(trace).parent / name).is_file() for name in PROFILE_FILES):
            tell(f"profiles: built in; --profiles {Path(trace).parent} takes those beside the trace")
    return Setting(
        engine_name=engine,
        trace_name=trace,
        trace=_fitting(_first(found, jobs), widest, skip_wide),
        profiles=known,
        profiles_name=profiles_name,
        cluster=cluster if isinstance(known, Mapping) or profiles in (None, BUILTIN) else first.name,
        gpus=amounts,
        rules=_rules(rules, rules_type),
        seed=seed,
        asked=tuple(
            word
            for words, wanted in (
                (("--engine", engine), engine != DEFAULT_ENGINE),
                (("--profiles", BUILTIN), profiles == BUILTIN),
                (("--jobs", str(jobs)), jobs is not None),
                (("--rules", str(rules)), rules is not None),
                (("--seed", str(seed)), True),
                (("--sort",), sort),
                (("--skip-wide",), skip_wide),
            )
            if wanted
            for word in words
        ),
    )


def check_engine(engine: str | None) -> None:
    """Check the name of an engine, if one is given."""
    from ...simulation.engines import ENGINES

    if engine is not None and engine not in ENGINES:
        raise CommandError(f"--engine {engine}: unknown", f"what exists is {', '.join(ENGINES)}.")


def tell(message: str) -> None:
    """Write one line to standard error."""
    sys.stderr.write(f"equipoise: {message}\n")


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


def _in_order(trace: Trace, sort: bool) -> Trace:
    import numpy as np

    if sort:
        return trace.select(np.argsort(trace.arrival_s, kind="stable"))
    early = np.flatnonzero(np.diff(trace.arrival_s) < 0)
    if len(early):
        index = int(early[0]) + 1
        above, value = trace.arrival_s[index - 1 : index + 1].tolist()
        why = f"before the job above it, at {above:g}: jobs must stand in order of arrival, or --sort puts them in it"
        raise trace.locate(InvalidInput("arrival_s", value, why, index=index))
    return trace


def _generated(text: str, jobs: int | None, gpus: int, seed: int, profiles: Profiles) -> Trace:
    """Return a workload by formula; its gangs are those of the generator that fit the cluster."""
    import numpy as np

    from ...simulation import generate_trace
    from ...simulation.profiles.modes import MODES

    count, _, more = text.partition(":")[2].partition(",")
    if "=" in count:
        count, more = "", f"{count},{more}"
    options = read_options(more, "TRACE", _GENERATED_HINT)
    unknown = set(options) - {"mean_interarrival_s", *MODES}
    if unknown:
        known = ", ".join(("mean_interarrival_s", *MODES))
        raise CommandError(f"{text}: no option {sorted(unknown)[0]!r}", f"there are {known}, {_GENERATED_HINT}")
    if count and not count.isdecimal():
        raise CommandError(f"{text}: {count!r} is not a number of jobs", _GENERATED_HINT)
    modes = {mode: options.pop(mode) for mode in MODES if mode in options}
    # The generator's own mix of gangs, cut to what fits.
    own = inspect.signature(generate_trace).parameters
    widths = zip(own["gpu_counts"].default, own["gpu_probabilities"].default, strict=True)
    gangs = {width: share for width, share in widths if width <= gpus}
    return generate_trace(
        np.random.default_rng(seed),
        num_jobs=int(count) if count else jobs or GENERATED_JOBS,
        gpu_counts=tuple(gangs),
        gpu_probabilities=tuple(share / sum(gangs.values()) for share in gangs.values()),
        mode_probabilities=modes or None,
        profiles=profiles,
        **options,
    )


def _first(trace: Trace, jobs: int | None) -> Trace:
    if jobs is None or jobs == len(trace):
        return trace
    if jobs > len(trace):
        raise InvalidInput("--jobs", jobs, f"the trace has {len(trace)} jobs")
    return trace.select(range(jobs))


def _fitting(trace: Trace, gpus: int, skip_wide: bool) -> Trace:
    wide = [index for index in range(len(trace)) if trace.num_gpus[index] > gpus]
    if not wide:
        return trace
    if not skip_wide:
        why = f"job {trace.job_id[wide[0]]!r} is wider than the cluster of {gpus} GPUs; --skip-wide leaves such out"
        raise trace.locate(InvalidInput("num_gpus", int(trace.num_gpus[wide[0]]), why, index=wide[0]))
    if len(wide) == len(trace):
        raise InvalidInput("--gpus", gpus, "every job of the trace is wider than the cluster")
    names = ", ".join(str(trace.job_id[index]) for index in wide[:10]) + (", ..." if len(wide) > 10 else "")
    warnings.warn(f"left out {len(wide)} job(s) wider than the cluster of {gpus} GPUs: {names}", stacklevel=2)
    return trace.select(trace.num_gpus <= gpus)


def _rules(text: str | None, rules_type: type[Any]) -> Any:
    known = {each.name for each in fields(rules_type)}
    hint = f"such as --rules KEY=VALUE,KEY=VALUE; there are {', '.join(sorted(known)) or 'none in this engine'}."
    options = read_options(text or "", "--rules", hint)
    for name in options:
        if name not in known:
            raise CommandError(f"--rules {name}: no such rule", hint)
    return rules_type(**options)
