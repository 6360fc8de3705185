"""A process of an earlier DuckDB, which has an extension `fts`; it knows nothing of this project's packages.

    python duckdb_process.py EXTENSION DOCUMENTS.csv TOP

It indexes the documents, writes `{"built_s": ...}`, and answers each line of its input, a JSON string, with a line of
JSON: the TOP best documents for any of the words.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Final

import duckdb

SEARCH: Final = (
    "SELECT * FROM (SELECT *, fts_main_documents.match_bm25(id, ?) AS score FROM documents) "
    "WHERE score IS NOT NULL ORDER BY score DESC, id LIMIT ?"
)


def main(extension: str, documents: str, top: str) -> None:
    """Index, then answer until the input ends."""
    database = duckdb.connect()
    database.execute(f"LOAD '{extension}'")
    began = time.monotonic()
    columns = "{'id': 'BIGINT', 'title': 'VARCHAR', 'body': 'VARCHAR'}"
    database.execute(f"CREATE TABLE documents AS FROM read_csv('{documents}', header = false, columns = {columns})")
    database.execute(
        "PRAGMA create_fts_index('documents', 'id', 'title', 'body', stemmer = 'none', stopwords = 'none')"
    )
    tell({"built_s": round(time.monotonic() - began, 2)})
    for line in sys.stdin:
        tell(database.execute(SEARCH, [json.loads(line), int(top)]).fetchall())


def tell(answer: object) -> None:
    """Write a line of JSON."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
