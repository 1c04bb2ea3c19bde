"""Recorded runs, and models rebuilt from them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from mesa_llm.agents.design import AgentDesign
from mesa_llm.errors import ConfigError, MesaLLMError
from mesa_llm.model.identity import class_named, located, missing_file, parameter_from_json
from mesa_llm.model.model import LLMModel
from mesa_llm.model.options import constructor
from mesa_llm.model.scenario import parameters_of
from mesa_llm.runlog.comparison import LogComparison, are_alike
from mesa_llm.runlog.layout import FORMAT, columns
from mesa_llm.runlog.log import RunLog
from mesa_llm.runlog.versions import DISTRIBUTION
from mesa_llm.tools.tool import describe

logger = logging.getLogger(__name__)

MAX_COUNT = 50_000
"""Number up to which parameters of a recorded run are always believed."""


class _Row(BaseModel, strict=True):
    """An intervention, as a manifest keeps it."""

    step: int
    intervention: dict[str, Any]
    refusal: str = ""
    by: str = ""


class _Manifest(BaseModel, strict=True):
    """Fields of a manifest that are needed to repeat the run."""

    model: str
    parameters: dict[str, Any]
    rng: int | None
    files: dict[str, str] = {}
    interventions: list[_Row] = []
    versions: dict[str, Any] = {}
    models: dict[str, dict[str, Any]] = {}


@dataclass(frozen=True)
class Recording:
    """A recorded run."""

    file: Path
    """The run log."""

    model: str
    """Class of its model, as `module:Class`."""

    parameters: Mapping[str, Any]
    """Parameters by name, as the manifest holds them."""

    rng: int | None
    """Seed."""

    files: Mapping[str, str]
    """Digests of the files that its parameters name: `parameter=path` → digest."""

    interventions: tuple[Mapping[str, Any], ...]
    """Interventions, each with `step` and `intervention`."""

    digests: Mapping[int, str]
    """Digest of the run after each step."""

    n_rows: int
    """Number of decisions that it holds."""

    versions: Mapping[str, str] = MappingProxyType({})
    """Versions of the packages that recorded it, by name."""

    recorded_on: str = ""
    """Date on which the recording began, as `2026-11-26`; empty: unknown."""

    models: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    """What decided, by name: how each model was reached, and the SHA-256 and quantisation of local weights."""

    @property
    def version(self) -> str:
        """Version of this package that recorded it; empty: unknown."""
        return self.versions.get(DISTRIBUTION, "")

    @classmethod
    def read(cls, file: str | Path) -> Recording:
        """Read a recorded run.

        Raises:
            ConfigError: If the file holds no finished step, is damaged, or only another program can repeat the run.
        """
        file = Path(file)
        source = RunLog(file, "read")
        try:
            manifest, date = source.manifest, source.recorded_on
            digests = [(step, digest) for step, _, digest in source.rows("steps")]
            by = columns()["decisions"].index("by")
            n_rows, is_driven = 0, False
            for row in source.rows("decisions"):
                n_rows, is_driven = n_rows + 1, is_driven or row[by] == "outside"
        finally:
            source.close()
        if not manifest or not digests:
            raise ConfigError(f"{str(file)!r} holds no finished step; run it with mesa-llm run … --log {file}")
        try:
            run = _Manifest.model_validate(manifest)
        except ValidationError as error:
            raise ConfigError(
                f"{str(file)!r} is damaged: what the run was cannot be read: {describe(error)}"
            ) from error
        if is_driven:
            raise ConfigError(
                f"{str(file)!r} holds decisions from outside, which only the program that made them can make again: "
                "run it with replay=True and this log="
            )
        steps = digests[-1][0]  # steps that broke leave gaps, but not such a one
        if not isinstance(steps, int) or steps > 2 * len(digests) + 100:
            fault = f"it holds {len(digests)} steps, the last of which is step {steps}"
            raise ConfigError(f"{str(file)!r} is damaged: {fault}")
        rows = tuple(row.model_dump(exclude_defaults=True) for row in run.interventions)
        versions = {name: str(version) for name, version in run.versions.items()}
        own = (file, run.model, run.parameters, run.rng, run.files, rows, dict(digests), n_rows)
        return cls(*own, versions, date, run.models)

    @property
    def last_step(self) -> int:
        """The last step."""
        return list(self.digests)[-1]

    @property
    def imports(self) -> Iterator[str]:
        """Names, as `module:name`, of what repeating the run imports besides the model's class."""
        for value in self.parameters.values():
            if isinstance(value, dict):
                fields = cast("dict[str, Any]", value)
                yield from [str(fields["scenario"])] if "scenario" in fields else []
                yield from AgentDesign.imports(fields["design"]) if isinstance(fields.get("design"), dict) else []
        for row in self.interventions:
            document = row.get("intervention")
            design = cast("dict[str, Any]", document).get("design") if isinstance(document, dict) else None
            yield from AgentDesign.imports(cast("dict[str, Any]", design)) if isinstance(design, dict) else []

    def rebuilt(
        self,
        changes: Mapping[str, Any] | None = None,
        kind: type[LLMModel] | None = None,
        *,
        in_place: bool = False,
        **options: Any,
    ) -> LLMModel:
        """Rebuild the model of the run, in step 0, with its parameters, design, memories and seed.

        Args:
            changes: Parameters that differ, by name; of the model strings of the run, keys are sent to the addresses in
                these alone.
            kind: Class of the model; None: the recorded class is imported.
            in_place: Whether a replay takes the recorded replies also for requests of other texts, in the places of
                the recorded ones, as after a change of prompts. It need not do what the recorded run did.
            **options: Options of the model, such as `log` and `replay`.

        Raises:
            ConfigError: If it cannot be rebuilt from the log alone.
        """
        kind = kind or class_named(self.model, LLMModel)
        changes = changes or {}
        options.setdefault("named", texts_in(changes))
        kept = {name: value for name, value in self.parameters.items() if name not in changes}
        self._require_plausible(kept, kind)
        recorded = located(kept, self.files, self.file)
        try:
            arguments = {name: parameter_from_json(value) for name, value in recorded.items()} | dict(changes)
            positional: list[Any] = []
            parameters = list(constructor(kind).parameters.values())
            for index, parameter in enumerate(parameters):
                if parameter.kind is parameter.VAR_POSITIONAL and parameter.name in arguments:
                    positional = [arguments.pop(earlier.name) for earlier in parameters[:index]] + arguments.pop(
                        parameter.name
                    )
            model = kind(*positional, **{"rng": self.rng, **arguments, **options})
            model.runlog.is_in_place = in_place
            return model
        except Exception as error:  # any model, with parameters out of a file
            if lost := missing_file(recorded, self.files):
                raise ConfigError(
                    f"{str(self.file)!r} was made with {lost[0]}, and that file is neither in {str(Path.cwd())!r} nor "
                    f"in the folder of the log or above it: put it there (SHA-256 {lost[1]}…), or run this where it is"
                ) from error
            if isinstance(error, MesaLLMError):
                raise
            raise ConfigError(f"{self.model} cannot be made from the log alone: {error}") from error

    def _require_plausible(self, recorded: Mapping[str, Any], kind: type[LLMModel]) -> None:
        """Check that no number in an untrusted log would fill the memory when its model is rebuilt.

        Raises:
            ConfigError: If a parameter counts more than the log holds rows of, or is far from its default.
        """
        defaults = {parameter.name: parameter.default for parameter in parameters_of(kind)}
        for name, value in recorded.items():
            default = defaults.get(name)
            usual = 100 * abs(default) if isinstance(default, int | float) else 0
            most = max(MAX_COUNT, self.n_rows if name.startswith("n_") else usual)
            if type(value) is int and value > most:
                raise ConfigError(
                    f"{str(self.file)!r} holds {self.n_rows} decisions of a run with {name}={value}, which is not "
                    f"plausible; at most {most:g} is rebuilt from a log. Make the model in Python, with this log="
                )

    def replayed(self) -> LLMModel:
        """Replay the run to its end, without sending a request, and return the model; see `repeat`.

        Raises:
            ConfigError: If it cannot be rebuilt from the log alone.
            ReplayError: If it asks for something that the log does not hold.
        """
        model = self.rebuilt(log=self.file, replay=True)
        self.repeat(model)
        return model

    def repeat(self, model: LLMModel) -> LogComparison:
        """Step the rebuilt model of this run to its end, and compare what the log holds with what its replies give.

        A warning is logged if they differ. The model is what the replies give.

        Args:
            model: The model, made with `replay=True`, before its first step.

        Returns:
            What was found.

        Raises:
            ConfigError: If the log is damaged.
            ReplayError: If it asks for something that the log does not hold.
        """
        comparison = self.compare(model)
        if comparison.differences:
            logger.warning(
                "%s holds something else than its replies give (%s), of which this is made; see mesa-llm replay",
                self.file,
                comparison.differences[0],
            )
        return comparison

    def compare(self, model: LLMModel) -> LogComparison:
        """Do as `repeat`, and leave it to the caller to report what was found."""
        with closing(RunLog(self.file, "read")) as recorded:
            comparison = LogComparison(recorded, model.runlog)

            def work() -> None:
                while model.running and model.time < self.last_step:
                    model.step()
                    comparison.check_step(int(model.time))
                comparison.finish()

            self.guarded(work)
        return comparison

    def is_repeated(self, runlog: RunLog, first: int, last: int) -> bool:
        """Check whether a run that has just ended step `last` did in some steps what this one did.

        In a log of an earlier format, numbers may differ in their last digits, which depended on the processor.

        Args:
            runlog: Its log.
            first: The first step.
            last: The last step.
        """
        if runlog.digest == self.digests.get(last):
            return True
        with closing(RunLog(self.file, "read")) as recorded:
            return recorded.format < FORMAT and all(
                are_alike(recorded.step_facts(step), runlog.step_facts(step)) for step in range(first, last + 1)
            )

    def guarded(self, work: Callable[[], None]) -> None:
        """Call `work` on a model rebuilt from this log; if the log is damaged, the model may raise anything.

        Raises:
            ConfigError: If `work` raises an error that is not one of this package's own.
        """
        try:
            work()
        except (MesaLLMError, KeyboardInterrupt):
            raise
        except Exception as error:
            raise ConfigError(f"the replay of {str(self.file)!r} broke: {type(error).__name__}: {error}") from error


def texts_in(*values: Any) -> frozenset[str]:
    """Return all texts in values given by the user, including the names of models."""
    found: set[str] = set()
    for value in values:
        match value:
            case str():
                found.add(value.strip())
            case Mapping():
                found |= texts_in(*cast("Mapping[Any, Any]", value).values())
            case list() | tuple() | set() | frozenset():
                found |= texts_in(*cast("Iterable[Any]", value))
            case _:
                pass
    return frozenset(found)


def advance_to(model: LLMModel, step: int) -> None:
    """Step a model until a step is over, or the run is."""
    while model.running and model.time < step:
        model.step()
