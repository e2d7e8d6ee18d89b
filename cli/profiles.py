"""Profiles as named on the command line: a folder, or the package's own."""

from __future__ import annotations

from pathlib import Path

from ..simulation.profiles.table import Profiles
from .errors import CommandError

PROFILE_FILES = ("throughputs.csv", "models.csv", "accordion_rules.csv", "gns_rules.csv")
BUILTIN = "builtin"
DEFAULT_CLUSTER = "tacc"


def named_profiles(folder: str, cluster: str | None) -> Profiles:
    """Return the profiles of a folder, or the package's own for "builtin", which are of no particular cluster.

    The cluster is the one whose throughputs to read, only with a folder; None: the default cluster. A file missing from
    the folder, and a cluster named with the package's own profiles, are a CommandError.
    """
    if folder == BUILTIN:
        if cluster is not None:
            raise CommandError(
                f"--cluster {cluster}: the built-in profiles are of one cluster", "name a folder with --profiles."
            )
        return Profiles.builtin()
    missing = [name for name in PROFILE_FILES if not (Path(folder) / name).is_file()]
    if missing:
        hint = f"a folder of profiles holds {', '.join(PROFILE_FILES)}."
        raise CommandError(f"--profiles {folder}: has no {missing[0]}", hint)
    return Profiles.read(Path(folder), cluster=DEFAULT_CLUSTER if cluster is None else cluster)
