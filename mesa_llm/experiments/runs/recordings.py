"""Recorded runs that come with a model: how they are declared, made, read and described.

A model's folder declares them in `recordings/runs.toml`, one table a run, and holds those that have been made beside
it, as compact run logs:

    prompts_since = "1.5.0"

    [debate]
    title = "Four members of a council talk about a toll"
    parameters = { config = "debate", people_play = false }

`python3 dev.py record` makes those of this project. Declarations are read without importing a model.

A prompt of the model last changed in the version `prompts_since`. A recording of an earlier version cannot be replayed,
as what is asked today is not what was answered then. It can still be watched: its replies are given to the requests of
today in the same places.
"""

from __future__ import annotations

import json
import logging
import tomllib
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, TypeAdapter, ValidationError, field_validator

from mesa_llm.agents.design import AgentDesign
from mesa_llm.errors import ConfigError, DecisionError, ReplayError
from mesa_llm.experiments.runs.promises import IDLE, RecordingVerdict, Trace, conditions_in, series_of
from mesa_llm.llm.protocol import LLM, Capabilities
from mesa_llm.model.identity import class_named
from mesa_llm.model.model import LLMModel
from mesa_llm.model.recording import Recording, advance_to
from mesa_llm.model.scenario import parameters_of
from mesa_llm.registry import ModelEntry, find_model, find_models
from mesa_llm.runlog.compact import RECORDED_ON, SUFFIX
from mesa_llm.runlog.log import RunLog
from mesa_llm.runlog.versions import DISTRIBUTION, is_before, versions
from mesa_llm.text import counted, suggestion
from mesa_llm.tools.tool import describe

logger = logging.getLogger(__name__)

FOLDER = "recordings"
"""Folder of the recorded runs, in that of their model."""

DECLARATIONS = "runs.toml"
"""File in that folder that declares them."""

SAME_LLM = "{llm}"
"""Value of a declared parameter that stands for the language model of the agents, such as that of a judge."""

LOCAL_LLMS = {"local": "SmolLM2-135M-Instruct", "local:1.5b": "Qwen2.5-Coder-1.5B-Instruct"}
"""Names of local language models in a log → what they are."""

PROMPTS_SINCE = "prompts_since"
"""Entry of the declarations that names the version in which a prompt of the model last changed."""

TWINS = ("rule", "random")
"""What stands beside a recording: its rule twin, and chance."""

TWINS_SUFFIX = ".twins.json"
"""Suffix of the file of their series."""

MAX_MEASURES = 40
"""Maximum number of measures of which they are kept."""

FORMER = {"people": "alike"}
"""Parameter that models of this project have had since their prompts changed → what stands for how they were before."""

_TWINS = TypeAdapter(dict[str, dict[str, list[float | None]]])

SEED = 1
"""Seed of a recorded run that declares none."""


class RecordedRun(BaseModel, frozen=True, extra="forbid"):
    """A run that a model declares, and its recording once it has been made."""

    folder: Path
    """Folder of the recordings of its model."""

    name: str
    """Its name, unique in its model."""

    title: str
    """What is seen in it, in a few words."""

    steps: Annotated[int, Field(ge=1)] | None = None
    """Number of steps; None: until the model ends by itself."""

    rng: Annotated[int, Field(ge=0)] = SEED
    """Seed."""

    parameters: Mapping[str, Any] = {}
    """Parameters and options of the model that differ from the defaults."""

    design: Mapping[str, Any] | None = None
    """Design of the agents, as `AgentDesign.to_json` writes it; None: the model's own."""

    promise: str = ""
    """What its title says happens, as conditions on its log; see `mesa_llm.experiments.runs.promises`."""

    idle: tuple[str, ...] = ()
    """Names of actions that do nothing, besides those of all models."""

    tried: Annotated[int, Field(ge=1)] = 1
    """Number of seeds that were tried until one gave this recording."""

    prompts_since: Annotated[str, Field(pattern=r"^(\d+(\.\d+)*)?$")] = ""
    """Version in which a prompt of its model last changed; empty: in none since its oldest recording."""

    @field_validator("promise")
    @classmethod
    def _check_promise(cls, promise: str) -> str:
        conditions_in(promise)
        return promise

    @property
    def file(self) -> Path:
        """Its recording, which need not exist."""
        return self.folder / f"{self.name}{SUFFIX}"

    @property
    def recording(self) -> Recording:
        """Its recording.

        Raises:
            ConfigError: If it has not been made, or is damaged.
        """
        if not self.file.is_file():
            raise ConfigError(f"the run {self.name!r} has not been recorded yet: {self.file} is missing")
        return Recording.read(self.file)

    @property
    def twins_file(self) -> Path:
        """Series of its rule twin and of the random baseline, which need not exist."""
        return self.folder / f"{self.name}{TWINS_SUFFIX}"

    @property
    def trace(self) -> Trace:
        """What its recording holds, as numbers and texts; nothing is replayed.

        Raises:
            ConfigError: If it has not been made, or is damaged.
        """
        return Trace.of(self.recording.file)

    @property
    def verdict(self) -> RecordingVerdict:
        """Whether its recording is worth watching.

        Raises:
            ConfigError: If it has not been made, or is damaged.
        """
        return RecordingVerdict.on(self.trace, self.promise, IDLE | {*self.idle})

    @property
    def twins(self) -> Mapping[str, Mapping[str, list[float | None]]]:
        """Series of its measures by its rule twin (`rule`) and by chance (`random`), of the same seed.

        Empty if they have not been made; see `record_twins`.

        Raises:
            ConfigError: If their file is damaged.
        """
        if not self.twins_file.is_file():
            return {}
        try:
            return _TWINS.validate_json(self.twins_file.read_bytes())
        except ValidationError as error:
            raise ConfigError(f"{self.twins_file} is damaged: {describe(error)}") from None

    def record_twins(self, kind: type[LLMModel]) -> None:
        """Run its rule twin and the random baseline, and put the series of their measures in their place.

        Each makes as many steps as the recording, or ends earlier by itself.

        Args:
            kind: Class of the model.

        Raises:
            ConfigError: If the declaration does not fit the model.
        """
        n_steps = self.recording.last_step if self.file.is_file() else self.steps
        twins = {llm: self._series(kind, llm, n_steps) for llm in TWINS}
        lines = [f"{json.dumps(llm)}: {json.dumps(series)}" for llm, series in twins.items()]
        self.twins_file.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")

    def _series(self, kind: type[LLMModel], llm: str, n_steps: int | None) -> dict[str, list[float | None]]:
        """Run the model with a rule twin or by chance, and return the series of its measures."""
        with closing(self.model(kind, llm)) as model:
            while model.running and (n_steps is None or model.time < n_steps):
                model.step()
            rows = [json.loads(text) for text in model.runlog.table("steps")["measures"]]
        rounded = {name: [_rounded(value) for value in values] for name, values in series_of(rows).items()}
        return {name: rounded[name] for name in list(rounded)[:MAX_MEASURES]}

    @property
    def is_of_earlier_prompts(self) -> bool:
        """Whether its recording was made before a prompt of its model changed, so that it cannot be replayed."""
        if not self.prompts_since or not self.file.is_file():
            return False
        with closing(RunLog(self.file, "read")) as log:
            return is_before(_version_in(log.manifest), self.prompts_since)

    def model(self, kind: type[LLMModel], llm: str | LLM, **options: Any) -> LLMModel:
        """Make the model of this run, before its first step.

        Args:
            kind: Class of the model.
            llm: Language model of the agents.
            **options: Further options, such as `log`.

        Raises:
            ConfigError: If the declaration does not fit the model.
        """
        llm_name = llm if isinstance(llm, str) else Capabilities.of(llm).name
        parameters = {name: llm_name if value == SAME_LLM else value for name, value in self.parameters.items()}
        if self.design is not None:
            options["design"] = AgentDesign.from_json(self.design)
        return kind(**parameters, **options, llm=llm, rng=self.rng)

    def record(
        self,
        kind: type[LLMModel],
        llm: str | LLM,
        log: Path,
        after_step: Callable[[LLMModel], None] = lambda model: None,
    ) -> None:
        """Record this run, and put the compact recording in its place.

        Args:
            kind: Class of the model.
            llm: Language model of the agents.
            log: Run log to record it in; replies that it already holds are used.
            after_step: Called with the model at the end of each step.

        Raises:
            ConfigError: If the log holds another run, a file cannot be written, or the installed version is before the
                one whose prompts are recorded.
            DecisionError: If more than half of the decisions failed; nothing is put in the place of the recording.
        """
        if is_before(here := versions().get(DISTRIBUTION, ""), self.prompts_since):
            raise ConfigError(
                f"{self.name!r} would be recorded as of version {here}, but its prompts are those of "
                f"{self.prompts_since}: install this folder again (pip install --editable .)"
            )
        with closing(self.model(kind, llm, log=log)) as model:
            while model.running and (self.steps is None or model.time < self.steps):
                model.step()
                after_step(model)
            decisions: int = model.engine.decisions
            failures: int = model.usage.failures
            if 2 * failures > decisions:
                reason = model.runlog.failures()[0]
                raise DecisionError(f"{failures} of {decisions} decisions failed. The first failed because: {reason}")
            model.runlog.compact_to(self.file)

    def start(self) -> LLMModel:
        """Return the recorded model before its first step; stepped, it is replayed without requests.

        Of a recording of earlier prompts, the replies are taken in the places where they were recorded, and a warning
        is logged.

        Raises:
            ConfigError: If there is no recording, or it cannot be replayed.
        """
        recording = self.recording
        if earlier := earlier_prompts(recording, self.prompts_since):
            logger.warning("%s was %s: its replies are given to the prompts of today", self.name, earlier)
        return recording.rebuilt(log=self.file, replay=True, in_place=bool(earlier))

    def replay(self) -> LLMModel:
        """Replay the recording to its end, without sending a request, and return the model; see also `start`.

        A recording of earlier prompts ends, with a warning, with the last step for which it holds all replies.

        Raises:
            ConfigError: If there is no recording, or it cannot be replayed.
            ReplayError: If one of today's prompts asks for something that it does not hold.
        """
        if not self.is_of_earlier_prompts:
            return self.recording.replayed()
        model, recording = self.start(), self.recording
        try:
            recording.guarded(lambda: advance_to(model, recording.last_step))
        except ReplayError:  # others act today than did then
            n_steps = len(model.runlog.table("steps"))
            model.close()
            logger.warning(
                "%s ends after %d of %d steps: no further reply fits", self.name, n_steps, recording.last_step
            )
            model = recording.rebuilt(log=self.file, replay=True, in_place=True)
            recording.guarded(lambda: advance_to(model, n_steps))
            model.running = False
        return model


def runs_in(folder: Path | None) -> dict[str, RecordedRun]:
    """Return the recorded runs that a model declares, by name, in the order of their declaration.

    Args:
        folder: Folder of the model's package; None: it has none.

    Raises:
        ConfigError: If the declarations cannot be read.
    """
    file = None if folder is None else folder / FOLDER / DECLARATIONS
    if file is None or not file.is_file():
        return {}
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
        common = {"folder": file.parent, PROMPTS_SINCE: tables.pop(PROMPTS_SINCE, "")}
        return {name: RecordedRun(name=name, **common, **table) for name, table in tables.items()}
    except ValidationError as error:
        raise ConfigError(f"{file}: {describe(error)}") from None
    except RecursionError:
        raise ConfigError(f"{file}: it is nested too deeply") from None
    except (tomllib.TOMLDecodeError, TypeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: {error}") from error


def made_runs(folder: Path | None) -> list[RecordedRun]:
    """Return those of a model's recorded runs that have been made.

    Args:
        folder: Folder of the model's package; None: it has none.

    Raises:
        ConfigError: If the declarations cannot be read.
    """
    return [run for run in runs_in(folder).values() if run.file.is_file()]


def earlier_prompts(recording: Recording, since: str | None = None) -> str:
    """Say that a run was recorded before a prompt of its model changed; empty if it was not, or nothing is known.

    Args:
        recording: The run, of any model.
        since: Version in which a prompt of the model last changed; None: what the declarations of the model say.
    """
    if since is None:
        module = recording.model.partition(":")[0]
        folders = [entry.folder for entry in find_models() if entry.module == module]
        since = next((run.prompts_since for folder in folders for run in runs_in(folder).values()), "")
    if not is_before(recording.version, since):
        return ""
    return f"recorded with {recording.version or 'an unknown version'}, and prompts of its model changed in {since}"


def read_again(recording: Recording, prepare: Callable[[LLMModel], None]) -> None:
    """Replay a run to its end, to read what its decisions were based on.

    Of a run of earlier prompts, the replies are taken in the places where they were recorded, and a warning is logged.
    Its decisions must be the recorded ones, as all that it shows follows from them; and nobody in it is a person whom
    the language model did not read of.

    Args:
        recording: The run.
        prepare: Called with the model before its first step, to keep what is wanted of it.

    Raises:
        ConfigError: If it cannot be replayed, or its replies, given to the prompts of today, decide something else.
        ReplayError: If it asks for something that the recording does not hold.
    """
    earlier, kind = earlier_prompts(recording), class_named(recording.model, LLMModel)
    former = FORMER if earlier else {}
    own = {parameter.name for parameter in parameters_of(kind)} - recording.parameters.keys()
    changes = {name: value for name, value in former.items() if name in own}
    with closing(recording.rebuilt(changes, kind, in_place=bool(earlier), log=recording.file, replay=True)) as model:
        prepare(model)
        if not earlier:
            recording.repeat(model)
            return
        logger.warning("%s was %s: its replies are given to the prompts of today", recording.file.name, earlier)
        recording.guarded(lambda: advance_to(model, recording.last_step))
        with closing(RunLog(recording.file, "read")) as recorded:
            before, now = (_decisions_in(log) for log in (recorded, model.runlog))
        if before != now:
            step = min(row[0] for row in before ^ now)
            raise ConfigError(
                f"{recording.file} was {earlier}; given to the prompts of today, its replies decide something else "
                f"from step {step} on: record it anew, or install mesa-llm-worlds=={recording.version}"
            )


def _decisions_in(log: RunLog) -> set[tuple[int, int, str, str]]:
    """Return step, agent, decider and decision of each row of a log."""
    rows = log.table("decisions")[["time", "agent", "by", "decision"]].itertuples(index=False)
    return {(time, agent, str(by), str(decision)) for time, agent, by, decision in rows}


def declared_runs() -> dict[str, tuple[ModelEntry, RecordedRun]]:
    """Return the recorded runs of all models, as `MODEL/RUN`, with the entry of the model.

    Raises:
        ConfigError: If declarations cannot be read.
    """
    return {
        f"{entry.name}/{name}": (entry, run) for entry in find_models() for name, run in runs_in(entry.folder).items()
    }


def recorded_run(name: str) -> RecordedRun:
    """Return a recorded run of an installed model; `recorded_run("social").replay()` returns its finished model.

    Args:
        name: Name of the model, for the first of its runs, or `MODEL/RUN`.

    Raises:
        ConfigError: If there is no such model or run.
    """
    model, _, wanted = name.partition("/")
    runs = runs_in(find_model(model).folder)
    if not runs:
        raise ConfigError(f"the model {model!r} has no recorded runs")
    if wanted and wanted not in runs:
        names = ", ".join(f"{model}/{each}" for each in runs)
        raise ConfigError(f"there is no recorded run {name!r}; there are: {names}{suggestion(wanted, list(runs))}")
    return runs[wanted] if wanted else next(iter(runs.values()))


@dataclass(frozen=True)
class RecordingFigures:
    """What a recording holds, in numbers."""

    llms: tuple[str, ...]
    """Names of the language models that replied."""

    recorded_on: str
    """Date of the recording, as `2026-11-26`; empty: unknown."""

    version: str
    """Version of this project that recorded it; empty: unknown."""

    steps: int
    """Number of steps."""

    agents: int
    """Number of agents that decided."""

    decisions: int
    """Number of decisions and answers to surveys, including failed ones."""

    failed: int
    """Number of those that failed."""

    actions: int
    """Number of actions and answers that worlds received."""

    refused: int
    """Number of those that the world refused."""

    calls: int
    """Number of requests, including those of judges and repairs."""

    tokens: int
    """Number of tokens of prompts and replies."""

    size: int
    """Size of the file, in bytes."""

    @property
    def valid_percent(self) -> float:
        """Percentage of decisions that did not fail; 0 without decisions."""
        return 100 * (self.decisions - self.failed) / self.decisions if self.decisions else 0.0

    @property
    def refused_percent(self) -> float:
        """Percentage of actions and answers that the world refused; 0 without any."""
        return 100 * self.refused / self.actions if self.actions else 0.0

    @property
    def llm(self) -> str:
        """Names of the language models, and what the local ones are."""
        return llm_text(self.llms)

    @property
    def summary(self) -> str:
        """The language model, the size of the run and the date, in one line."""
        date = f", recorded on {self.recorded_on}" if self.recorded_on else ""
        return f"{self.llm}: {counted(self.agents, 'agent')}, {counted(self.steps, 'step')}{date}"

    @property
    def line(self) -> str:
        """Requests, size, and shares of valid decisions and refused actions, in one line."""
        return (
            f"{counted(self.calls, 'call')}, {self.size / 1000:,.0f} kB, "
            f"{counted(self.decisions, 'decision')}: {self.failed} failed ({self.valid_percent:.1f}% valid), "
            f"{self.refused} refused ({self.refused_percent:.1f}%)"
        )


def llm_text(llms: Iterable[str]) -> str:
    """Return the names of language models, and what the local ones are.

    Args:
        llms: The names.
    """
    return ", ".join(f"{name} ({LOCAL_LLMS[name]})" if name in LOCAL_LLMS else name for name in llms) or "none"


def figures_of(file: Path) -> RecordingFigures:
    """Count what a recording holds.

    Args:
        file: The recording, or any run log.

    Raises:
        ConfigError: If it is damaged, or no run log.
    """
    with closing(RunLog(file, "read")) as log:
        tables: Any = {name: log.table(name) for name in ("decisions", "answers", "actions", "calls")}
        manifest, llms, steps = log.manifest, tuple(log.models()), sum(1 for _ in log.rows("steps"))
    decisions, answers, actions, calls = tables.values()
    return RecordingFigures(
        llms,
        str(manifest.get(RECORDED_ON, "")),
        _version_in(manifest),
        steps,
        int(decisions["agent"].nunique()),
        len(decisions) + len(answers),
        int(decisions["kind"].notna().sum() + answers["failure"].notna().sum()),
        len(actions),
        int((~actions["ok"]).sum()),
        len(calls),
        int(calls["prompt_tokens"].sum() + calls["reply_tokens"].sum()),
        file.stat().st_size,
    )


def _version_in(manifest: Mapping[str, Any]) -> str:
    """Return the version of this project that wrote a manifest; empty: unknown."""
    versions = manifest.get("versions")
    return str(versions.get(DISTRIBUTION, "")) if isinstance(versions, Mapping) else ""


def _rounded(value: float | None) -> float | None:
    """Round a value to six digits, as far as it has more."""
    return value if value is None or isinstance(value, int) else float(f"{value:.6g}")
