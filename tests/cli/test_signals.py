"""Signals that end a command: replies in flight are kept, and the same command asks for nothing twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from mesa_llm_models.social.model import SocialModel
from tests.faulty_server import FaultyServer
from tests.processes import Python, run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

POT = "tests.pot:PotModel"
SEEDS = "--seeds 1 --workers 1 --out OUT"
COMMANDS = {
    "run": f"run {POT} --rng 1 --steps 3 --log OUT/run.sqlite",
    "run with client processes": f"run {POT} --rng 1 --steps 3 --log OUT/run.sqlite --clients 1",
    "sweep": f"sweep {POT} --vary n_agents=2,3 --seeds 2 --steps 2 --workers 1 --out OUT",
    "sweep by two": f"sweep {POT} --vary n_agents=2,3 --steps 3 --workers 2 --out OUT",
    "sweep by threads": f"sweep {POT} --vary n_agents=2,3 --steps 3 --on threads --out OUT",
    "study": "study classics persona_form --set rounds=1 --seeds 1 --out OUT",
    "audit": "audit prisoners_dilemma --measure cooperation --smallest-effect 0.1 --seeds 2 --dimensions format "
    "--no-awareness --set guests=2 --set regulars=false --set rounds=2 --out OUT",
    "bench": "bench tests.experiments.benchmark.pots:POT --repeats 2 --out OUT",
    "calibrate": f"calibrate {POT} OUT.csv --fit n_agents=1:2 --points 20 --search 0 --hold-out 0.5 {SEEDS}",
    "branch": "branch OUT.sqlite --from-step 1 --steps 2 --log OUT/run.sqlite",
}
"""Command → its words; OUT stands for a folder."""


def inputs_in(folder: Path) -> Path:
    """Write what some commands read, and return the folder for their results."""
    folder.mkdir()
    out = folder / "out"
    pd.DataFrame({"step": range(1, 5), "coins": [3, 6, 9, 12]}).to_csv(out.with_suffix(".csv"), index=False)
    model = SocialModel(n_agents=6, rng=1, log=out.with_suffix(".sqlite"))
    model.run_for(2)
    model.close()
    return out


def words_of(name: str, out: Path, server: FaultyServer) -> list[str]:
    """Return a command that asks a server."""
    words = COMMANDS[name].replace("OUT", str(out)).split()
    endpoint = ["--llm", f"tiny@{server.url}", "--concurrency", "3"]
    return ["-m", "mesa_llm.cli.app", *words, *(endpoint[:2] if name == "branch" else endpoint)]


@pytest.fixture(scope="module")
def wholes() -> dict[str, int]:
    """Return how many requests each command makes that nobody interrupts, as far as they have been counted."""
    return {}


def requests_of(name: str, folder: Path, wholes: dict[str, int]) -> int:
    """Return how many requests a command makes that nobody interrupts."""
    if name not in wholes:
        with FaultyServer() as server:
            assert run(*words_of(name, inputs_in(folder), server)).returncode == 0
            wholes[name] = server.count
    return wholes[name]


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        *((name, "SIGHUP") for name in COMMANDS),
        *((name, sent) for name in ("run", "bench") for sent in ("SIGINT", "SIGTERM")),
    ],
)
def test_a_signal_ends_a_command_whose_replies_in_flight_are_kept(
    name: str, sent: str, tmp_path: Path, wholes: dict[str, int]
) -> None:
    whole = requests_of(name, tmp_path / "whole", wholes)
    with FaultyServer(latency_s=0.3) as server:
        command = words_of(name, inputs_in(tmp_path / "ended"), server)
        first = Python(*command)
        while server.count < 4 and first.poll() is None:
            time.sleep(0.01)
        first.send_signal(getattr(signal, sent))
        assert first.wait(120) == 130, first.err
        assert server.count < whole
        again = run(*command)
        assert (again.returncode, server.count) == (0, whole), again.err


LEAD_SESSION = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""Takes the terminal at its standard input as its own, and becomes another process of Python."""


def test_a_command_whose_terminal_is_closed_keeps_the_replies_in_flight(tmp_path: Path, wholes: dict[str, int]) -> None:
    whole = requests_of("run", tmp_path / "whole", wholes)
    with FaultyServer(latency_s=0.3) as server:
        command = words_of("run", inputs_in(tmp_path / "ended"), server)
        ours, theirs = os.openpty()
        starter = [sys.executable, "-c", LEAD_SESSION, *command]
        first = subprocess.Popen(starter, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
        os.close(theirs)
        while server.count < 4 and first.poll() is None:
            time.sleep(0.01)
        os.close(ours)
        assert first.wait(120) == 130
        assert (run(*command).returncode, server.count) == (0, whole)


def test_nohup_is_respected(tmp_path: Path, wholes: dict[str, int]) -> None:
    whole = requests_of("run", tmp_path / "whole", wholes)
    with FaultyServer(latency_s=0.1) as server:
        command = words_of("run", inputs_in(tmp_path / "whole2"), server)
        process = subprocess.Popen(["nohup", sys.executable, *command], stdout=subprocess.DEVNULL)
        while server.count < 4 and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGHUP)
        assert (process.wait(120), server.count) == (0, whole)
