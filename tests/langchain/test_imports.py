"""What observing costs to import."""

from __future__ import annotations

import subprocess
import sys


def test_is_light() -> None:
    """The handler loads LangChain's callbacks, not its tracers, runnables or the other framework."""
    code = (
        "import sys, rag_eval_integrations.langchain\n"
        "print(*[name for name in ('langchain_core.tracers.base', 'langchain_core.runnables.base',"
        " 'llama_index_instrumentation', 'llama_index.core') if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == ""
