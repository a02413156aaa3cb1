"""What observing costs to import."""

from __future__ import annotations

import subprocess
import sys


def test_is_light() -> None:
    """The handler loads the instrumentation package, not `llama_index.core`, nor the other framework."""
    code = (
        "import sys, rag_eval_integrations.llama_index\n"
        "print(*[name for name in ('llama_index.core', 'langchain_core') if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == ""
