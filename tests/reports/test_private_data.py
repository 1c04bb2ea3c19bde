"""No key, and nothing personal, leaves in any container unseen; the secrets here are made up."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import json
import shutil
import sqlite3
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import openpyxl
import pandas as pd
import pytest
from openpyxl.comments import Comment
from typer.testing import CliRunner

from mesa_llm import ConfigError
from mesa_llm.cli.app import app
from mesa_llm.llm.credentials import is_random
from mesa_llm.reports.private_data import private_data, require_no_keys
from mesa_llm_models.social.model import SocialModel

R, H = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6", "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
"""Random letters and hexadecimal digits."""

SECRET = "Swordfishmarlinsecretword"
"""A secret of the environment, which has no form of its own."""

KEYED = f'''"""Models."""
from mesa_llm_models.market.model import MarketModel


class Keyed(MarketModel):
    """Does {SECRET} pay?"""
'''
"""A model whose documentation holds it."""

KEYS = [
    *(f"sk-{R}", f"sk-ant-api03-{R}", f"sk-or-v1-{H}", f"sk-proj-{R}", f"xai-{R}", f"nvapi-{R}", f"pplx-{R}"),
    *(f"csk-{R}", f"gsk_{R}", f"hf_{R}", f"r8_{R}", f"AIza{R}x", f"github_pat_{R}", f"ghp_{R}", f"gho_{R}"),
    *(f"glpat-{R[:20]}", f"xoxb-123456789-{R}", f"xoxp-1-{R}", "AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE"),
    *(f"npm_{R}", f"pypi-{R}", f"dop_v1_{H}", f"SG.{R[:22]}.{R}", f"sk_live_{R}", f"rk_live_{R}", f"SK{H}"),
    *(f"https://hooks.slack.com/services/T1/B2/{R}", f"https://discord.com/api/webhooks/1/{R}", f"123456789:AA{R}"),
    *(f"Authorization: Bearer {R}", "Authorization: Basic YW5uOnNlY3JldA==", f"{H}-us12", f"fw_{R}", f"tgp_v1_{R}"),
    *("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjMifQ.c2lnbmF0dXJl", "-----BEGIN PRIVATE KEY-----", f"AccountKey={R}=="),
    *("-----BEGIN OPENSSH PRIVATE KEY-----", "-----BEGIN RSA PRIVATE KEY-----", "postgres://ann:hunter2@db.example/x"),
    *('password = "hunter2!"', "password: hunter2!x", '{"api_key": "a1b2c3d4e5"}', "export API_KEY=a1b2c3d4e5"),
    *("https://x.example/?token=a1b2c3d4e5", "DB_PASSWORD=a1b2c3d4e5", "os.environ['MY_TOKEN'] = 'a1b2c3d4e5'"),
    *('"private_key_id": "' + H + '"', "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    *("<password>a1b2c3d4e5</password>", "machine x.example login ann password a1b2c3", f"ya29.{R}", f"GOCSPX-{R}"),
]  # fmt: skip
"""What is never exported."""

POSSIBLE = [
    *(R, H, "-----BEGIN CERTIFICATE-----", "Set-Cookie: sid=a1b2c3d4e5f6", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
    *(f"ssh-rsa AAAA{R}", "PHPSESSID=a1b2c3d4e5f6", "password: swordfish"),
]  # fmt: skip
"""What is listed, for a person to look at."""

PERSONAL = {
    "e-mail address": "ann@keller.example",
    "phone number": "(555) 123-4567",
    "bank account (IBAN)": "CH93 0076 2011 6238 5295 7",
    "payment card": "4539 1488 0343 6467",
    "US social security number": "123-45-6789",
    "Swiss insurance number": "756.9217.0769.85",
    "Brazilian tax number": "529.982.247-25",
    "IP address": "203.0.113.7",
    "postal address": "12 Baker Street",
    "date of birth": "born on 3 May 1984",
    "private path": "/home/ann/notes.txt",
    "GPS position": "47.37689, 8.54169",
}
"""Kind → an example."""


def member(content: bytes, name: str = "notes.txt") -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as files:
        files.writestr(name, content)
    return archive.getvalue()


def tarred(content: bytes) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as files:
        entry = tarfile.TarInfo("notes.txt")
        entry.size = len(content)
        files.addfile(entry, io.BytesIO(content))
    return archive.getvalue()


def workbook(text: str, place: str) -> bytes:
    book, content = openpyxl.Workbook(), io.BytesIO()
    people = book.worksheets[0]
    people["A1"], people["A2"] = "persona", "A baker."
    if place == "cell":
        people["A3"] = text
    elif place == "comment":
        people["A2"].comment = Comment(text, "me")
    elif place == "properties":
        book.properties.keywords = text
    else:
        sheet = book.create_sheet("more")
        sheet["A1"], sheet.sheet_state = text, "veryHidden"
    book.save(content)
    return content.getvalue()


def parquet(text: str) -> bytes:
    return pd.DataFrame({"persona": ["A baker.", text]}).to_parquet()


def database(text: str) -> bytes:
    with closing(sqlite3.connect(":memory:")) as opened:
        opened.execute("CREATE TABLE notes (note)")
        opened.execute("INSERT INTO notes VALUES (?)", (text,))
        opened.commit()
        return opened.serialize()


CONTAINERS: dict[str, Callable[[str], bytes]] = {
    "notes.txt": lambda text: f"A baker.\n{text}\n".encode(),
    "users.csv": lambda text: f"persona\nA baker.\n{json.dumps(text) if ',' in text else text}\n".encode(),
    "users.csv.gz": lambda text: gzip.compress(f"persona\n{text}\n".encode()),
    "users.json": lambda text: json.dumps([{"persona": text}]).encode(),
    "escaped.json": lambda text: json.dumps([{"persona": text}]).replace("-", "\\u002d").encode(),
    "cells.xlsx": lambda text: workbook(text, "cell"),
    "comment.xlsx": lambda text: workbook(text, "comment"),
    "hidden.xlsx": lambda text: workbook(text, "sheet"),
    "properties.xlsx": lambda text: workbook(text, "properties"),
    "users.parquet": parquet,
    "more.zip": lambda text: member(text.encode()),
    "nested.zip": lambda text: member(member(workbook(text, "cell"), "users.xlsx"), "more.zip"),
    "more.tar.gz": lambda text: tarred(text.encode()),
    "notes.bz2": lambda text: bz2.compress(text.encode()),
    "notes.sqlite": database,
    "wide.txt": lambda text: f"A baker.\n{text}".encode("utf-16"),
    "unmarked.txt": lambda text: f"A baker.\n{text}".encode("utf-16-be"),
    "latin.txt": lambda text: f"Bäcker.\n{text}".encode("latin-1"),
    "base64.txt": lambda text: base64.b64encode(f"A baker. {text}".encode()),
    "twice.txt": lambda text: base64.b64encode(gzip.compress(text.encode())),
    "lines.txt": lambda text: base64.encodebytes(f"A baker of some bread and cake says this: {text}".encode()),
    "percent.txt": lambda text: quote(text, safe="").encode(),
    "unseen.txt": lambda text: "\u200b".join(text).encode(),
    "soft.txt": lambda text: f"{text[:3]}\xad{text[3:]}".encode(),
    "blob.bin": lambda text: bytes(range(256)) + text.encode() + bytes(range(255, 0, -1)),
}


def lines_of(folder: Path, name: str, text: str) -> list[str]:
    """Return what is said of a text in a container, be it refused or listed."""
    (folder / name).write_bytes(CONTAINERS[name](text))
    found = [str(one) for one in private_data([folder / name], folder, folder / "run.sqlite")]
    try:
        require_no_keys([folder / name], folder, folder / "run.sqlite")
    except ConfigError as error:
        found.append(f"REFUSED: {error}")
    return found


@pytest.mark.parametrize("name", CONTAINERS)
def test_no_key_passes_in_any_container(name: str, tmp_path: Path) -> None:
    keys = KEYS if name == "notes.txt" else KEYS[::12]
    passed = [key for key in keys if not any("REFUSED" in line for line in lines_of(tmp_path, name, key))]
    assert passed == []


@pytest.mark.parametrize("name", CONTAINERS)
def test_what_may_be_a_key_is_listed(name: str, tmp_path: Path) -> None:
    texts = POSSIBLE if name == "notes.txt" else POSSIBLE[:2]
    unseen = [key for key in texts if not any("form is not" not in line for line in lines_of(tmp_path, name, key))]
    assert unseen == []


@pytest.mark.parametrize("name", [name for name in CONTAINERS if name != "blob.bin"])
def test_personal_data_are_listed_with_their_kind(name: str, tmp_path: Path) -> None:
    unseen = [
        kind
        for kind, text in (PERSONAL if name == "notes.txt" else dict([*PERSONAL.items()][::5])).items()
        if not any(f": {kind} (" in line for line in lines_of(tmp_path, name, text))
    ]
    assert unseen == []


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("a.pdf", b"%PDF-1.7 x", "it is a PDF"),
        ("a.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(99), "old or encrypted document"),
        ("a.zip", b"PK\x03\x04" + bytes(99), "its form is not known"),
        ("a.gz", gzip.compress(b"x" * 9_999, mtime=0)[:-30] + b"PK", "could not be read"),
        ("a.7z", b"7z\xbc\xaf\x27\x1c" + bytes(99), "a 7z archive"),
    ],
)
def test_what_cannot_be_read_is_named(name: str, content: bytes, fault: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    lines = [str(one) for one in private_data([tmp_path / name], tmp_path, tmp_path / "run.sqlite")]
    assert any(fault in line for line in lines), lines


def test_words_paths_and_versions_are_no_random_strings() -> None:
    words = ["a_snake_case_name_of_42_letters", "models/mesa_llm_models/social/page", "2026-11-29T10:00:00.123456Z"]
    assert not any(
        map(is_random, [*words, "Hippopotomonstrosesquippedaliophobia", "1" * 40, "step-1-step-2-step-3-step-4"])
    )


@pytest.mark.parametrize(
    "words",
    [
        ("export", "run.sqlite", "--out", "out"),
        ("report", "run.sqlite", "--out", "out.md"),
        ("report", "run.sqlite", "--out", "out.html"),
        ("odd", "keyed:Keyed", "--out", "out.md"),
        ("extract", "people.txt", "--out", "out.json"),
        ("replay", "study.zip", "--into", "out"),
        ("bundle", "run.sqlite", "--out", "out.zip", "--yes"),
    ],
    ids=lambda words: " ".join(words[:4:3]),
)
def test_no_command_exports_a_key(words: tuple[str, ...], keyed: Path) -> None:
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, "looks like a key of yours stands in" in done.stderr) == (2, True), done.output
    assert SECRET not in done.output
    assert not [path for path in keyed.glob("out*") if path.is_file() or [*path.iterdir()]]


@pytest.mark.parametrize(
    "words",
    [
        ("report", "run.sqlite"),
        ("report", "run.sqlite", "--json"),
        ("odd", "keyed:Keyed"),
        ("inspect", "shown.sqlite"),
        ("inspect", "shown.sqlite", "--decisions", "--full"),
        ("inspect", "shown.sqlite", "--decisions", "--csv"),
    ],
    ids=" ".join,
)
def test_no_screen_shows_a_key(words: tuple[str, ...], keyed: Path) -> None:
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, SECRET in done.output, "(key)" in done.output) == (0, False, True), done.output


@pytest.fixture
def keyed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a run, a bundle, a model and a text in which a secret of the environment stands."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    Path("users.csv").write_text(f"name,persona\n{SECRET},A pilot.\n{SECRET} II,A pilot.\n")
    Path("keyed.py").write_text(KEYED)
    Path("people.txt").write_text(f"Here {SECRET} met Ole. Later {SECRET} told Ole. Then {SECRET} left.")
    with closing(SocialModel(rng=1, log="run.sqlite", users="users.csv")) as run:
        run.run_for(2)
    shutil.copy("run.sqlite", "shown.sqlite")
    with closing(sqlite3.connect("shown.sqlite")) as log, log:
        log.execute("UPDATE decisions SET text = ?", (SECRET,))
        log.execute("INSERT INTO manifest VALUES ('note', json_quote(?))", (SECRET,))
    assert CliRunner().invoke(app, ["bundle", "run.sqlite", "--out", "study.zip", "--yes"]).exit_code == 0
    monkeypatch.setenv("MY_API_KEY", SECRET)
    return tmp_path
