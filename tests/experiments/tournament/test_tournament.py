"""A tournament of files: who plays, what a fault costs, and that nothing stops it."""

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mesa_llm import ConfigError
from mesa_llm.cli.app import app
from mesa_llm.experiments.tournament import Game, KnownPlayer, find_game, find_players, play
from mesa_llm_models.classics.prisoners_dilemma.game import GAME

PATIENCE_S = 60.0
"""Limit for files that are as fast as they should be, on a machine however busy."""


def seated(folder, sources, known=(), limit_s=PATIENCE_S):
    """Write files, and seat them."""
    for name, source in sources.items():
        (folder / f"{name}.py").write_text(source)
    return find_players(GAME, folder, limit_s, known)


def ranked(players, **options):
    """Play a tournament, and return the standings by name."""
    return {standing.name: standing for standing in play(GAME, players, **options)}


def test_files_and_known_strategies_are_ranked_with_intervals(tmp_path) -> None:
    sources = {
        "copycat": "print('hello')\ndef move(own, other): return other[-1] if other else 'cooperate'",
        "gambler": "import random\ndef move(own, other): return random.choice(['cooperate', 'defect'])",
    }
    standings = ranked(seated(tmp_path, sources, ["tit_for_tat", "always_defect"]), rounds=10, repeats=5)
    assert standings["copycat"].score == pytest.approx(standings["tit_for_tat"].score, abs=0.3)
    gambler = standings["gambler"]
    assert gambler.low is not None
    assert gambler.high is not None
    assert gambler.low <= gambler.score <= gambler.high
    assert standings["always_defect"].shares == {"cooperate": 0, "defect": 1}
    assert standings == ranked(seated(tmp_path, sources, ["tit_for_tat", "always_defect"]), rounds=10, repeats=5)


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("def move(own, other): return own[5]", "IndexError: list index out of range"),
        ("def move(own, other) return 1", "SyntaxError"),
        ("move = 'cooperate'", "TypeError: 'str' object is not callable"),
        ("x = 1", "the file defines no function move"),
        ("def move(own, other): return 'betray'", "returned 'betray', which is none of cooperate, defect"),
        ("def move(own, other): return ['cooperate']", "move() returned ['cooperate']"),
        ("import os\ndef move(own, other): os._exit(1)", "its process ended"),
        ("import os\ndef move(own, other): os.write(4, b'{}' * 9999)", "wrote more than a move"),
        ("import os\ndef move(own, other): os.write(4, b'\"defect\"\\n'); return 'defect'", "no move"),
        ("import sys\ndef move(own, other): sys.exit()", "SystemExit"),
    ],
)
def test_a_fault_costs_the_move_and_stops_nothing(tmp_path, source, fault) -> None:
    standings = ranked(seated(tmp_path, {"faulty": source}, ["always_defect"]), rounds=2, repeats=1)
    assert (standings["faulty"].forfeits, standings["faulty"].score) == (2, 0)
    assert fault in standings["faulty"].fault
    assert (standings["always_defect"].forfeits, standings["always_defect"].score) == (0, 3)


def test_a_file_may_begin_with_a_byte_order_mark_or_declare_its_encoding(tmp_path) -> None:
    source = "def move(own, other): return 'cooperate' if 'é' else None"
    (tmp_path / "marked.py").write_text(source, encoding="utf-8-sig")
    (tmp_path / "declared.py").write_text(f"# coding: latin-1\n{source}", encoding="latin-1")
    standings = ranked(find_players(GAME, tmp_path, PATIENCE_S, ()), rounds=2, repeats=1)
    assert {name: one.fault for name, one in standings.items()} == {"marked": "", "declared": ""}


def test_who_hangs_forfeits_and_after_three_times_is_not_waited_for(tmp_path) -> None:
    players = seated(tmp_path, {"hangs": "def move(own, other):\n    while True: pass"}, ["coin"], limit_s=0.2)
    standings = ranked(players, rounds=50, repeats=1)
    assert standings["hangs"].forfeits == 50
    assert players[0].faults[:3] == ["took longer than 0.2 s"] * 3
    assert players[0].faults[3] == "took longer than 0.2 s 3 times before in this match"


def test_who_replies_in_advance_and_reads_no_request_stops_nothing(tmp_path) -> None:
    forged = """
import os
def move(own, other):
    os.write(4, b'{"move": "defect"}\\n' * 1000)
    while True: pass
"""
    standings = ranked(seated(tmp_path, {"hasty": forged}, ["tit_for_tat"], limit_s=0.2), rounds=120, repeats=1)
    assert standings["hasty"].fault == "took longer than 0.2 s"
    assert standings["tit_for_tat"].forfeits == 0


DAEMON = """
import os, subprocess, sys, time

def move(own, other):
    if not own and os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, 99)
            os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)", MARK], {})
        os._exit(0)
    if not own:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", MARK], start_new_session=True)
        while len([1 for each in os.listdir("/proc") if each.isdigit() and is_marked(each)]) < 2:
            time.sleep(0.01)
    return "defect"

def is_marked(process):
    try:
        return MARK.encode() in open(f"/proc/{process}/cmdline", "rb").read().split(bytes(1))
    except OSError:
        return False
"""


def commands() -> str:
    """Return the command lines of all processes."""
    lines = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            lines.append(file.read_text(errors="replace"))
    return "\n".join(lines)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux knows who has started a process that hides")
def test_what_a_player_has_started_ends_with_the_match_in_whatever_session(tmp_path) -> None:
    mark = f"mark-{tmp_path.name}-{os.getpid()}"
    left: list[bool] = []

    class Witness(KnownPlayer):
        def move(self, match, seed, own, other):
            left.append(mark in commands())
            return "cooperate"

    players = seated(tmp_path, {"daemon": f"MARK = {mark!r}\n" + DAEMON})
    witnesses = [Witness(name, GAME.strategies["coin"]) for name in ("a", "b")]
    standings = ranked([*players, *witnesses], rounds=2, repeats=1)
    assert (standings["daemon"].fault, standings["daemon"].shares["defect"]) == ("", 1)
    assert left == [True] * 4 + [False] * 4  # those of the last match see nothing of the others
    assert mark not in commands()


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("def move(own, other): return 'x' * 2**40", "used more than 200 MB of memory"),
        (
            "all = []\ndef move(own, other):\n    while True: all.append(bytes(2**20))",
            "used more than 200 MB of memory",
        ),
        (
            "import os, time\ndef move(own, other):\n    [os.fork() for _ in range(2)]\n    x = b'x' * 2**27\n"
            "    time.sleep(60)",
            "used more than 200 MB of memory",
        ),
        (
            "import os, time\ndef move(own, other):\n    [os.fork() for _ in range(6)]\n    time.sleep(60)",
            "started more than 32 processes",
        ),
        ("def move(own, other): open('x', 'wb').truncate(2**40)", "OSError: [Errno 27]"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not hold to all of these limits")
def test_who_takes_too_much_forfeits_the_move_and_is_told_why(tmp_path, source, fault) -> None:
    (tmp_path / "greedy.py").write_text(source)
    players = find_players(GAME, tmp_path, PATIENCE_S, ["always_defect"], memory_mb=200)
    standings = ranked(players, rounds=2, repeats=1)
    assert fault in standings["greedy"].fault
    assert (standings["greedy"].forfeits, standings["always_defect"].forfeits) == (2, 0)


def test_a_player_sees_no_environment_and_none_of_the_other_matches(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("SECRET_API_KEY", "sk-secret")
    source = """
import os
seen = []
def move(own, other):
    seen.append(1)
    assert "SECRET_API_KEY" not in os.environ and os.listdir() == []
    assert len(seen) == len(own) + 1
    return "cooperate"
"""
    standings = ranked(seated(tmp_path, {"curious": source}, ["coin", "grudger"]), rounds=3, repeats=2)
    assert (standings["curious"].forfeits, standings["curious"].shares["cooperate"]) == (0, 1)


def test_the_command_writes_a_table_or_one_line_of_json(tmp_path) -> None:
    seated(tmp_path, {"nice": "def move(own, other): return 'cooperate'", "_notes": "no player"})
    how = ["tournament", str(tmp_path), "--rounds", "2", "--repeats", "2", "--known", "always_defect"]
    how += ["--limit-s", str(PATIENCE_S)]
    table = CliRunner().invoke(app, how)
    assert [line.split()[:2] for line in table.output.splitlines()[1:]] == [["1", "always_defect"], ["2", "nice"]]
    (line,) = CliRunner().invoke(app, [*how, "--json"]).output.splitlines()
    assert [player["score"] for player in json.loads(line)["players"]] == [5, 0]


STAGS = """
from mesa_llm.experiments.tournament import Game


def points(own, other):
    return {"hare": 1, "stag": 2 if other == "stag" else 0}.get(own, 0)


GAME = Game("stag_hunt", ("stag", "hare"), points, {"hunter": lambda own, other, rng: "stag"})
"""


def test_a_game_of_ones_own_is_played_by_files_too(tmp_path, monkeypatch) -> None:
    (tmp_path / "stags.py").write_text(STAGS)
    (tmp_path / "players").mkdir()
    (tmp_path / "players" / "loyal.py").write_text("def move(own, other): return 'stag'")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["tournament", "players", "--game", "stags:GAME", "--json"])
    assert [(player["name"], player["score"]) for player in json.loads(done.output)["players"]] == [
        ("hunter", 2),
        ("loyal", 2),
    ]


def test_a_game_is_found_by_its_name_or_as_the_only_one_there_is() -> None:
    assert find_game() is find_game("prisoners-dilemma") is GAME
    with pytest.raises(ConfigError, match="there is no game 'chess'; there are: prisoners_dilemma"):
        find_game("chess")
    with pytest.raises(ConfigError, match="two moves or more"):
        Game("solitaire", ("move",), GAME.points, {})


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ([], "contains no players; add a NAME.py"),
        (["--known", "tit_for_tit"], "there is no strategy 'tit_for_tit'"),
        (["--game", "chess"], "there is no game"),
    ],
)
def test_what_cannot_be_played_is_one_clear_error(options, fault, tmp_path) -> None:
    done = CliRunner().invoke(app, ["tournament", str(tmp_path), *options])
    assert (done.exit_code, fault in done.output) == (2, True)
