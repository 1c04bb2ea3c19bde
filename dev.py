#!/usr/bin/env python3
"""Set the project up on first use, then run one of its commands.

    python3 dev.py demo          watch eight agents talk for three steps, with a small language model (a minute)
    python3 dev.py app           open the pages in a browser
    python3 dev.py notebooks     open notebooks and course in JupyterLab
    python3 dev.py notebooks --execute [FILE ...]   run them, and keep their outputs
    python3 dev.py test          run linters, type checker and tests (eleven minutes), or the tests given to pytest
    python3 dev.py test --fast   run the linters and the quick tests of the library (a minute)
    python3 dev.py test --shard 2/4   run one of four parts of the tests, without linters
    python3 dev.py lint          run linters and type checker
    python3 dev.py test-mesa4    run the contract tests on the Mesa 4 pre-release
    python3 dev.py bench [NAME]  run a program of benchmarks/, by default `overhead`
    python3 dev.py record [NAME] record the runs that come with a model again (minutes); alone: list all
    python3 dev.py docs          build the documentation; warnings are errors
    python3 dev.py wheel         build the wheel, install it into a fresh environment and try it (two minutes)
    python3 dev.py evidence      measure published values again and write docs/evidence.md (a quarter of an hour)

The first command also creates the environment, which takes one to three minutes more, depending on the network, and a
command that needs more packages adds them: a demo does not need what builds the documentation.
Further arguments go to the command. This script runs on any Python from 3.8 on, with only the standard library: it
finds or downloads the right Python, and creates the environment that everything else runs in.
"""

from __future__ import annotations

import glob
import hashlib
import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
OLDEST, CEILING = (3, 12), (3, 15)
WINDOWS = os.name == "nt"
MESA_4 = "mesa==4.0.0a0"
BAD_INPUT = 2
QUIET_AND_OFFLINE = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "SOLARA_TELEMETRY_MIXPANEL_ENABLE": "False",
    "SOLARA_THEME_SHOW_BANNER": "False",
}
BYTECODE = Path(".venv", "bytecode")
FAST_TESTS = [
    f"tests/{part}"
    for part in (
        "agents",
        "engine",
        "memory",
        "model",
        "population",
        "runlog",
        "space",
        "tools",
        "worlds",
    )
]
LINTERS = ("ruff check", "ruff format --check", "lint-imports --no-logo")
MAX_WORKERS = 8  # each takes up to a gigabyte
FOR_RUNS = ("local",)
FOR_PAGES = ("all", *FOR_RUNS)
FOR_TESTS = (*FOR_PAGES, "test", "docs")
FAST_MARKERS = "not slow and not browser"
DEMO_LOG = Path("runs", "demo.sqlite")
DEMO = f"run social --llm local --steps 3 --set n_agents=8 --set feed_size=4 --set may_pass=false --log {DEMO_LOG}"


class SetupError(Exception):
    """The environment could not be created; the message says what to do."""


class Environment:
    """A virtual environment of the project, with the project installed in it."""

    def __init__(self, name: str, instead: str | None = None) -> None:
        """Name the environment.

        Args:
            name: Its folder, in the root of the project.
            instead: A pin that replaces the one for the same package in constraints.txt.
        """
        self.folder = ROOT / name
        self.instead = instead

    def program(self, name: str) -> str:
        """Find an installed program."""
        return str(self.folder / ("Scripts" if WINDOWS else "bin") / (name + (".exe" if WINDOWS else "")))

    @property
    def pins(self) -> list[str]:
        """Lines of constraints.txt that apply to this environment."""
        pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if self.instead is None:
            return pins
        package = self.instead.split("==")[0]
        return [self.instead if pin.split("==")[0] == package else pin for pin in pins]

    def ensure(self, extras: tuple[str, ...]) -> None:
        """Create the environment, unless it has these extras and matches pyproject.toml and the pins.

        Args:
            extras: Extras of the project; those that earlier commands have installed stay.
        """
        wanted = (ROOT / "pyproject.toml").read_bytes() + "\n".join(self.pins).encode()
        fingerprint = hashlib.sha256(wanted).hexdigest()
        ready = self.folder / ".ready"
        found, *installed = ready.read_text().split() if ready.exists() else [""]
        is_there = is_usable(self.program("python"))
        if found == fingerprint and is_there and set(extras) <= set(installed):
            return
        if not is_there:
            make_venv(self.folder)
            installed = []
        together = sorted({*extras, *installed})
        self.install(together)
        ready.write_text(" ".join([fingerprint, *together]))

    def install(self, extras: list[str]) -> None:
        """Install the project, editable, with the pinned versions.

        Args:
            extras: Its extras.
        """
        python = self.program("python")
        pins = self.folder / "pins.txt"
        pins.write_text("\n".join(self.pins) + "\n", encoding="utf-8")
        call(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "uv")
        uv = [self.program("uv"), "pip", "install", "--quiet", "--python", python]
        call(*uv, "--constraints", str(pins), "--editable", ".[" + ",".join(extras) + "]")


def call(*command: str) -> None:
    """Run one step of the set-up, and report which one failed."""
    shown = " ".join(part.replace(str(ROOT) + os.sep, "") for part in command)
    print("+ " + shown, flush=True)
    try:
        subprocess.run(command, check=True, cwd=str(ROOT))
    except (OSError, subprocess.CalledProcessError) as error:
        raise SetupError(
            f"This step of the set-up failed (see above): {shown}\n"
            "Check the network and pip's settings, then run the same command again."
        ) from error


def is_usable(python: str) -> bool:
    """Check whether this program is a Python that the project runs on."""
    question = "import sys, ensurepip; print(*sys.version_info[:2])"
    try:
        answer = subprocess.run([python, "-c", question], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0 and OLDEST <= tuple(map(int, answer.stdout.split())) < CEILING


def python_candidates() -> list[str]:
    """List the names and paths where a suitable Python may be, the likeliest first."""
    minors = range(OLDEST[1], CEILING[1])
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    names = [sys.executable, *(f"python3.{minor}" for minor in minors), "python3", "python"]
    for minor in minors:
        names += sorted(glob.glob(os.path.join(pyenv, "versions", f"3.{minor}.*", "bin", "python3")))
    return names


def make_venv(folder: Path) -> None:
    """Create an empty environment, with a Python of this machine or one that uv downloads."""
    shutil.rmtree(folder, ignore_errors=True)
    python = next(filter(is_usable, python_candidates()), None)
    if python is not None:
        call(python, "-m", "venv", str(folder))
        return
    print("Found no Python from 3.12 to 3.14 with venv here; downloading one.", flush=True)
    bootstrap = Environment(".bootstrap")
    try:
        call(sys.executable, "-m", "venv", "--clear", str(bootstrap.folder))
        call(
            bootstrap.program("python"),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "uv",
        )
        call(bootstrap.program("uv"), "venv", "--seed", "--managed-python", "--python", "3.12", str(folder))
    except SetupError as error:
        raise SetupError(
            "There is no Python from 3.12 to 3.14 here, and none could be downloaded. Install one\n"
            "(on Debian and Ubuntu together with python3-venv), then run the same command again."
        ) from error


def surroundings() -> dict[str, str]:
    """Return the environment variables of a command of the project.

    Compiled Python is kept, but never beside the sources: uv installs packages uncompiled, and if
    PYTHONDONTWRITEBYTECODE is set, as in many containers, every process would compile all of Mesa and pandas again.
    IPython warns about an environment if VIRTUAL_ENV names another one.
    """
    left_out = {"PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV"}
    inherited = {name: value for name, value in os.environ.items() if name not in left_out}
    return {"PYTHONPYCACHEPREFIX": str(ROOT / BYTECODE), **inherited, **QUIET_AND_OFFLINE}


def run(*command: str) -> int:
    """Run a command of the project in its root, and return its exit status."""
    return subprocess.call(command, cwd=str(ROOT), env=surroundings())


def demo(venv: Environment, arguments: list[str]) -> int:
    (ROOT / DEMO_LOG).parent.mkdir(exist_ok=True)
    command = [venv.program("mesa-llm"), *DEMO.split(), *arguments]
    if (ROOT / DEMO_LOG).exists() and is_refused(command):
        kept = put_aside(ROOT / DEMO_LOG).relative_to(ROOT)
        print(f"{DEMO_LOG} is from another version of the demo; it is kept as {kept}.", flush=True)
    return run(*command)


def is_refused(command: list[str]) -> bool:
    """Check whether this run, started without a step, refuses to resume from the demo's run log."""
    begun = subprocess.run([*command, "--steps", "0"], cwd=str(ROOT), capture_output=True, text=True)
    return begun.returncode == BAD_INPUT and str(DEMO_LOG) in begun.stderr


def put_aside(log: Path) -> Path:
    """Rename a run log, and SQLite's files beside it, to the first free name, and return it."""
    number = next(number for number in itertools.count(1) if not log.with_name(f"demo-{number}.sqlite").exists())
    aside = log.with_name(f"demo-{number}.sqlite")
    for file in log.parent.glob(log.name + "*"):
        file.rename(aside.with_name(aside.name + file.name[len(log.name) :]))
    return aside


def app(venv: Environment, arguments: list[str]) -> int:
    return run(venv.program("mesa-llm"), "app", *arguments)


def notebooks(venv: Environment, arguments: list[str]) -> int:
    if arguments[:1] == ["--execute"]:
        venv.ensure(FOR_TESTS)
        files = arguments[1:] or sorted(glob.glob(str(ROOT / "notebooks" / "**" / "*.ipynb"), recursive=True))
        return run(venv.program("python"), "-m", "tests.cells", *(os.path.abspath(file) for file in files))
    return run(venv.program("jupyter-lab"), "notebooks", *arguments)


def test(venv: Environment, arguments: list[str]) -> int:
    pytest = [venv.program("python"), "-m", "pytest"]
    # one more than cores: two leave a tenth of the time of two cores to waiting for servers, browsers and kernels
    n_workers = min((os.cpu_count() or 2) + 1, MAX_WORKERS)
    shared = [
        "-n",
        str(n_workers),
        "--dist",
        "loadfile",
        "--no-loadscope-reorder",
    ]  # the order is that of tests/conftest.py
    is_fast = arguments[:1] == ["--fast"]
    if arguments[:1] == ["--shard"]:
        return run(*pytest, *shared, *arguments)
    if arguments and not is_fast:
        return run(*pytest, *arguments)
    tests = [*FAST_TESTS, "-m", FAST_MARKERS, *arguments[1:]] if is_fast else []
    is_compiled = Path(surroundings()["PYTHONPYCACHEPREFIX"]).exists()  # if not, each worker would compile everything
    compiling = None if is_compiled else start_beside(*pytest, "--collect-only", "-qq", *tests)
    types = None if is_fast else start_beside(venv.program("pyright"))
    failed = [linter for linter in LINTERS if not passes(venv, linter)]
    if compiling is not None:
        compiling.communicate()
    status = run(*pytest, *shared, *tests)
    if types is not None:
        report, _ = types.communicate()
        print("+ pyright\n" + report, end="", flush=True)
        failed += ["pyright"] if types.returncode != 0 else []
    if failed:
        print(f"FAILED: {', '.join(failed)}.", flush=True)
    return status or int(bool(failed))


def lint(venv: Environment, arguments: list[str]) -> int:
    failed = [linter for linter in (*LINTERS, "pyright") if not passes(venv, linter)]
    print(f"FAILED: {', '.join(failed)}." if failed else "Nothing was found.", flush=True)
    return int(bool(failed))


def passes(venv: Environment, linter: str) -> bool:
    """Run a linter, and return whether it found nothing."""
    name, *options = linter.split()
    print("+ " + linter, flush=True)
    return run(venv.program(name), *options) == 0


def start_beside(*command: str) -> subprocess.Popen:
    """Start a command of the project in its root, in the background; its output is read later."""
    return subprocess.Popen(
        command, cwd=str(ROOT), env=surroundings(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def test_mesa4(venv: Environment, arguments: list[str]) -> int:
    return run(venv.program("python"), "-m", "pytest", "-m", "contract", "tests", *arguments)


def bench(venv: Environment, arguments: list[str]) -> int:
    is_named = bool(arguments) and not arguments[0].startswith("-")
    name, rest = (arguments[0], arguments[1:]) if is_named else ("overhead", arguments)
    return run(venv.program("python"), str(Path("benchmarks") / (name + ".py")), *rest)


def evidence(venv: Environment, arguments: list[str]) -> int:
    return bench(venv, ["evidence", *arguments])


def record(venv: Environment, arguments: list[str]) -> int:
    return bench(venv, ["record", *arguments])


def docs(venv: Environment, arguments: list[str]) -> int:
    built = Path("build", "docs")
    sphinx = [venv.program("python"), "-m", "sphinx", "-W", "--keep-going", "--quiet", "-b", "html"]
    failed = run(*sphinx, *arguments, "docs", str(built))
    print("FAILED: the documentation (see above)." if failed else f"Built: {built / 'index.html'}", flush=True)
    return failed


def wheel(venv: Environment, arguments: list[str]) -> int:
    folder = ROOT / "build" / "wheel"
    shutil.rmtree(str(folder), ignore_errors=True)
    fresh = Environment(os.path.join("build", "wheel", "env"))
    uv, python = venv.program("uv"), venv.program("python")
    call(uv, "build", "--quiet", "--wheel", "--python", python, "--out-dir", str(folder))
    call(uv, "venv", "--quiet", "--python", python, str(fresh.folder))
    built = [str(file) for file in folder.glob("*.whl")]
    pins = str(venv.folder / "pins.txt")
    call(uv, "pip", "install", "--quiet", "--python", fresh.program("python"), "--constraints", pins, *built)
    away = {**surroundings(), "PYTHONPYCACHEPREFIX": str(folder / "bytecode"), "MESA_LLM_RUNS": str(folder / "runs")}
    away.pop("PYTHONPATH", None)
    trial = [fresh.program("python"), str(ROOT / "tests" / "try_wheel.py"), str(ROOT / "README.md"), *arguments]
    return subprocess.call(trial, cwd=str(folder), env=away)


MAIN = Environment(".venv")
COMMANDS = {
    "demo": (demo, MAIN, FOR_RUNS),
    "app": (app, MAIN, FOR_PAGES),
    "notebooks": (notebooks, MAIN, (*FOR_PAGES, "notebooks")),
    "test": (test, MAIN, FOR_TESTS),
    "lint": (lint, MAIN, FOR_TESTS),
    "test-mesa4": (test_mesa4, Environment(".venv-mesa4", instead=MESA_4), FOR_TESTS),
    "bench": (bench, MAIN, FOR_TESTS),
    "record": (record, MAIN, FOR_TESTS),
    "docs": (docs, MAIN, FOR_TESTS),
    "wheel": (wheel, MAIN, FOR_TESTS),
    "evidence": (evidence, MAIN, FOR_TESTS),
}


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1] not in COMMANDS:
        print(__doc__)
        return 2
    command, venv, extras = COMMANDS[sys.argv[1]]
    try:
        venv.ensure(extras)
        return command(venv, sys.argv[2:])
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
