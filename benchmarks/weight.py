"""Count the distributions and the megabytes of an install, in a fresh environment each.

    python benchmarks/weight.py              a plain install, and one with all extras that users get by `[all]`
    python benchmarks/weight.py offline      a plain install, and one with the extras named here

Needs uv, which `dev.py` puts into the environment, and a network. Sizes are those of the installed files, without what
Python compiles.
"""

import subprocess
import sys
import tempfile
from importlib.metadata import Distribution, distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]
N_LARGEST = 10
"""Number of distributions to name."""


def main(extras: list[str]) -> None:
    """Measure a plain install and one with extras."""
    for wanted in ("", f"[{','.join(extras or ['all'])}]"):
        with tempfile.TemporaryDirectory() as folder:
            sizes = installed_sizes(Path(folder), wanted)
        print(f"mesa-llm-worlds{wanted}: {len(sizes)} distributions, {sum(sizes.values()) / 1e6:,.0f} MB")
        for name in sorted(sizes, key=sizes.__getitem__, reverse=True)[:N_LARGEST]:
            print(f"    {sizes[name] / 1e6:6.0f} MB  {name}")


def installed_sizes(folder: Path, extras: str) -> dict[str, int]:
    """Install the project into a new environment, and return the bytes of each distribution there.

    Args:
        folder: Folder for the environment.
        extras: Extras in brackets; empty: none.
    """
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, folder / "env"], check=True)
    place = ["--python", folder / "env", "--constraints", ROOT / "constraints.txt"]
    subprocess.run([*uv, "pip", "install", "--quiet", *place, f"{ROOT}{extras}"], check=True)
    libraries = [str(path) for path in (folder / "env").glob("[Ll]ib/**/site-packages")]
    return {each.metadata["Name"]: size_of(each) for each in distributions(path=libraries)}


def size_of(distribution: Distribution) -> int:
    """Return the bytes of the files of a distribution."""
    files = [Path(str(distribution.locate_file(file))) for file in distribution.files or ()]
    return sum(file.stat().st_size for file in files if file.exists())


if __name__ == "__main__":
    main(sys.argv[1:])
