"""The views of docs/decisions/2026-11-26-timelines.md: merged when read, they give the entries of the plain SELECT."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, Final

from tests.samples import OF_EACH_VIEW
from tests.seed import SEED, naming_the_seed
from tests.unit.incremental.memory import Memory, State, Table

PAGE: Final = Path(__file__).parents[3] / "docs" / "decisions" / "2026-11-26-timelines.md"
TABLES: Final = (
    Table("follows", {"follower_id": "bigint", "followee_id": "bigint", "muted": "bool"},
          ("follower_id", "followee_id")),
    Table("posts", {"id": "bigint", "author_id": "bigint", "created_at": "int"}, ("id",)),
    Table("users", {"id": "bigint", "is_large": "bool"}, ("id",)),
)  # fmt: skip
USERS: Final = range(5)
AUTHORS: Final = range(3)
LIMIT: Final = 3


def views() -> list[str]:
    """The statements of the page, for short timelines."""
    text = PAGE.read_text(encoding="utf-8")
    assert "<!-- large:" in text
    found = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    return [each.replace("limit = 100)", f"limit = {LIMIT})") for each in found]


def newest(memory: Memory) -> Any:
    """The function of the page; what it reads are the rows that the views have now."""
    [code] = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)

    def timeline(name: str, owner: int, limit: int) -> SimpleNamespace:
        view = memory.views[name]
        record = view.stored.spec.kind
        rows = [row for row in view.stored.versions[-1].to_pylist() if row[record["owner"]] == owner]
        for each in reversed(record["order"]):
            rows.sort(key=lambda row: row[each["column"]], reverse=each["descends"])
        return SimpleNamespace(entries=rows[:limit])

    wh = SimpleNamespace(epoch=lambda: SimpleNamespace(timeline=timeline))
    return lambda user: names["newest"](wh, user, LIMIT)


def plain(state: State, user: int) -> list[dict[str, Any]]:
    """The entries of a user from scratch."""
    followed = {followee for follower, followee, muted in state["follows"] if follower == user and not muted}
    posts = sorted((post for post in state["posts"] if post[1] in followed), key=lambda post: (-post[2], -post[0]))
    return [
        {"user_id": user, "post_id": number, "author_id": author, "created_at": at}
        for number, author, at in posts[:LIMIT]
    ]


def states(seed: str, epochs: int = 20) -> Iterator[State]:
    """Posts and followers come and go, and authors become large, and small again."""
    random = Random(seed)
    posts: dict[int, tuple[Any, ...]] = {}
    follows: dict[tuple[int, int], tuple[Any, ...]] = {}
    is_large = {author: author == 0 for author in AUTHORS}
    for epoch in range(epochs):
        for number in range(random.choice([0, 1, 2])):
            posts[10 * epoch + number] = (10 * epoch + number, random.choice(AUTHORS), random.randrange(epoch + 1))
        for _ in range(random.choice([0, 1, 3])):
            pair = random.choice(USERS), random.choice(AUTHORS)
            follows[pair] = (*pair, random.random() < 0.2)
        for gone in (posts, follows):
            if random.random() < 0.3:
                gone.pop(random.choice([None, *gone]), None)  # type: ignore[attr-defined, call-overload]
        if random.random() < 0.3:
            is_large[random.choice(AUTHORS)] ^= True
        yield {"posts": [*posts.values()], "follows": [*follows.values()], "users": [*is_large.items()]}


def test_merged_entries_equal_those_of_the_plain_select_after_every_epoch() -> None:
    merged = 0
    with naming_the_seed():
        for number in range(OF_EACH_VIEW):
            memory = Memory(TABLES)
            memory.declare_as_written(*views())
            assert {view.plan.strategy for view in memory.views.values()} == {"PATCH"}
            read = newest(memory)
            for state in states(f"{SEED} {number}"):
                memory.epoch(state)
                assert [read(user) for user in USERS] == [plain(state, user) for user in USERS]
                merged += memory.views["large_posts"].stored.versions[-1].num_rows > 0
            assert memory.in_full == 0
    assert merged
