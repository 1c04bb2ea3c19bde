"""Takes the picture of a page in the README: `python3 dev.py bench page_picture`.

It opens a recorded run of a language model as `mesa-llm view` does, goes to its last step, and writes
`models/mesa_llm_models/social/page.png`, which names the version that it shows. It needs Chromium on the path, or its
path in CHROMIUM.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from io import BytesIO
from pathlib import Path

from PIL import Image, PngImagePlugin
from playwright.sync_api import sync_playwright

from mesa_llm import __version__

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "models" / "mesa_llm_models" / "social" / "page.png"
WIDTH, HEIGHT = 1400, 900
PATIENCE_S = 300
COLOURS = 256
"""Number of colours that are kept: text stays sharp, and the file is half the size."""


def main() -> None:
    """Serve the run, take the picture, and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", nargs="?", default="social", help="Recorded run, as `mesa-llm view` takes it.")
    parser.add_argument("--out", type=Path, default=PICTURE, help="Picture to write.")
    arguments = parser.parse_args()
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome")
    browser = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if browser is None:
        sys.exit("the picture needs Chromium on PATH, or its path in CHROMIUM")
    with tempfile.TemporaryDirectory() as home:
        log = Path(home, "server.log")
        command = [sys.executable, "-m", "mesa_llm.cli.app", "view", arguments.run, "--no-browser", "--port", "0"]
        with log.open("w") as out:
            server = subprocess.Popen(command, cwd=home, stdout=out, stderr=out, env={**os.environ, "HOME": home})
        try:
            png = picture_of(address_in(log, server), browser)
        finally:
            server.terminate()
            server.wait(PATIENCE_S)
    noted = PngImagePlugin.PngInfo()
    noted.add_text("Software", f"mesa-llm-worlds {__version__}")
    image = Image.open(BytesIO(png)).convert("RGB").quantize(COLOURS)
    image.save(arguments.out, pnginfo=noted, optimize=True)
    print(f"{arguments.out}: {arguments.out.stat().st_size / 1000:.0f} kB")


def address_in(log: Path, server: subprocess.Popen[bytes]) -> str:
    """Wait for the address that the server prints."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline and server.poll() is None:
        if address := re.search(r"http://127\.0\.0\.1:\d+/\S*", log.read_text()):
            return address[0]
        time.sleep(0.2)
    sys.exit(f"the page did not open:\n{log.read_text()}")


def picture_of(address: str, browser: str) -> bytes:
    """Open a page, wait until nothing more is drawn, and return its picture as PNG."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        page = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.set_default_timeout(PATIENCE_S * 1000)
        page.goto(address)
        page.locator(".mesa-llm-main img, .mesa-llm-main svg, .mesa-llm-main canvas").first.wait_for()
        last = b""
        while (now := page.screenshot(animations="disabled")) != last:
            last = now
            page.wait_for_timeout(2000)
        chromium.close()
        return last


if __name__ == "__main__":
    main()
