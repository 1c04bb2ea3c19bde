"""The files of a release agree with each other: versions, citation, tools that are pinned twice."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from PIL import Image

from mesa_llm.errors import EXTRAS, ConfigError, require_extra

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
HOOKS = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0]["hooks"]


def test_the_citation_is_of_this_version() -> None:
    assert {key: CITATION[key] for key in ("title", "version", "license", "abstract", "keywords")} == {
        "title": PROJECT["name"],
        "version": PROJECT["version"],
        "license": PROJECT["license"],
        "abstract": PROJECT["description"],
        "keywords": PROJECT["keywords"],
    }
    assert {"cff-version", "message", "authors"} <= set(CITATION)


def test_the_newest_release_in_the_changelog_is_this_version_and_has_its_date() -> None:
    newest = re.findall(r"^## \[(.+)\] - (\S+)$", CHANGELOG, re.MULTILINE)[0]
    assert newest == (PROJECT["version"], CITATION["date-released"])


def test_the_changelog_has_no_headings_but_those_of_keep_a_changelog() -> None:
    kinds = set(re.findall(r"^### (.+)$", CHANGELOG, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert CHANGELOG.index("## [Unreleased]") < CHANGELOG.index("## [0")


def test_hooks_use_the_pinned_ruff() -> None:
    pinned = re.search(r"^ruff==\S+$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert pinned
    assert {pin for hook in HOOKS for pin in hook.get("additional_dependencies", ())} == {pinned[0]}


@pytest.mark.parametrize(("length", "is_accepted"), [(72, True), (73, False)])
def test_a_commit_subject_has_72_characters_at_most(length, is_accepted) -> None:
    pattern = next(hook["entry"] for hook in HOOKS if hook["id"] == "commit-subject")
    message = "A" * length + "\n\n" + "Why. " * 40
    assert bool(re.search(pattern, message, re.MULTILINE)) is is_accepted


def test_the_picture_in_the_readme_shows_this_version() -> None:
    (picture,) = re.findall(r"^!\[.+\]\((.+\.png)\)$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    noted = Image.open(ROOT / picture).info.get("Software")
    assert noted == f"{PROJECT['name']} {PROJECT['version']}", "take it again: python3 dev.py bench page_picture"


def test_ci_tries_the_wheel() -> None:
    assert "python3 dev.py wheel" in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_the_hosted_ci_runs_what_everybody_runs_on_every_system_and_python() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    steps = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    matrix = {name: job["strategy"]["matrix"] for name, job in workflow["jobs"].items() if "strategy" in job}
    n_parts = len(matrix["tests"]["part"])
    assert steps == [
        "python dev.py lint",
        f".ci/run test --shard ${{{{ matrix.part }}}}/{n_parts}",
        ".ci/run docs",
        ".ci/run wheel",
        "python dev.py test --fast",
    ]
    assert matrix["tests"]["part"] == [*range(1, n_parts + 1)]
    assert {system.partition("-")[0] for system in matrix["systems"]["system"]} == {"ubuntu", "macos", "windows"}
    named = {line.rpartition(" ")[2] for line in PROJECT["classifiers"] if "Python :: 3." in line}
    assert set(matrix["systems"]["python"]) == named


def test_what_a_plain_install_lacks_is_named_with_the_command_that_installs_it(monkeypatch) -> None:
    assert EXTRAS.keys() <= PROJECT["optional-dependencies"].keys()
    assert all(extra in PROJECT["optional-dependencies"]["all"][0] for extra in EXTRAS)
    monkeypatch.setattr("mesa_llm.errors.EXTRAS", {"analysis": ("no_such_module",)})
    with pytest.raises(ConfigError, match=r"^distillation: no_such_module .*'mesa-llm-worlds\[analysis\]'"):
        require_extra("analysis", "distillation")
