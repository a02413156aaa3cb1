"""Import time beyond pydantic's own import: medians of fresh interpreters.

python benchmarks/import_time.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

STATEMENTS = {
    "nothing": "pass",
    "pydantic": "from pydantic import BaseModel\nclass A(BaseModel): x: int",
    "package": "import rag_eval_integrations",
    "RagCall, RagEvaluator": "from rag_eval_integrations import RagCall, RagEvaluator",
    "Punkt, its first sentences": (
        "from rag_eval_integrations.sentences import Punkt\n"
        "Punkt().spans('Dr. Fox left at 5 p.m. with J. Bach. He came back, etc. So did I.')"
    ),
    "rag-eval --help": (
        "import sys; sys.argv = ['rag-eval', '--help']\n"
        "from rag_eval_integrations.cli import main; main()"
    ),
}


def seconds(statement: str, repeats: int = 9) -> float:
    """Measure the median wall time, in seconds, of a fresh interpreter that runs a statement."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    found = {name: seconds(statement) for name, statement in STATEMENTS.items()}
    for name, value in found.items():
        print(f"{name:24} {value * 1000:7.0f} ms")
    own = found["RagCall, RagEvaluator"] - found["pydantic"]
    print(f"RagCall, RagEvaluator beyond pydantic: {own * 1000:.0f} ms (at most 100)")
    print(f"rag-eval --help: {found['rag-eval --help'] * 1000:.0f} ms (at most 500)")


if __name__ == "__main__":
    main()
