"""Local models by torch and transformers; only with RAG_EVAL_READERS=1, see docs/test-environments.md."""

from __future__ import annotations

import os

collect_ignore_glob = ["test_*.py"]
if os.environ.get("RAG_EVAL_READERS") == "1":
    collect_ignore_glob = []
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
