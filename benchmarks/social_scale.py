"""Scaling of the social model: build time, memory and steps from a thousand users to a million, with ten follows each.

Each size runs in its own process. Users are invented, follow ten others by preferential attachment, and decide by
their rule twins; up to 10,000 of them, drawn at random, act in a step. Times are processor seconds. `build_s` is the
time to build the model; `step_s` the median of whole steps; `world_s` the median, over further steps, of the world's
part of a step: feeds, observations, actions, and SQLite. `growth` is the time per active user in the last five steps
over that in steps 8 to 12; both are medians of five, as an occasional step pays for a full garbage collection.
`stub_ms` is the time of a decision of a language model that answers at once in the same process, prompts and records
included. `prompt_change` is the growth of its prompts, in percent, from steps 8 to 12 to the last five of a hundred,
and `log_bytes` the size of a decision in the run log. `look_ratio` is the time of one action and the next observation
among 300,000 posts, over that among 1,000.

The speed of a Python depends on its build, so each side reports its time for a plain loop; with `--peer-python`,
compare builds of the same kind.

    python benchmarks/social_scale.py                      1,000 to 1,000,000 users, and camel-oasis beside them
    python benchmarks/social_scale.py --users 1000000 --no-peer --json
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median
from typing import Any

from cpu_breakdown import CpuBreakdown
from harness import HERE, NotRun, environment_of, last_line
from measurement import python_text
from thresholds import Threshold, figure_text, table

from mesa_llm.engine.activation import RandomShare
from mesa_llm.llm.scripted import ScriptedLLM, call
from mesa_llm.records import Reply, Request
from mesa_llm.tools.tool import marked_methods
from mesa_llm_models.social.model import SocialModel
from mesa_llm_models.social.world import Account, FeedName, SocialWorld

SIZES = (1_000, 10_000, 100_000, 1_000_000)

FOLLOWS = 10

MAX_ACTIVE = 10_000
"""Maximum number of users who act in a step, on average."""

PRESETS = ("x", "reddit", "simswarm")

UPSTREAM_PACKAGES = ("mcp<2", "camel-oasis==0.2.5")
"""The other package and its undeclared requirement: it fails to import with newer versions of `mcp`."""

UPSTREAM_SIZES = (100, 1_000)

ENTRIES = ("expect", "observe", "end_step", "totals", "largest_cascade")
"""Methods of the world that a step calls, besides tools and actions."""

EARLY = slice(7, 12)
"""Steps to compare later ones with."""


def peak_mb() -> float:
    """Return the peak memory of this process so far, in megabytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)


def scale(users: int, preset: str, steps: int) -> dict[str, Any]:
    """Measure one size."""
    begun = time.process_time(), time.perf_counter()
    share = min(1.0, MAX_ACTIVE / users)
    model = SocialModel(n_agents=users, follows=FOLLOWS, preset=preset, rng=1, activation=RandomShare(share))
    built = time.process_time(), time.perf_counter()
    measured: dict[str, Any] = {
        "users": users,
        "preset": preset,
        "build_s": built[0] - begun[0],
        "build_wall_s": built[1] - begun[1],
        "build_peak_mb": peak_mb(),
        "edge_bytes": model.world.follows.n_bytes / max(len(model.world.follows), 1),
    }
    seconds: list[float] = []
    active: list[int] = []
    for _ in range(steps):
        before = time.process_time()
        model.step()
        seconds.append(time.process_time() - before)
        active.append(len(model.last_outcomes))
    each = [second / max(n, 1) for second, n in zip(seconds, active, strict=True)]
    measured |= {
        "steps": steps,
        "active": median(active),
        "step_s": median(seconds),
        "agent_ms": 1e3 * median(each),
        "growth": median(each[-5:]) / median(each[EARLY]) if steps >= 20 else None,
        "peak_mb": peak_mb(),
        "world_s": world_s(model),
        "posts": len(model.world.posts),
    }
    return measured


def world_s(model: SocialModel, steps: int = 3) -> float:
    """Measure the world's part of a step, timed at the calls into the world."""
    breakdown = CpuBreakdown(closed=("world",))
    entries = {*ENTRIES, *marked_methods(type(model.world))}
    breakdown.watch(model.world, lambda name: "world" if name in entries else None)
    found: list[float] = []
    for _ in range(steps):
        breakdown.reset()
        model.step()
        breakdown.read()
        found.append(breakdown.seconds["world"])
    return median(found)


def stub_reply(request: Request) -> Reply:
    """Post, like the first post shown, or do nothing, by turns, as the stub of `social_upstream.py` does."""
    posts = request.options.get("post_id", ())
    match request.salt.agent % 3:
        case 0:
            return call("create_post", content="Has anybody else been thinking about it?")
        case 1 if posts:
            return call("like_post", post_id=posts[0])
        case _:
            return call("do_nothing")


def stub(users: int, preset: str, steps: int = 12) -> dict[str, Any]:
    """Measure decisions of a language model in this process that answers at once."""
    llm = ScriptedLLM(stub_reply)
    model = SocialModel(n_agents=users, follows=FOLLOWS, preset=preset, rng=1, llm=llm)
    each: list[float] = []
    for _ in range(steps):
        before = time.process_time()
        model.step()
        each.append((time.process_time() - before) / users)
    return {"stub_ms": 1e3 * median(each[2:]), "python": python_text()}


def records(users: int, preset: str, steps: int = 100) -> dict[str, Any]:
    """Measure the prompts of a language model, their growth, and the size of its decisions in the run log."""
    lengths: list[list[int]] = []

    def reply(request: Request) -> Reply:
        lengths[-1].append(sum(len(message.content) for message in request.messages))
        return stub_reply(request)

    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "run.sqlite")
        model = SocialModel(n_agents=users, follows=FOLLOWS, preset=preset, rng=1, llm=ScriptedLLM(reply), log=log)
        for _ in range(steps):
            lengths.append([])
            model.step()
        decisions = model.engine.decisions
        model.close()
        n_bytes = log.stat().st_size
    means = [mean(each) for each in lengths]
    change = 100 * (mean(means[-5:]) / mean(means[EARLY]) - 1)
    return {"prompt_characters": means[-1], "prompt_change": change, "log_bytes": n_bytes / decisions}


def looker(feed: FeedName, posts: int, users: int = 1_000) -> Callable[[int], float]:
    """Return a function that times one action and the next observation among `posts`, by the number of the turn."""
    world = SocialWorld("x", feed=feed, rng=1)
    world.sign_up_many(Account(user) for user in range(1, users + 1))
    world.follow_many([(user, 1 + (user * 7 + 13 * k) % users) for user in range(1, users + 1) for k in range(1, 11)
                       if 1 + (user * 7 + 13 * k) % users != user])  # fmt: skip
    for post in range(posts):
        world.create_post(1 + post % users, "Has anybody else been thinking about the weather?")
    world.end_step()
    world.observe(1)

    def look(index: int) -> float:
        user, post_id = 1 + index % users, 1 + (index * 7919) % posts
        before = time.process_time()
        if world.author_of(post_id) != user:
            world.like_post(user, post_id)
        world.observe(user)
        return time.process_time() - before

    return look


def looks(repeats: int = 300) -> dict[str, Any]:
    """Compare one action and the next observation among few and among many posts, for each feed.

    The two take turns, so that other load on the machine affects both.
    """
    ratios = {}
    for feed in ("newest", "simswarm", "reddit_hot", "x"):
        sides = looker(feed, 1_000), looker(feed, 300_000)
        few, many = zip(*([look(index) for look in sides] for index in range(repeats)), strict=True)
        ratios[feed] = median(many) / median(few)
    return {"look_ratios": ratios, "look_ratio": max(ratios.values())}


MEASUREMENTS: dict[str, Callable[..., dict[str, Any]]] = {
    "scale": scale,
    "stub": stub,
    "records": records,
    "looks": looks,
}


def measure(name: str, limit_s: float = 7_200, **arguments: Any) -> dict[str, Any]:
    """Measure in a fresh process.

    Raises:
        NotRun: If it takes too long, or ends in an error.
    """
    return last_line(
        [sys.executable, str(HERE / "social_scale.py"), "--measurement", json.dumps([name, arguments])], limit_s
    )


def camel_oasis(users: int, version: str, steps: int = 3) -> dict[str, Any]:
    """Measure `camel-oasis` in an environment of its own.

    Args:
        users: Number of users.
        version: Version of Python, or path of one: it needs 3.10 or 3.11.
        steps: Number of measured steps.

    Raises:
        NotRun: If it cannot be installed, or does not run.
    """
    python = environment_of(".venv-oasis", UPSTREAM_PACKAGES, constraints=False, version=version)
    return last_line([python, str(HERE / "social_upstream.py"), str(users), str(steps)], 3_600)


def thresholds(
    rows: list[dict[str, Any]], stub_ms: float, recorded: dict[str, Any], ratio: float, peers: list[Any]
) -> list[Threshold]:
    """Compare the measurements with the thresholds."""
    million = [row for row in rows if row["users"] >= 1_000_000]
    wide = [row for row in rows if row["active"] > 0.9 * MAX_ACTIVE]

    def largest(name: str, among: list[dict[str, Any]]) -> float | None:
        return max((row[name] for row in among if row[name] is not None), default=None)

    after = "peak with a million, after the steps"
    name = "agent-steps a CPU second, times camel-oasis"
    compared = [
        Threshold(f"{name} at {row['users']:,}", row["agent_ms"] / stub_ms, 50, "×", is_minimum=True) for row in peers
    ]
    return [
        Threshold("build a million users", largest("build_s", million), 90, "s"),
        Threshold("peak after that", largest("build_peak_mb", million), 3_000, "MB"),
        Threshold(after, largest("peak_mb", million), 3_500, "MB"),
        Threshold("world, of a step of 10,000", largest("world_s", wide), 0.5, "s"),
        Threshold("a step of 10,000 by rule", largest("step_s", wide), 2, "s"),
        Threshold("step 100 over step 10", largest("growth", [row for row in rows if row["steps"] >= 100]), 1.15, "×"),
        Threshold("bytes of a follow", largest("edge_bytes", rows), 16, "B"),
        Threshold("a decision through a stub", stub_ms, 0.176, "ms"),
        Threshold("length of prompts, step 100 against step 10", abs(recorded["prompt_change"]), 5, "% more or less"),
        Threshold("run log of a decision", recorded["log_bytes"] / 1e3, 1.5, "kB"),
        Threshold("action and look, 300,000 posts over 1,000", ratio, 1.5, "×"),
        *compared,
    ]


def parsed() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, nargs="+", default=SIZES, metavar="N", help="numbers of users")
    parser.add_argument("--presets", nargs="+", default=["x"], choices=PRESETS, help="actions and feeds (x)")
    parser.add_argument("--steps", type=int, default=12, help="steps of each size (12); 100 shows how steps grow")
    parser.add_argument("--no-peer", action="store_true", help="leave camel-oasis out")
    parser.add_argument(
        "--peer-python", default="3.11", metavar="VERSION", help="its Python, or the path of one (3.11)"
    )
    parser.add_argument("--json", action="store_true", help="sizes alone; the last line is one JSON object")
    parser.add_argument("--measurement", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Measure as the command line says, and print the results."""
    options = parsed()
    if options.measurement:
        name, arguments = json.loads(options.measurement)
        print(json.dumps(MEASUREMENTS[name](**arguments)))
        return
    rows = [
        measure("scale", users=users, preset=preset, steps=options.steps)
        for users in options.users
        for preset in options.presets
    ]
    names = ("users", "preset", "build_s", "build_peak_mb", "step_s", "agent_ms", "world_s", "peak_mb", "growth")
    print(table(names, [[_cell(row[name]) for name in names] for row in rows]))
    if options.json:
        print(json.dumps(rows[0] if len(rows) == 1 else {"sizes": rows}))
        return
    through_stub, ratios = measure("stub", users=1_000, preset="reddit"), measure("looks")
    stub_ms = through_stub["stub_ms"]
    recorded = measure("records", users=200, preset="reddit")
    print(f"\nA decision through a stub: {stub_ms:.3f} ms ({through_stub['python']}).")
    print(f"Action and look: {ratios['look_ratios']}")
    print("A prompt: {prompt_characters:,.0f} characters, {prompt_change:+.1f} % since step 10.".format(**recorded))
    peers: list[dict[str, Any]] = []
    for users in () if options.no_peer else UPSTREAM_SIZES:
        try:
            peers.append(camel_oasis(users, options.peer_python))
            print(f"camel-oasis 0.2.5: {peers[-1]}", flush=True)
        except NotRun as reason:
            print(f"camel-oasis 0.2.5 with {users} users was not run: {reason}")
    print()
    head = ("threshold", "wanted", "measured", "verdict")
    print(
        table(head, [threshold.row for threshold in thresholds(rows, stub_ms, recorded, ratios["look_ratio"], peers)])
    )


def _cell(value: Any) -> str:
    match value:
        case None:
            return "–"
        case float():
            return figure_text(value)
        case int():
            return f"{value:,}"
        case _:
            return str(value)


if __name__ == "__main__":
    main()
