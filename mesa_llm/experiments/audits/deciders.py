"""What decided in the runs of an audit, as their logs hold it: language models, weights, temperatures, versions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mesa_llm.errors import MesaLLMError
from mesa_llm.runlog.layout import columns
from mesa_llm.runlog.log import MODELS, RunLog
from mesa_llm.runlog.versions import DISTRIBUTION, versions
from mesa_llm.text import counted

MAX_LOGS = 100
"""Maximum number of logs of one condition that are read."""

SHORT_HASH = 16
"""Number of digits of a checksum that a text holds."""


@dataclass(frozen=True)
class DecidingModel:
    """A language model that decided in runs."""

    name: str
    """Its name in the logs."""

    served: tuple[str, ...]
    """Names under which its replies came, such as that of a local file or of a dated version."""

    access: str
    """How it was reached: `local`, `endpoint`, `batch`; empty: the logs do not say."""

    sha256: str
    """SHA-256 of local weights; empty: the logs do not say."""

    quantisation: str
    """Quantisation of local weights; empty: the logs do not say."""

    temperatures: tuple[float | None, ...]
    """Temperatures of its requests; None: its own default."""

    @property
    def text(self) -> str:
        """The language model in words."""
        served = [name for name in self.served if name not in ("", self.name)]
        parts = [f"replies by {', '.join(served)}"] if served else []
        if self.sha256:
            parts.append(f"weights with SHA-256 {self.sha256[:SHORT_HASH]}…")
        elif self.access in ("endpoint", "batch"):
            parts.append("weights known to its provider alone")
        elif self.access in ("", "local"):
            parts.append("no checksum of its weights in the logs")
        parts += [f"quantisation {self.quantisation}"] if self.quantisation else []
        degrees = ["its default" if one is None else f"{one:g}" for one in self.temperatures]
        parts += [f"temperature {', '.join(degrees)}"] if degrees else []
        return f"{self.name} ({'; '.join(parts)})"


@dataclass(frozen=True)
class Deciders:
    """What decided in runs, and what made them."""

    models: tuple[DecidingModel, ...]
    """Language models, in the order in which they come first."""

    versions: tuple[str, ...]
    """Versions of this package that made the runs."""

    n_logs: int
    """Number of logs that were read."""

    @property
    def text(self) -> str:
        """What decided and what made the runs, in two sentences."""
        present = versions()[DISTRIBUTION]
        names = "; ".join(one.text for one in self.models)
        made = ", ".join(self.versions) or "an unknown version"
        version = f"{DISTRIBUTION} {made}" if self.versions else made
        judged = "" if self.versions == (present,) else f" and judged with {present}"
        logs = f"according to the logs of {counted(self.n_logs, 'run')}"
        by = f"Decisions were made by {names}, {logs}. " if names else ""
        return f"{by}The runs were made with {version}{judged}."


def deciders_in(logs: Iterable[Path]) -> Deciders:
    """Read what decided in runs.

    Args:
        logs: Their logs; those that cannot be read are left out, as is what is beyond `MAX_LOGS`.
    """
    found, made_with, n_logs = dict[str, dict[str, Any]](), dict[str, None](), 0
    for log in list(dict.fromkeys(logs))[:MAX_LOGS]:
        try:
            with closing(RunLog(log, "read")) as runlog:
                _read(runlog, found, made_with)
        except (MesaLLMError, OSError):
            continue
        n_logs += 1
    models = tuple(
        DecidingModel(
            name,
            tuple(sorted(facts["served"])),
            str(facts.get("access", "")),
            str(facts.get("sha256", "")),
            str(facts.get("quantisation", "")),
            tuple(sorted(facts["temperatures"], key=lambda one: -1.0 if one is None else one)),
        )
        for name, facts in found.items()
    )
    return Deciders(models, tuple(made_with), n_logs)


def _read(runlog: RunLog, found: dict[str, dict[str, Any]], made_with: dict[str, None]) -> None:
    """Add what one log holds."""
    manifest = runlog.manifest
    version = manifest.get("versions", {}).get(DISTRIBUTION)
    made_with |= {version: None} if version else {}
    noted = manifest.get(MODELS)
    facts_of: dict[str, Any] = noted if isinstance(noted, dict) else {}
    at = [columns()["calls"].index(name) for name in ("model", "parameters", "reply", "error_kind")]
    for row in runlog.rows("calls"):
        name, parameters, reply, error = (row[index] for index in at)
        if error:
            continue
        known = facts_of.get(name)
        facts = found.setdefault(name, {"served": set(), "temperatures": set()})
        facts |= known if isinstance(known, dict) else {}
        facts["served"].add(_field(reply, "model") or "")
        facts["temperatures"].add((_field(parameters, "settings") or {}).get("temperature"))


def _field(text: Any, name: str) -> Any:
    try:
        return json.loads(text).get(name)
    except (TypeError, ValueError, AttributeError):
        return None
