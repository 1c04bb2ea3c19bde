"""Tries an installed wheel as its user would, outside the checkout: `python3 dev.py wheel` runs it.

It needs nothing but the standard library and the wheel, and ends with 1 where something does not work.
"""

import re
import subprocess
import sys
import sysconfig
import time
import urllib.error
import urllib.request
from importlib.util import find_spec
from pathlib import Path

PATIENCE_S = 300
PROGRAM = str(Path(sysconfig.get_path("scripts"), "mesa-llm"))
COMMANDS = {
    "list": "prisoners_dilemma",
    "run prisoners_dilemma --llm rule --steps 2 --set rounds=2 --log run.sqlite": "digest: ",
    "replay run.sqlite": "identical: ",
    "notebooks copied": "To open them: jupyter lab copied",
}
"""Command → what it must print."""


def main(readme: Path) -> int:
    """Try the commands, the first example of the README, the notebooks and the pages.

    Args:
        readme: The README.

    Returns:
        Number of failures, at most 1.
    """
    failures = [] if is_installed() else ["mesa_llm is imported from somewhere else than the wheel"]
    for command, wanted in COMMANDS.items():
        done = subprocess.run([PROGRAM, *command.split()], capture_output=True, text=True, timeout=PATIENCE_S)
        if done.returncode != 0 or wanted not in done.stdout:
            failures.append(f"mesa-llm {command}: {done.stdout[-500:]}{done.stderr[-1000:]}")
    example = re.findall(r"^```python\n(.*?)^```", readme.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)[0]
    done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, timeout=PATIENCE_S)
    promised = re.findall(r"\d+\.\d+", example.rpartition("#")[2])  # "print(…)  # 1.00 and 0.47"
    if done.returncode != 0 or not promised or re.findall(r"\d+\.\d+", done.stdout) != promised:
        failures.append(
            f"the first example of the README, which promises {promised}: {done.stdout}{done.stderr[-1000:]}"
        )
    if not Path("copied", "course", "08_prompt_persona", "notebook.ipynb").is_file():
        failures.append("the course is not among the notebooks")
    failures += page_faults()
    sys.stdout.write(("\n".join(failures) or "The wheel works: models, recordings, notebooks, pages.") + "\n")
    return min(len(failures), 1)


def is_installed() -> bool:
    """Check that the library and the models are those of this environment."""
    here = Path(sysconfig.get_path("purelib"))
    found = [find_spec(name) for name in ("mesa_llm", "mesa_llm_models")]
    return all(spec is not None and here in Path(spec.origin or "").parents for spec in found)


def page_faults() -> list[str]:
    """Serve the pages, and return what is wrong with them."""
    log = Path("app.log")
    with log.open("w") as out:
        server = subprocess.Popen([PROGRAM, "app", "--no-browser", "--port", "0"], stdout=out, stderr=out)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and server.poll() is None:
            address = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", log.read_text())
            if address and (page := read(address[0])):
                return [] if "solara" in page.lower() else [f"the gallery is no page: {page[:500]}"]
            time.sleep(0.5)
        return [f"the pages do not answer: {log.read_text()[-1000:]}"]
    finally:
        server.terminate()
        server.wait(PATIENCE_S)


def read(address: str) -> str:
    """Return what a server sends to a visitor with the token; empty: nothing yet."""
    try:
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        opener.open(address, timeout=60).close()  # it sets the cookie of a visitor, and refreshes
        with opener.open(address.partition("?")[0], timeout=60) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as refusal:
        return f"refused with {refusal.code}"
    except OSError:
        return ""


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
