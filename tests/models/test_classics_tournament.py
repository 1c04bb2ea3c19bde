"""A tournament of files: who plays, what a fault costs, and that nothing stops it."""

import json

import pytest
from typer.testing import CliRunner

from mesa_llm import ConfigError
from models.classics.tournament import cli, find_players, play

PATIENCE_S = 60.0
"""Limit for files that are as fast as they should be, on a machine however busy."""


def seated(folder, sources, known=(), limit_s=PATIENCE_S):
    """Write files, and seat them."""
    for name, source in sources.items():
        (folder / f"{name}.py").write_text(source)
    return find_players(folder, limit_s, known)


def ranked(players, **options):
    """Play a tournament, and return the standings by name."""
    try:
        return {standing.name: standing for standing in play(players, **options)}
    finally:
        for player in players:
            player.close()


def test_files_and_known_strategies_are_ranked_with_intervals(tmp_path) -> None:
    sources = {
        "copycat": "print('hello')\ndef move(own, other): return other[-1] if other else 'cooperate'",
        "gambler": "import random\ndef move(own, other): return random.choice(['cooperate', 'defect'])",
    }
    standings = ranked(seated(tmp_path, sources, ["tit_for_tat", "always_defect"]), rounds=10, repeats=3)
    assert standings["copycat"].score == pytest.approx(standings["tit_for_tat"].score, abs=0.3)
    gambler = standings["gambler"]
    assert gambler.low is not None
    assert gambler.high is not None
    assert gambler.low <= gambler.score <= gambler.high
    assert standings["always_defect"].cooperation == 0
    assert standings == ranked(seated(tmp_path, sources, ["tit_for_tat", "always_defect"]), rounds=10, repeats=3)


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("def move(own, other): return own[5]", "IndexError: list index out of range"),
        ("def move(own, other) return 1", "SyntaxError"),
        ("move = 'cooperate'", "TypeError: 'str' object is not callable"),
        ("x = 1", "the file defines no function move"),
        ("def move(own, other): return 'betray'", "returned 'betray', which is neither"),
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
    assert (standings["curious"].forfeits, standings["curious"].cooperation) == (0, 1)


def test_the_command_writes_a_table_or_one_line_of_json(tmp_path) -> None:
    seated(tmp_path, {"nice": "def move(own, other): return 'cooperate'", "_notes": "no player"})
    how = [str(tmp_path), "--rounds", "2", "--repeats", "2", "--known", "always_defect", "--limit-s", str(PATIENCE_S)]
    table = CliRunner().invoke(cli, how)
    assert [line.split()[:2] for line in table.output.splitlines()[1:]] == [["1", "always_defect"], ["2", "nice"]]
    (line,) = CliRunner().invoke(cli, [*how, "--json"]).output.splitlines()
    assert [player["score"] for player in json.loads(line)["players"]] == [5, 0]


def test_a_folder_without_players_is_one_clear_error(tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"holds no player; put a NAME\.py"):
        find_players(tmp_path, 1.0)
    assert CliRunner().invoke(cli, [str(tmp_path)]).exit_code == 2
