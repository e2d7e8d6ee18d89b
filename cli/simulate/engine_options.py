"""Options that not every engine takes: which engine they choose, and what they make of the cluster and the speeds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...formulations.checks import as_integer, as_real
from ...formulations.errors import InvalidInput
from ...simulation import Cluster, Profiles, Trace
from ...simulation.engines import ENGINES, find_engine
from ...simulation.fluid import Speedups
from ...simulation.network import AllReduceSpeeds, CommunicationTable, PenaltySpeeds, RatioSpeeds, TableSpeeds
from ...simulation.placement import (
    DurationSpeeds,
    MeasuredSlowdown,
    ModelSpeeds,
    ModelTable,
    PairTable,
    ProfileSpeeds,
    SharedSpeeds,
    SlowdownTable,
    Speeds,
    find_interference,
)
from ..errors import CommandError

#: Speeds by the network, which state the time between machines themselves; --network supplies their data.
NETWORK_SPEEDS = ("table", "all-reduce", "penalties")
SPEEDS = ("durations", "models", "profiles", *NETWORK_SPEEDS)
DEFAULT_GPUS = "32"
#: Machines of a rack, and GPUs of each, where --racks alone states the cluster.
MACHINES_OF_RACK, GPUS_OF_MACHINE = 8, 8


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Options that not every engine takes, as given; None where left out."""

    machines: int | None = None
    gpus_per_machine: int | None = None
    racks: int | None = None
    speeds: str | None = None
    models: str | None = None
    slowdown: str | None = None
    network: str | None = None
    interference: str | None = None
    speedups: str | None = None

    def given(self) -> dict[str, Any]:
        """Return the options that were given, as written on the command line."""
        return {f"--{name.replace('_', '-')}": value for name, value in vars(self).items() if value is not None}

    def engine(self, name: str | None) -> str | None:
        """Return the engine: the named one, or the first that takes all options given; None if none is given.

        CommandError if there is no such engine, or it does not take an option.
        """
        if name is not None and name not in ENGINES:
            raise CommandError(f"--engine {name}: unknown", f"the engines are {', '.join(ENGINES)}.")
        given = self.given()
        if name is not None:
            for option in (option for option in given if option not in ENGINES[name].options):
                owners = " and ".join(engine.name for engine in ENGINES.values() if option in engine.options)
                raise CommandError(f"{option}: not an option of the engine {name}", f"it belongs to {owners}.")
        elif given:
            takers = [engine.name for engine in ENGINES.values() if set(given) <= set(engine.options)]
            if not takers:
                raise CommandError(f"{', '.join(given)}: no engine takes all of these options", "leave some out.")
            name = takers[0]
        return name

    def check(self, engine: str) -> None:
        """Raise CommandError if the engine of the policies does not take an option; InvalidInput for a bad value."""
        for option in self.given():
            if option not in find_engine(engine).options:
                raise CommandError(f"{option}: not an option of the engine {engine}", "leave it out.")
        for name in ("machines", "gpus_per_machine", "racks"):
            if getattr(self, name) is not None:
                as_integer(f"--{name.replace('_', '-')}", getattr(self, name), minimum=1)
        if self.speeds is not None and self.speeds not in SPEEDS:
            raise InvalidInput("--speeds", self.speeds, f"must be one of {', '.join(SPEEDS)}")
        if self.models is not None and self.speeds != "models":
            raise CommandError(f"--models {self.models}: read by --speeds models only", "add --speeds models.")
        if self.slowdown is not None and self.speeds in ("models", *NETWORK_SPEEDS):
            why = f"--speeds {self.speeds} states the time between machines itself"
            raise InvalidInput("--slowdown", self.slowdown, why)
        if self.network is not None and self.speeds not in NETWORK_SPEEDS:
            why = f"--network {self.network}: read by --speeds table, all-reduce and penalties only"
            raise CommandError(why, "add one of them.")

    def gpus(self, text: str | None) -> str:
        """Return the number of GPUs as written, or that of the machines, or the default."""
        machines, gpus_per_machine = self._machines()
        if machines is not None and gpus_per_machine is not None:
            product = machines * gpus_per_machine
            if text not in (None, str(product)):
                why = f"{machines} machines of {gpus_per_machine} GPUs have {product}"
                raise InvalidInput("--gpus", text, why)
            return str(product)
        return DEFAULT_GPUS if text is None else text

    def _machines(self) -> tuple[int | None, int | None]:
        """Return the machines and the GPUs of each; of `--racks` alone, 8 machines of 8 GPUs in each rack."""
        if self.racks is None or self.machines is not None or self.gpus_per_machine is not None:
            return self.machines, self.gpus_per_machine
        return self.racks * MACHINES_OF_RACK, GPUS_OF_MACHINE

    def cluster(self, gpus: int | Mapping[str, int]) -> Cluster:
        """Return the cluster; InvalidInput names the option that does not fit the GPUs."""
        bare = Cluster.of(gpus)
        if len(bare.types) > 1 and self.given():
            raise _one_type()
        machines, gpus_per_machine = self._machines()
        sizes = {"machines": machines, "gpus_per_machine": gpus_per_machine, "racks": self.racks}
        try:
            return Cluster(gpus_by_type=dict(bare.gpus_by_type), **sizes)
        except InvalidInput as error:
            if error.field not in sizes:
                raise
            raise InvalidInput(f"--{error.field.replace('_', '-')}", error.value, error.why) from None

    def model_speeds(self, gpus: int | Mapping[str, int]) -> ModelSpeeds | None:
        """Return the speeds by the model table, with the rows of `--models`; None without `--speeds models`."""
        if self.speeds != "models":
            return None
        table = ModelTable.builtin()
        if self.models is not None:
            table = table.extended(ModelTable.read(self.models))
        return ModelSpeeds(table, self.cluster(gpus).gpus_per_machine)

    def take_durations(self, engine: str) -> bool:
        """Return whether the engine runs a trace with durations by them alone, without profiles."""
        by_durations = self.speeds in (None, "durations", *NETWORK_SPEEDS)
        timed = "--speeds" in find_engine(engine).options and by_durations
        return timed or divides_gpus(engine)

    def speedup_tables(self) -> Speedups:
        """Return the speedups of `--speedups`, or the built-in ones."""
        return Speedups.builtin() if self.speedups is None else Speedups.read(self.speedups)

    def speeds_for(
        self,
        engine: str,
        trace: Trace,
        profiles: Profiles | Mapping[str, Profiles],
        models: ModelSpeeds | None,
        rules: Any,
        seed: int,
        cluster: Cluster,
    ) -> Any:
        """Return the speeds of an engine that does not divide GPUs; `models` are those of `model_speeds`."""
        if "--speeds" not in find_engine(engine).options:
            return profiles
        if not isinstance(profiles, Profiles):
            raise _one_type()
        name = self.speeds or ("profiles" if trace.duration_s is None else "durations")
        if name in ("durations", *NETWORK_SPEEDS) and trace.duration_s is None:
            raise InvalidInput("--speeds", name, "the trace has no durations; --speeds profiles takes its steps")
        slowdown = self._slowdown()
        factor = slowdown if isinstance(slowdown, float) else 1.0
        speeds: Speeds
        if name in NETWORK_SPEEDS:
            speeds = self._network_speeds(name, cluster)
        else:
            speeds = models or (DurationSpeeds(factor) if name == "durations" else ProfileSpeeds(profiles, factor))
        if isinstance(slowdown, SlowdownTable):
            speeds = MeasuredSlowdown(speeds, slowdown)
        try:
            beside = find_interference("1" if self.interference is None else self.interference, seed)
        except InvalidInput as error:
            if error.field != "interference":  # a column of the file
                raise
            raise InvalidInput("--interference", error.value, error.why) from None
        if rules.jobs_per_gpu > 1 and isinstance(beside, PairTable) and beside.missing(trace):
            one, other = beside.missing(trace)[0]
            raise InvalidInput("--interference", self.interference, f"the file has no ratio of {one} beside {other}")
        return SharedSpeeds(speeds, beside)

    def _network_speeds(self, name: str, cluster: Cluster) -> RatioSpeeds:
        """Return speeds by the network, with the data of `--network` or the built-in ones."""
        file = self.network
        if name == "table":
            return TableSpeeds(None if file is None else CommunicationTable.read(file), cluster=cluster)
        if name == "penalties":
            return PenaltySpeeds(cluster=cluster) if file is None else PenaltySpeeds.read(file, cluster=cluster)
        return AllReduceSpeeds(cluster=cluster) if file is None else AllReduceSpeeds.read(file, cluster=cluster)

    def _slowdown(self) -> float | SlowdownTable:
        """Return the slowdown of jobs on more machines than they need."""
        text = "1" if self.slowdown is None else self.slowdown
        try:
            factor = float(text)
        except ValueError:
            if not Path(text).is_file():
                why = "must be a number of at least 1, or a file of measured slowdowns"
                raise InvalidInput("--slowdown", text, why) from None
            return SlowdownTable.read(text)
        return as_real("--slowdown", factor, minimum=1.0)

    def metadata(self, engine: str) -> dict[str, Any]:
        """Return the options that the engine takes, as fields of a result's document."""
        taken, (machines, gpus_per_machine) = find_engine(engine).options, self._machines()
        stated = vars(self) | {"machines": machines, "gpus_per_machine": gpus_per_machine}
        return {name: value for name, value in stated.items() if f"--{name.replace('_', '-')}" in taken}


def divides_gpus(engine: str) -> bool:
    """Whether jobs of the engine run on any number of GPUs, at speeds by `--speedups`."""
    return "--speedups" in find_engine(engine).options


def _one_type() -> CommandError:
    return CommandError("--gpus with types: this engine takes GPUs of one type", "give a number.")
