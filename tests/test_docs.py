"""Every command and block of Python of the documentation and the README does what it says, from top to bottom."""

import importlib
import inspect
import re
import runpy
import shlex
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

import mesa_llm
from mesa_llm.cli.app import app
from mesa_llm.experiments.runs.recordings import recorded_run
from tests.faulty_server import FaultyServer
from tests.processes import Python
from tests.viz.test_page import PATIENCE_S, until

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SERVING = {"app", "view", "classroom"}
"""Commands that go on until they are ended."""

FOUND_ELSEWHERE = {"writing_a_model.md", "many_servers.md"}  # tests/test_writing_a_model.py, test_many_servers.py
PAGES = [ROOT / "README.md", *(page for page in sorted(DOCS.glob("*.md")) if page.name not in FOUND_ELSEWHERE)]


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return the commands and blocks of Python of a page, in order, each with its language."""
    found = re.findall(r"^```(sh|python)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    lines = [(kind, [text] if kind == "python" else text.splitlines()) for kind, text in found]
    return [(kind, text) for kind, texts in lines for text in texts if text.strip()]


def serve(words: list[str]) -> None:
    """Start a server of pages, and end it as soon as it answers."""
    server = Python("-m", "mesa_llm.cli.app", *words, "--no-browser", "--port", "0")
    try:
        until(lambda: "mesa-llm: " in server.out or server.poll() is not None)
        address = re.search(r"http://127\.0\.0\.1:\d+", server.out)
        assert address, server.out + server.err
        until(lambda: answers(address[0]))
    finally:
        server.terminate()
        server.wait(PATIENCE_S)


def answers(address: str) -> bool:
    """Check whether a server answers; a visitor without its token it refuses."""
    try:
        urllib.request.urlopen(f"{address}/readyz").close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def run_command(line: str, url: str, monkeypatch) -> None:
    """Run a command in this process; its endpoints are all at one address. Those of dev.py are not run."""
    words = [url if word.startswith("http://") else word for word in shlex.split(line, comments=True)]
    while "=" in words[0]:
        monkeypatch.setenv(*words.pop(0).split("=", 1))
    if words[:2] == ["python", "-m"]:
        monkeypatch.setattr(sys, "argv", words[2:])
        status = None
        try:
            runpy.run_module(words[2], run_name="__main__")
        except SystemExit as end:
            status = end.code
        assert not status, line
    elif words[0] == "mesa-llm" and words[1] in SERVING:
        serve(words[1:])
    elif words[0] == "mesa-llm":
        here = ["--workers", "1"] if words[1] in ("sweep", "power", "calibrate", "sensitivity") else []
        done = CliRunner().invoke(app, [*words[1:], *here])
        is_refused = words[1] == "replay" and "/" in words[2] and recorded_run(words[2]).is_of_earlier_prompts
        assert done.exit_code == (2 if is_refused else 0), (line, done.output)
        assert not is_refused or f"mesa-llm-worlds=={recorded_run(words[2]).recording.version}" in done.output
        sys.stdout.write(done.output)
    else:
        assert words[:2] == ["python3", "dev.py"], line


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.stem)
def test_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    with FaultyServer() as server:
        for variable in ("OLLAMA_API_BASE", "OPENAI_API_BASE"):
            monkeypatch.setenv(variable, server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        for kind, text in blocks(page):
            if kind == "python":
                exec(compile(text, str(page), "exec"), names)
            else:
                run_command(text, server.url, monkeypatch)
    output = capsys.readouterr().out
    assert output
    assert "Empty DataFrame" not in output


def peers() -> list[str]:
    """Return the commands that show what stands in our column of docs/peers.md, those that make a run first."""
    rows = [line for line in (DOCS / "peers.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    found = [command for row in rows for command in re.findall(r"`(mesa-llm [^`]+)`", row.rsplit("|", 2)[1])]
    return sorted(dict.fromkeys(found), key=lambda command: "--log" not in command)


@pytest.mark.slow
def test_what_stands_beside_the_peers_is_shown_by_its_command(tmp_path, monkeypatch) -> None:
    (tmp_path / "design.json").write_text('{"settings": {"temperature": 0.2}}')
    (tmp_path / "users.csv").write_text("name,persona\nMina,A baker.\nOle,A pilot.\n")
    (tmp_path / "players").mkdir()
    (tmp_path / "players" / "kind.py").write_text("def move(own, other): return 'cooperate'")
    mine = {"MODEL": "ollama/qwen3", "FILE.json": "design.json", "FILE.csv": "users.csv", "FOLDER": "players"}
    monkeypatch.chdir(tmp_path)
    with FaultyServer() as server:
        monkeypatch.setenv("OLLAMA_API_BASE", server.url)
        for command in peers():
            if "--on ray" not in command:  # its extra may be absent
                run_command(" ".join(mine.get(word, word) for word in command.split()), server.url, monkeypatch)


@pytest.fixture
def made_pages(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("made_pages")


@pytest.mark.parametrize(("page", "n_rows"), [("fidelity.md", 120), ("faults.md", 70)])
def test_each_claim_names_a_test_that_exists(page, n_rows) -> None:
    rows = re.findall(r"\| `(tests/[\w/]+\.py)::(test_\w+)` \|$", (DOCS / page).read_text("utf-8"), re.MULTILINE)
    assert len(rows) > n_rows
    missing = [(file, name) for file, name in rows if f"def {name}(" not in (ROOT / file).read_text("utf-8")]
    assert missing == []


def test_the_reference_holds_every_public_name_once(made_pages) -> None:
    text = "".join(page for _, page in made_pages.reference_pages())
    names = re.findall(r"^\.\. auto\w+:: mesa_llm\.(\w+)$", text, re.MULTILINE)
    public = [name for name in dir(mesa_llm) if not inspect.ismodule(getattr(mesa_llm, name))]
    assert sorted(set(names) & set(dir(mesa_llm))) == sorted(public)
    assert len(names) == len(set(names))


def test_every_model_has_a_page_with_its_parameters(made_pages) -> None:
    pages = dict(made_pages.model_pages())
    assert "## Published numbers and ours" in pages["social"]
    assert "| `n_agents` |" in pages["social"]
    assert all(f"({name}.md)" in pages["index"] for name in pages if name != "index")


def test_one_page_lists_all_prompts_with_the_places_where_they_are_used(made_pages) -> None:
    ((_, page),) = made_pages.prompt_pages()
    templates = [path for folder in ("mesa_llm", "models") for path in (ROOT / folder).rglob("prompts/*.md")]
    assert all(f"### `{path.relative_to(ROOT).as_posix()}`" in page for path in templates)
    assert "Used in ." not in page
    assert "Rewording `formal`:\n\n~~~~text\nThis is what you remember:" in page
    assert "| `create_post` | `models/mesa_llm_models/social/world/rules.py` | Publish a post of your own. |" in page


def test_every_page_is_in_the_table_of_contents() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^([\w/]+)$", index, re.MULTILINE)
    assert {page.stem for page in DOCS.glob("*.md")} - {"index"} == {name for name in listed if "/" not in name}


def test_no_page_holds_the_markers_of_a_merge() -> None:
    folders = [ROOT.glob("*.md"), DOCS.rglob("*.md"), (ROOT / "models").rglob("*.md")]
    pages = [page for folder in folders for page in folder]
    marker = re.compile(r"^(<{7}|>{7}) ", re.MULTILINE)
    assert [str(page) for page in pages if marker.search(page.read_text(encoding="utf-8"))] == []
