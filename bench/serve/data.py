"""The source's rows, and the texts that are searched for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

import psycopg
from psycopg import sql

from bench.database import Contents

TABLES: Final = ("users", "follows", "posts", "products")
LIMIT: Final = 100
"""The entries of a timeline, as the files of the views and of the questions have it."""

RANKS: Final = 100_000
"""How many words there are; that of rank r is about 1/r as frequent as the first."""

STAR: Final = 0
"""The author whom all followers follow."""

PROBE: Final = -1
"""The key of the document, of the cached row, and of the owner that a reader looks at for the number of a probe."""

LEAST_DOCUMENTS: Final = 100
_MOST_PRODUCTS: Final = 100_000
_POSTS_PER_AUTHOR: Final = 10
_FOLLOWS: Final = 2


@dataclass(frozen=True)
class Sizes:
    """The rows of the source. A follower follows two ordinary authors beside the star."""

    documents: int
    followers: int

    @property
    def authors(self) -> int:
        """The ordinary authors, numbered from 1."""
        return self.documents // _POSTS_PER_AUTHOR

    @property
    def products(self) -> int:
        """The rows of the cache, numbered from 1."""
        return min(self.documents, _MOST_PRODUCTS)


def create(dsn: str, sizes: Sizes) -> Contents:
    """Create the tables, their rows, and the functions of the load."""
    numbers = {
        "ranks": RANKS,
        "documents": sizes.documents,
        "followers": sizes.followers,
        "authors": sizes.authors,
        "users": sizes.authors,
        "products": sizes.products,
        "follows": _FOLLOWS,
    }
    literals = {name: sql.Literal(number) for name, number in numbers.items()}
    with psycopg.connect(dsn, autocommit=True) as connection:
        for name in ("schema", "rows", "load"):
            text = Path(__file__).with_name(f"{name}.sql").read_text()
            connection.execute(sql.SQL(text).format(**literals))
        connection.execute("VACUUM ANALYZE")
        counts = [connection.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table))).fetchone()
                  for table in TABLES]  # fmt: skip
    return Contents(TABLES, sum(count[0] for count in counts if count))


@dataclass(frozen=True)
class Statements:
    """Folders with the view files, and with the SQL of each view for Postgres, to compare the view with."""

    views: Path
    questions: Path


@contextmanager
def statements(limit: int) -> Iterator[Statements]:
    """Statements whose timelines have at most so many entries; they are removed at the end."""
    with TemporaryDirectory() as folder:
        written = Statements(Path(folder) / "views", Path(folder) / "postgres")
        for each in (written.views, written.questions):
            each.mkdir()
            for file in Path(__file__).with_name(each.name).glob("*.sql"):
                text = re.sub(rf"\b(limit (?:= )?){LIMIT}\b", rf"\g<1>{limit}", file.read_text(), flags=re.IGNORECASE)
                (each / file.name).write_text(text)
        yield written


def word(rank: int) -> str:
    """The word of a rank, as the function `bench.word` of schema.sql."""
    return "w" + "".join(chr(97 + rank // 26**place % 26) for place in range(4))


def texts(random: Random, first: int = 100, last: int = RANKS) -> str:
    """Two words whose ranks are between these; a word of rank 100 is in 3 % of the documents."""
    return " ".join(word(int(first * (last / first) ** random.random())) for _ in range(2))
