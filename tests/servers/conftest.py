"""Real servers, only where they are: see docs/test-environments.md."""

from __future__ import annotations

import os

_TRACE_SERVERS = ("RAG_EVAL_PHOENIX", "RAG_EVAL_MLFLOW", "RAG_EVAL_PROMETHEUS")

collect_ignore = []
if os.environ.get("RAG_EVAL_SERVERS") != "1":
    collect_ignore.append("test_real_servers.py")
if not any(name in os.environ for name in _TRACE_SERVERS):
    collect_ignore.append("test_trace_servers.py")
