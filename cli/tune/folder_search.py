"""One search of the command line: its folder, its progress, its end by Ctrl-C, and its results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..console import print_status, print_text
from ..errors import OK
from ..json_text import json_option, json_text
from ..progress import SearchProgress
from .folder import CHECKPOINT, CONFIGS, FRONT, PAGE, SUMMARY, digest, open_folder, write_results
from .search_options import SearchOptions
from .summary import INTERRUPTED_BY, EndedSearch, document, print_summary

if TYPE_CHECKING:
    from ...heuristics.search.sampled_search import SampledSearch
    from ..simulate.config import SimulationConfig


@dataclass(frozen=True, kw_only=True)
class FolderSearch:
    """A search whose checkpoint and results are in a folder.

    Parameters
    ----------
    tuning : SampledSearch
    options : SearchOptions
    config : SimulationConfig
    stated : sequence of str
        Fields of its metadata that define the search.
    more : mapping of str to object
        Further settings that define it.
    files : sequence of path
        Files whose contents define it.
    """

    tuning: SampledSearch
    options: SearchOptions
    config: SimulationConfig
    stated: Iterable[str]
    more: Mapping[str, Any]
    files: Iterable[str | None]

    def run(self, out: Path, *, resume: bool, as_json: bool) -> int:
        """Search, write the results and print them; after Ctrl-C those of the best so far, and KeyboardInterrupt."""
        backend = self._backend
        settings = self._settings(backend)
        open_folder(out, settings, resume=resume)
        ended = self._search(backend, out / CHECKPOINT)
        front = ended.front
        if self.options.held_out and not ended.interrupted:
            front = front.with_held_out(self.tuning.held_out_scores(front))
        found = document(front, settings, ended)
        write_results(out, front, found)
        if as_json:
            print_text(json_text(found))
        else:
            print_summary(front, found)
        print_status(f"wrote {FRONT}, {PAGE}, {CONFIGS}/ and {SUMMARY} to {out}; {CHECKPOINT} is for --resume")
        if ended.interrupted:
            print_status("this is the best so far, with the scores of the search alone, which were not checked")
            raise KeyboardInterrupt
        return OK

    @property
    def _backend(self) -> str:
        """Name of the search, of which the checkpoint is an option."""
        from ...solvers.selection import candidates

        if self.options.backend != "auto":
            return self.options.backend
        table = candidates(self.tuning, time_limit=self.options.limit_s, threads=self.options.threads)
        return next(row.name for row in table if row.taken)

    def _settings(self, backend: str) -> dict[str, Any]:
        """Return what defines the search, as fields of JSON."""
        metadata = self.config.metadata()
        names = ("population", "samples", "held_out", "jobs", "load", "space")
        return {
            **{name: metadata[name] for name in self.stated},
            **{name: json_option(value) for name, value in self.more.items()},
            "objectives": [str(each) for each in self.tuning.objectives],
            "backend": backend,
            **{name: getattr(self.options, name) for name in names},
            "workloads": digest((*self.tuning.train, *self.tuning.test), self.files),
        }

    def _search(self, backend: str, checkpoint: Path) -> EndedSearch:
        """Search; after Ctrl-C return what was found, or raise KeyboardInterrupt if that is nothing."""
        from ...solvers.search.backend import SearchInterrupted
        from ...solvers.solve import solve

        options = self.options
        own: dict[str, Any] = {"checkpoint": str(checkpoint)}
        own |= {
            name: getattr(options, name) for name in ("evaluations", "population") if getattr(options, name) is not None
        }
        with SearchProgress(self.tuning.objectives, options.limit_s) as progress:
            try:
                result = solve(
                    self.tuning,
                    backend,
                    time_limit=options.limit_s,
                    threads=options.threads,
                    seed=options.seed,
                    on_progress=progress,
                    backend_options={backend: own},
                )
            except SearchInterrupted as interrupt:
                if interrupt.front is None:
                    raise
                return EndedSearch(
                    front=interrupt.front,
                    limit=INTERRUPTED_BY,
                    evaluations=interrupt.evaluations,
                    wall_s=progress.elapsed_s,
                )
        return EndedSearch.of(result)
