"""Which test files a release of a dependency or of Python can break: the version matrix runs these.

Everything else is our own arithmetic, reading, writing and pages, which runs once, on one Python. A
file belongs here if it calls a dependency where its releases differ, or what Python's do; not because
what it tests is made of such calls somewhere.
"""

from __future__ import annotations

from fnmatch import fnmatch

COMPAT = (
    # langchain-core and llama-index-core, wherever their names stand in a path.
    "*langchain*",
    "*llama_index*",
    # openai and httpx: requests, errors and clients as they are, not what is made of them.
    "models/test_openai_[ac]*",
    "models/test_openai_errors*",
    "models/test_openai_faults*",
    "models/test_openai_model*",
    "cli/test_run_openai*",
    # pydantic: the records, and what is written past its validation.
    "records/test_evals_line*",
    "records/test_records*",
    "records/test_unvalidated*",
    # jinja2 and pyyaml: templates, and what the sandbox takes from Jinja2.
    "metrics/prompty/test_file*",
    "metrics/prompty/test_metric*",
    "metrics/prompty/test_sandbox*",
    "metrics/geval/test_files*",
    "metrics/test_yaml*",
    "report/test_html*",
    "report/test_page.py",
    # json-repair.
    "models/test_reading*",
    # typer and rich: the commands, and what they print.
    "cli/test_demo*",
    "cli/test_score*",
    "evaluations/test_figures*",
    # nltk, which decides for other languages, and to which English is held.
    "sentences/test_decision*",
    "sentences/test_nltk_punkt*",
    # pandas, polars, pyarrow, datasets: what calls are read from, and evaluations become.
    "dataset/test_calls*",
    "dataset/test_processes*",
    "evaluations/test_evaluations*",
    # Python: imports, event loops, context variables, threads and forks at exit, SQLite, files.
    "test_package*",
    "test_loop*",
    "capture/test_[bdo]*",
    "models/test_caching*",
    "background/test_lifecycle*",
    "sinks/test_sinks*",
    # Python: what `re` makes of patterns, in releases with bugs.
    "judges/test_embedded_words*",
    "prompt_tests/test_export*",
    # Our own arithmetic gives the same figures on every Python.
    "judges/test_embedded.py",
    # All of it together.
    "examples/*",
    "test_readme*",
)
"""Patterns of paths below `tests`."""

FLOOR = (
    # What an app's calls become, and the models and evaluator objects of both frameworks.
    "langchain/test_capture_answers.py",
    "langchain/test_capture_attach.py",
    "langchain/test_capture_c*",
    "langchain/test_capture_graphs.py",
    "langchain/test_capture_instrumented.py",
    "langchain/test_capture_shapes.py",
    "langchain/test_evaluators.py",
    "langchain/test_imports.py",
    "langchain/test_model*",
    "langchain/test_shared_model.py",
    "llama_index/test_capture_agents.py",
    "llama_index/test_capture_chat.py",
    "llama_index/test_capture_engines.py",
    "llama_index/test_capture_streams.py",
    "llama_index/test_evaluators.py",
    "llama_index/test_given_objects.py",
    "llama_index/test_model*",
    # openai and pydantic.
    "models/test_openai_model.py",
    "records/test_unvalidated.py",
    "test_package.py",
)
"""Those of them that every commit runs on the lowest releases: some 240 test functions."""


def markers_of(path: str) -> list[str]:
    """Return `compat`, and `floor`, where they apply to a file, given its path below `tests`."""
    tiers = {"compat": COMPAT, "floor": FLOOR}
    return [name for name, patterns in tiers.items() if _matches(path, patterns)]


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(path, pattern) for pattern in patterns)
