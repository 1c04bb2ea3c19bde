"""Tests that several processes share are all run once, and one whose process dies has failed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = {
    "test_good.py": "def test_one(tmp_path): assert tmp_path.parts\n\ndef test_two(capfd): print(2)",
    "test_bad.py": "from warnings import warn\n\ndef test_bad():\n    print('said')\n    assert warn('mind the gap')",
    "test_dead.py": "import os\n\ndef test_dead(): os._exit(3)",
    "test_more.py": "def test_three(): pass",
}


@pytest.mark.skipif(sys.platform != "linux", reason="tests are shared on Linux alone")
def test_what_each_process_reports_is_told_once(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "tests.workers", "--workers", "3", "-c", "/dev/null"]
    done = subprocess.run([*command, tmp_path], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert re.search(r"2 failed, 3 passed, 1 warning in", done.stdout)
    told = ("UserWarning: mind the gap", "\nsaid\n", "::test_dead - The process of this test ended with status 3")
    assert [text for text in told if done.stdout.count(text) != 1] == []
