"""Time of collecting the tests, beside one import of the packages that they use, in turns.

    uv run python benchmarks/collection.py --rounds 3

CPU seconds of processes whose bytecode is cached. The halves of `.ci/tests` run side by side, so
the slower one is compared.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PACKAGES = (
    "fastapi, hypothesis, jsonschema, langchain, langchain_openai, langgraph.graph, "
    "llama_index.core, numpy, onnx, onnxruntime, openai, pandas, polars, pyarrow, pytest, "
    "rich, sqlalchemy, typer, uvicorn, nltk, langfuse, mlflow, phoenix.client, datasets, "
    "opentelemetry.sdk.trace, playwright.sync_api, tokenizers"
)
"""Those of the group `test`, and of the package's extras."""


def cpu_of(command: list[str]) -> float:
    """CPU seconds of a command, its children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def halves() -> list[list[str]]:
    """The arguments of the two halves, as `.ci/tests` has them."""
    (block,) = re.findall(r'^first="(.*?)"', (ROOT / ".ci" / "tests").read_text(), re.S | re.M)
    first = block.split()
    return [first, ["tests", *(f"--ignore={path}" for path in first)]]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds: int = parser.parse_args().rounds
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "not slow"]
    imports = [sys.executable, "-W", "ignore", "-c", f"import {PACKAGES}"]
    for command in (imports, *([*collect, *half] for half in halves())):
        cpu_of(command)  # caches bytecode
    for _ in range(rounds):
        once = cpu_of(imports)
        each = [cpu_of([*collect, *half]) for half in halves()]
        told = " + ".join(f"{seconds:.1f}" for seconds in each)
        print(f"import {once:.1f} s, collection {told} s: {max(each) / once:.2f} x in each process")


if __name__ == "__main__":
    main()
