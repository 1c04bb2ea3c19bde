"""Make `tests/golden/oasis/`: what OASIS's own program does with given actions and posts.

Its platform (an SQLite database with a method for each action) and its recommenders run as installed; only the stored
inputs and results leave this script. It needs a Python 3.11 of its own:

    python3.11 -m venv oasis
    oasis/bin/pip install torch scikit-learn
    oasis/bin/pip install --no-deps camel-oasis==0.2.5
    oasis/bin/python benchmarks/oasis_golden.py tests/golden/oasis

Three things are put in the place of their own, because they cannot be fetched or do not repeat: packages that only its
agents and encoders import (empty modules), its clock (a step lasts three minutes, whatever the machine does), and the
encoder TwHIN-BERT (the sum of one vector per word, stored with the results).
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import io
import json
import math
import os
import random
import re
import sys
import tempfile
import types
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

START = datetime(2024, 8, 6, 8)
"""Time of step 0 (OASIS's Reddit runs)."""

STEP = timedelta(minutes=3)
N_USERS = 8
N_STEPS = 6
TABLES = (
    *("user", "post", "comment", "like", "dislike", "comment_like", "comment_dislike", "follow", "mute", "report"),
    *("trace", "product", "chat_group", "group_members", "group_messages"),
)
"""All tables but `rec`, which the recommenders' cases hold."""

WORDS = (
    *("bread", "oven", "flour", "river", "boat", "rain", "train", "ticket", "delay", "garden", "seed", "spade"),
    *("film", "actor", "music", "guitar", "tax", "vote", "mayor", "goal", "match", "coach", "robot", "chip"),
)
"""Words that the texts of the cases are made of."""

N_DIMENSIONS = 6


class StepClock:
    """Stands for OASIS's clock: its time depends on the step alone.

    Attributes:
        time_step: The step.
    """

    def __init__(self) -> None:
        """Begin with step 0."""
        self.time_step = 0

    def time_transfer(self, now: datetime, start: datetime) -> datetime:
        """Return the simulated time, of Reddit."""
        return START + self.time_step * STEP

    def get_time_step(self) -> str:
        """Return the step, of X."""
        return str(self.time_step)


def import_platform() -> tuple[Any, Any]:
    """Import OASIS's platform and its recommenders, without its agents."""
    for name in ("transformers", "sentence_transformers", "camel", "camel.embeddings", "camel.types"):
        module: Any = types.ModuleType(name)
        module.AutoModel = module.AutoTokenizer = module.SentenceTransformer = None
        module.OpenAIEmbedding = module.EmbeddingModelType = None
        sys.modules[name] = module
    spec = importlib.util.find_spec("oasis")
    if spec is None or spec.submodule_search_locations is None:
        raise SystemExit("camel-oasis is not installed in this Python; see the docstring")
    package: Any = types.ModuleType("oasis")
    package.__path__ = list(spec.submodule_search_locations)
    sys.modules["oasis"] = package
    from oasis.social_platform import recsys
    from oasis.social_platform.platform import Platform

    return Platform, recsys


Action = tuple[int, str, dict[str, Any]]
"""Acting user, name of the action, and its arguments under OASIS's names."""


class Case:
    """A platform, with everything that was done on it.

    Attributes:
        platform: OASIS's platform.
        steps: By step: actions with their results.
    """

    def __init__(self, platform: Any) -> None:
        """Begin with the sign-up of the users."""
        self.platform = platform
        self.steps: list[list[dict[str, Any]]] = [[]]
        self.users = [(f"user{index}", f"User {index}", f"likes {WORDS[3 * index]}") for index in range(N_USERS)]
        for index, user in enumerate(self.users):
            asyncio.run(platform.sign_up(index, user))

    def do(self, user: int, action: str, **arguments: Any) -> dict[str, Any]:
        """Carry out one action, and keep it with its result."""
        values = list(arguments.values())
        message = values if len(values) < 2 else [tuple(values)]
        result = asyncio.run(getattr(self.platform, action)(user, *message))
        short = {key: value for key, value in result.items() if key not in ("posts", "users")}
        if "posts" in result:
            short["post_ids"] = [post["post_id"] for post in result["posts"]]
        self.steps[-1].append({"user": user, "action": action, "arguments": arguments, "result": short})
        return result

    def end_step(self) -> None:
        """Go on to the next step."""
        self.platform.sandbox_clock.time_step += 1
        self.steps.append([])

    def rows(self, query: str, *values: Any) -> list[Any]:
        """Query the database."""
        return self.platform.db.execute(query, values).fetchall()

    def document(self) -> dict[str, Any]:
        """Return users, actions, results and tables."""
        tables: dict[str, Any] = {}
        for name in TABLES:
            cursor = self.platform.db.execute(f"SELECT * FROM '{name}'")
            columns = [column[0] for column in cursor.description]
            rows = [list(row) for row in cursor.fetchall()]
            if name == "trace":
                rows = [[*row[:3], json.loads(row[3])] for row in rows]
            tables[name] = {"columns": columns, "rows": rows}
        return {"users": self.users, "steps": self.steps, "tables": tables}


def sentence(rng: random.Random) -> str:
    """Return a text of some of the words."""
    return " ".join(rng.sample(WORDS, 5)) + "."


def reddit_case(platform: Any, rng: random.Random) -> dict[str, Any]:
    """Let users of Reddit post, comment, vote, report, search and chat."""
    case = Case(platform)
    for index, name in enumerate(("kettle", "lamp"), start=1):
        asyncio.run(platform.sign_up_product(index, name))
    for user in (0, 1):
        case.do(user, "create_post", content=sentence(rng))
    groups = case.do(2, "create_group", group_name="Bakers")["group_id"]
    for step in range(N_STEPS):
        asyncio.run(platform.update_rec_table())
        for user in rng.sample(range(N_USERS), 3):
            case.do(user, "refresh")
        case.do(rng.randrange(N_USERS), "search_posts", query=rng.choice(WORDS))
        case.do(rng.randrange(N_USERS), "search_user", query="User 3")
        best = case.rows("SELECT num_likes FROM post ORDER BY num_likes DESC LIMIT 2")
        if len(best) == 2 and best[0] != best[1]:
            case.do(rng.randrange(N_USERS), "trend")
        for user in rng.sample(range(N_USERS), N_USERS):
            reddit_turn(case, user, rng)
        for user, action, arguments in (
            (step, "join_group", {"group_id": groups}),
            (step, "send_to_group", {"group_id": groups, "message": sentence(rng)}),
            (step, "leave_group", {"group_id": groups}),
            (7 - step, "purchase_product", {"product_name": "lamp", "purchase_num": step + 1}),
            (7 - step, "purchase_product", {"product_name": "rocket", "purchase_num": 1}),
            (6, ("mute", "unmute")[step % 2], {"mutee_id": 7}),
        ):
            case.do(user, action, **arguments)
        asyncio.run(platform.interview(step, {"prompt": "How are you?", "response": f"Fine, {step}."}))
        case.steps[-1].append({"user": step, "action": "interview", "arguments": {"prompt": "How are you?"},
                               "result": {"response": f"Fine, {step}."}})  # fmt: skip
        case.end_step()
    return case.document()


def reddit_turn(case: Case, user: int, rng: random.Random) -> None:
    """Let a user do three things, some of them twice."""
    n_posts, n_comments = (case.rows(f"SELECT count(*) FROM {table}")[0][0] for table in ("post", "comment"))
    for _ in range(3):
        post_id, comment_id = rng.randint(1, n_posts), rng.randint(1, max(n_comments, 1))
        other = (user + rng.randint(1, 3)) % 6
        match rng.choice(("post", "comment", "vote", "vote", "vote_comment", "undo", "follow", "report", "nothing")):
            case "post" if user != 7:
                case.do(user, "create_post", content=sentence(rng))
            case "comment" if user != 7:
                case.do(user, "create_comment", post_id=post_id, content=sentence(rng))
            case "vote":
                vote, opposite = rng.choice((("like", "dislike"), ("dislike", "like")))
                if not case.rows(f"SELECT 1 FROM '{opposite}' WHERE user_id = ? AND post_id = ?", user, post_id):
                    case.do(user, f"{vote}_post", post_id=post_id)
            case "vote_comment" if n_comments:
                vote, opposite = rng.choice((("like", "dislike"), ("dislike", "like")))
                query = f"SELECT 1 FROM comment_{opposite} WHERE user_id = ? AND comment_id = ?"
                if not case.rows(query, user, comment_id):
                    case.do(user, f"{vote}_comment", comment_id=comment_id)
            case "undo":
                name, table, kind = rng.choice(
                    (("unlike_post", "like", "post"), ("undo_dislike_post", "dislike", "post"),
                     ("unlike_comment", "comment_like", "comment"))
                )  # fmt: skip
                mine = case.rows(f"SELECT {kind}_id FROM '{table}' WHERE user_id = ?", user)
                if mine or kind == "post":
                    case.do(user, name, **{f"{kind}_id": mine[0][0] if mine else post_id})
            case "follow" if other != user:
                case.do(user, rng.choice(("follow", "follow", "unfollow")), followee_id=other)
            case "report":
                (author,) = case.rows("SELECT user_id FROM post WHERE post_id = ?", post_id)[0]
                if author != user:
                    case.do(user, "report_post", post_id=post_id, report_reason="spam")
            case _:
                if not any(one["user"] == user and one["action"] == "do_nothing" for one in case.steps[-1]):
                    case.do(user, "do_nothing")


def x_case(platform: Any, rng: random.Random) -> dict[str, Any]:
    """Let users of X post, repost and quote. The first four write, the others share and read."""
    case = Case(platform)
    case.do(0, "create_post", content=sentence(rng))
    for step in range(N_STEPS):
        for user in range(4, N_USERS):
            if not step:
                case.do(user, "follow", followee_id=0)
            case.do(user, "refresh")
        for user in rng.sample(range(N_USERS), N_USERS):
            n_posts = case.rows("SELECT count(*) FROM post")[0][0]
            post_id = rng.randint(1, n_posts)
            if user < 4:
                match rng.choice(("post", "quote", "like")):
                    case "post":
                        case.do(user, "create_post", content=sentence(rng))
                    case "quote":
                        case.do(user, "quote_post", post_id=post_id, quote_content=sentence(rng))
                    case _:
                        case.do(user, "like_post", post_id=post_id)
            else:
                case.do(user, "repost", post_id=post_id)
                case.do(user, rng.choice(("like_post", "unlike_post")), post_id=rng.randint(1, n_posts))
                case.do(user, "create_comment", post_id=rng.randint(1, n_posts), content=sentence(rng))
                case.do(user, "follow", followee_id=rng.randrange(4))
        case.end_step()
    return case.document()


def edge_cases(make: Callable[..., Any]) -> list[dict[str, Any]]:
    """Return single actions after two posts by users 0 and 1 and a comment by user 1, each on a platform of its own."""
    before: tuple[Action, ...] = (
        (0, "create_post", {"content": "bread."}),
        (1, "create_post", {"content": "rain."}),
        (1, "create_comment", {"post_id": 1, "content": "oven."}),
    )
    cases: tuple[tuple[Action, ...], ...] = (
        ((0, "follow", {"followee_id": 0}),),
        ((0, "follow", {"followee_id": 99}),),
        ((0, "mute", {"mutee_id": 0}),),
        ((0, "like_post", {"post_id": 99}),),
        ((0, "like_comment", {"comment_id": 99}),),
        ((0, "like_post", {"post_id": 1}),),
        ((2, "like_post", {"post_id": 1}), (2, "dislike_post", {"post_id": 1})),
        ((2, "like_comment", {"comment_id": 1}), (2, "dislike_comment", {"comment_id": 1})),
        ((0, "report_post", {"post_id": 1, "report_reason": "spam"}),),
        ((2, "mute", {"mutee_id": 0}), (2, "like_post", {"post_id": 1})),
        ((0, "create_post", {"content": ""}),),
        ((2, "repost", {"post_id": 1}), (2, "repost", {"post_id": 1})),
        ((2, "repost", {"post_id": 1}), (3, "report_post", {"post_id": 3, "report_reason": "spam"})),
        ((2, "quote_post", {"post_id": 1, "quote_content": "seed."}), (2, "repost", {"post_id": 1})),
        ((2, "repost", {"post_id": 99}),),
        ((2, "create_comment", {"post_id": 99, "content": "tax."}),),
        ((2, "join_group", {"group_id": 99}),),
        ((2, "purchase_product", {"product_name": "lamp", "purchase_num": -3}),),
    )  # fmt: skip
    documents: list[dict[str, Any]] = []
    for actions in cases:
        platform = make()
        asyncio.run(platform.sign_up_product(1, "lamp"))
        case = Case(platform)
        for user, action, arguments in (*before, *actions):
            case.do(user, action, **arguments)
        documents.append({"steps": case.steps[-1]})
    return documents


def hot_cases(recsys: Any, rng: random.Random) -> dict[str, Any]:
    """Return hot scores, and the hot lists of some sizes."""
    posts: list[dict[str, Any]] = []
    for post_id in range(1, 61):
        step = (post_id - 1) // 2 * rng.choice((1, 40))
        posts.append({"post_id": post_id, "step": max(step, posts[-1]["step"] if posts else 0),
                      "num_likes": rng.choice((0, 0, 1, 2, 12)), "num_dislikes": rng.choice((0, 0, 1, 9))})  # fmt: skip
    rows: list[dict[str, Any]] = [post | {"created_at": str(START + post["step"] * STEP)} for post in posts]
    scores = [
        recsys.calculate_hot_score(row["num_likes"], row["num_dislikes"], START + row["step"] * STEP) for row in rows
    ]
    lists = {size: recsys.rec_sys_reddit(rows, [[]], size)[0] for size in (5, 20)}
    return {"posts": posts, "scores": scores, "lists": lists}


def word_vectors(rng: random.Random) -> dict[str, list[float]]:
    """Return one vector for each word."""
    return {word: [round(rng.gauss(0, 1), 3) for _ in range(N_DIMENSIONS)] for word in WORDS}


def text_vector(text: str, vectors: dict[str, list[float]]) -> list[float]:
    """Return the sum of a text's word vectors, of length 1."""
    known = [vectors[word] for word in re.findall(r"\w+", text.lower()) if word in vectors]
    total = [math.fsum(column) for column in zip(*known, strict=True)]
    length = math.hypot(*total)
    return [value / length for value in total]


def followed_case(platform: Any, rng: random.Random) -> dict[str, Any]:
    """Let users refresh who follow some of the authors of eight posts with as many likes as users before them."""
    case = Case(platform)
    likes = rng.sample(range(N_USERS), N_USERS)
    for post_id, n_likes in enumerate(likes, start=1):
        case.do(post_id % 4, "create_post", content=sentence(rng))
        for user in range(n_likes):
            case.do(user, "like_post", post_id=post_id)
    for user in range(4, N_USERS):
        for followee in rng.sample(range(4), 2):
            case.do(user, "follow", followee_id=followee)
    case.end_step()
    for user in range(4, N_USERS):
        case.do(user, "refresh")
    return {"users": case.users, "steps": case.steps}


def interest_case(platform: Any, recsys: Any, rng: random.Random, n_steps: int) -> dict[str, Any]:
    """Rank posts for each user by their profile and latest post, over some steps.

    Args:
        platform: A platform with the recommender `twhin-bert`.
        recsys: OASIS's recommenders.
        rng: Random generator.
        n_steps: Number of steps in which users post.
    """
    import torch

    vectors = word_vectors(rng)
    recsys.reset_globals()
    recsys.twhin_model = recsys.twhin_tokenizer = "the encoder below"

    def generate_post_vector(model: Any, tokenizer: Any, texts: Sequence[str], batch_size: int) -> Any:
        return torch.tensor([text_vector(text, vectors) for text in texts], dtype=torch.float64)

    recsys.generate_post_vector = generate_post_vector
    case = Case(platform)
    rankings: list[Any] = []
    for _ in range(n_steps):
        for user in rng.choices(range(N_USERS), k=12):
            case.do(user, "create_post", content=sentence(rng))
        platform.max_rec_post_len = case.rows("SELECT count(*) FROM post")[0][0] - 1
        case.end_step()
        asyncio.run(platform.update_rec_table())
        rankings.append([[row[0] for row in case.rows("SELECT post_id FROM rec WHERE user_id = ? ORDER BY rowid", user)]
                         for user in range(N_USERS)])  # fmt: skip
    return {"words": vectors, "users": case.users, "steps": case.steps, "rankings": rankings}


@contextlib.contextmanager
def quiet_folder() -> Iterator[Path]:
    """Work in an empty folder, without what the program prints: it writes logs where it is imported."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                yield Path(folder)
        finally:
            os.chdir(before)


def main(target: Path) -> None:
    """Write all cases to a folder."""
    with quiet_folder():
        platform_class, recsys = import_platform()

        def make(kind: str = "reddit", **options: Any) -> Any:
            everything = {"refresh_rec_post_count": 1000, "max_rec_post_len": 1000, "following_post_count": 1000}
            return platform_class(
                ":memory:", sandbox_clock=StepClock(), start_time=START, recsys_type=kind, **{**everything, **options}
            )

        documents: dict[str, Any] = {
            "reddit": reddit_case(make(show_score=True), random.Random(1)),
            "x": x_case(make("twhin-bert"), random.Random(2)),
            "edges": edge_cases(make),
            "recommenders": {
                "followed": followed_case(make("twhin-bert", following_post_count=3), random.Random(6)),
                "hot": hot_cases(recsys, random.Random(3)),
                "interest": interest_case(make("twhin-bert"), recsys, random.Random(4), 1),
                "interest_over_time": interest_case(make("twhin-bert"), recsys, random.Random(5), 5),
            },
        }
    target.mkdir(parents=True, exist_ok=True)
    for name, document in documents.items():
        (target / f"{name}.json").write_text(json.dumps(document) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
