"""Seals: proof that the claims of an audit were written before its runs were made.

A seal is the SHA-256 of the claims, with the time. It is written to the audit's folder before the first run, and into
the log of each run before its first step. Whether claims were sealed is read from the logs: a run counts if its own log
holds them as they stand now. So neither the clock, nor an edited, lost or foreign seal file decides it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from mesa_llm.canonical import canonical_json
from mesa_llm.errors import ConfigError, MesaLLMError
from mesa_llm.experiments.audits.claim import AuditClaim
from mesa_llm.experiments.audits.dimensions import Setting
from mesa_llm.runlog.disk import reason_of, write_whole
from mesa_llm.runlog.log import RunLog
from mesa_llm.text import counted

FILE = "seal.json"
"""File in the folder of an audit that holds its seals."""

SEAL = "sealed_claims"
"""Manifest key: the claims that were sealed when a run began."""


class Seal(BaseModel, frozen=True):
    """Claims as they were at one time."""

    model_config = ConfigDict(extra="ignore")

    sha256: str
    """SHA-256 of `text`, in UTF-8."""

    sealed: str
    """When they were sealed, by the clock of the machine: `2026-11-29T20:00:00Z`."""

    claims: dict[str, str]
    """Name of each claim → SHA-256 of the claim alone."""

    text: str = ""
    """The claims as canonical JSON; empty in run logs."""

    @property
    def fact(self) -> dict[str, Any]:
        """What the log of a run holds of it."""
        return self.model_dump(exclude={"text"})


@dataclass(frozen=True)
class SealCheck:
    """Whether the claims of an audit were sealed before its runs."""

    seal: Seal
    """Seal of the claims as they stand now."""

    n_runs: int
    """Number of runs in the folder."""

    n_before: Mapping[str, int]
    """Claim → number of runs that began when it was not sealed as it stands now."""

    dropped: tuple[str, ...]
    """Claims that were sealed in the folder, and are not among those of the audit."""

    @property
    def is_sealed(self) -> bool:
        """Whether each claim was sealed, as it stands now, before the first run."""
        return not any(self.n_before.values())

    @property
    def text(self) -> str:
        """Whether they were sealed, in one or two sentences."""
        sealed = [name for name, n in self.n_before.items() if not n]
        when = f"at {self.seal.sealed} (SHA-256 {self.seal.sha256})"
        first = f"before the first of {counted(self.n_runs, 'run')}" if self.n_runs else "before any run"
        parts = [f"The claims were sealed {when}, {first}."] if self.is_sealed else []
        if not self.is_sealed and sealed:
            parts.append(f"Sealed {first}: {', '.join(sealed)}.")
        parts += [
            f"Not sealed before the first run: {name}; {n} of {counted(self.n_runs, 'run')} began when it was not "
            "sealed as it stands now."
            for name, n in self.n_before.items()
            if n
        ]
        if self.dropped:
            parts.append(f"Sealed in this folder and not judged here: {', '.join(self.dropped)}.")
        return " ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-serialisable types."""
        own = {"sealed before the first run": self.is_sealed, "runs": self.n_runs}
        return {**self.seal.fact, **own, "runs before": dict(self.n_before), "dropped": list(self.dropped)}


def seal_claims(claims: Sequence[AuditClaim], folder: str | Path) -> Seal:
    """Seal the claims of an audit, unless they are; runs made from then on hold the seal.

    The hash can be published before the first run: with a registry of studies, or in a commit. It is that of the
    claims, not of the file that they stand in; comments, order and defaults do not change it.

    Args:
        claims: The claims.
        folder: Folder of the audit, which is made if there is none.

    Returns:
        The seal; the first one of these claims, if the folder holds several.

    Raises:
        ConfigError: If it cannot be written.
    """
    place = Path(folder) / FILE
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    seal = _seal_of(claims, now)
    known = list(_seals_in(place))
    for one in known:
        if one.sha256 == seal.sha256:
            return one
    from_logs = (one for _, one in _runs_in(place.parent) if one is not None and one.sha256 == seal.sha256)
    if (earlier := next(from_logs, None)) is not None:
        seal = seal.model_copy(update={"sealed": earlier.sealed})
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(place, json.dumps({"seals": [one.model_dump() for one in [*known, seal]]}, indent=1) + "\n")
    except OSError as error:
        raise ConfigError(f"{str(place)!r} cannot be written: {reason_of(place, error)}") from error
    return seal


def check_seal(claims: Sequence[AuditClaim], folder: str | Path) -> SealCheck:
    """Check whether claims were sealed, as they stand, before the first run of an audit.

    Args:
        claims: The claims.
        folder: Folder of the audit.
    """
    place = Path(folder)
    own = _seal_of(claims, "")
    runs = [seal for _, seal in _runs_in(place)]
    found = [*filter(None, runs), *_seals_in(place / FILE)]
    sealed = min((one.sealed for one in found if one.sha256 == own.sha256), default="no time")
    n_before = {
        name: sum(seal is None or seal.claims.get(name) != digest for seal in runs)
        for name, digest in own.claims.items()
    }
    if not runs and sealed == "no time":
        n_before = dict.fromkeys(own.claims, 0)
    dropped = sorted({name for seal in found for name in seal.claims} - own.claims.keys())
    return SealCheck(own.model_copy(update={"sealed": sealed}), len(runs), n_before, tuple(dropped))


def _seal_of(claims: Sequence[AuditClaim], time: str) -> Seal:
    written = {claim.name: _claim_json(claim) for claim in claims}
    text = canonical_json(written)
    return Seal(
        sha256=_sha256(text),
        sealed=time,
        claims={name: _sha256(canonical_json([name, one])) for name, one in written.items()},
        text=text,
    )


def _claim_json(claim: AuditClaim) -> dict[str, Any]:
    """Return what a claim says, without what it leaves at its default, so that later versions can add to it."""
    fields: dict[str, Any] = {
        "measure": claim.measure,
        "between": [_setting_json(one) for one in claim.between] if len(claim.between) > 1 else [],
        "expects": claim.expectation.text,
        "smallest_effect": float(claim.smallest_effect),
        "kind": claim.kind,
        "words": list(claim.words),
        "statistic": "" if claim.statistic == "mean" else claim.statistic,
        "over_agents": None if claim.over_agents is None else asdict(claim.over_agents),
    }
    return {name: value for name, value in fields.items() if value}


def _setting_json(setting: Setting) -> dict[str, Any]:
    return {name: value for name, value in asdict(setting).items() if value}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _seals_in(file: Path) -> Iterator[Seal]:
    """Yield the seals of a file whose hash is that of their text; what was changed by hand is no seal."""
    try:
        written = json.loads(file.read_text(encoding="utf-8"))["seals"]
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return
    for one in written if isinstance(written, list) else ():
        with suppress(ValidationError):
            seal = Seal.model_validate(one)
            if _sha256(seal.text) == seal.sha256:
                yield seal


def _runs_in(folder: Path) -> Iterator[tuple[Path, Seal | None]]:
    """Yield the runs in the folder of an audit, each with the seal that its log holds; None without one.

    The log of a run that has not begun says nothing, and a row whose log is lost has no seal.
    """
    logs = sorted(file for file in (folder / "logs").glob("*.sqlite") if not file.name.startswith("awareness-"))
    for file in logs:
        seal, has_begun = None, True
        with suppress(MesaLLMError, ValidationError), closing(RunLog(file, "read")) as log:
            has_begun = log.holds_step(1)
            if SEAL in log.manifest:
                seal = Seal.model_validate(log.manifest[SEAL])
        if has_begun:
            yield file, seal
    for row in sorted((folder / "logs").glob("*.json")):
        if not row.with_suffix(".sqlite").exists():
            yield row, None
