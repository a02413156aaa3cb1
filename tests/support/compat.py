"""Which test files a release of a dependency or of Python can break: the version matrix runs these.

Everything else is our own arithmetic, reading and writing, which runs once, on one Python.
"""

from __future__ import annotations

from fnmatch import fnmatch

COMPAT = (
    # langchain-core and llama-index-core, wherever their names stand in a path.
    "*langchain*",
    "*llama_index*",
    # openai, and what is asked through it.
    "*openai*",
    "*over_http*",
    # pydantic: the records, and what is written past its validation.
    "records/*",
    # jinja2 and pyyaml.
    "*prompty/*",
    "*yaml*",
    "*geval/test_files*",
    # json-repair.
    "*test_parse*",
    "models/test_reading*",
    "*test_cleaning*",
    # typer and rich: the commands, and what they print.
    "cli/test_demo*",
    "cli/test_grouped*",
    "cli/test_score*",
    "report/*",
    # nltk, which decides for other languages, and to which English is held.
    "sentences/test_decision*",
    "sentences/test_nltk_punkt*",
    "sentences/test_punkt*",
    # pandas, polars, pyarrow, datasets: what calls are read from.
    "dataset/test_calls*",
    "dataset/test_formats*",
    # Python: imports, event loops, context variables, threads and forks at exit, SQLite, files.
    "test_package*",
    "test_loop*",
    "capture/*",
    "*caching*",
    "*lifecycle*",
    "*sinks*",
    # All of it together.
    "examples/*",
    "test_readme*",
)
"""Patterns of paths below `tests`."""


def is_compat(path: str) -> bool:
    """Whether the matrix runs this file, given its path below `tests`."""
    return any(fnmatch(path, pattern) for pattern in COMPAT)
