"""Tracers of other libraries, all of them; only with RAG_EVAL_TRACERS=1, see docs/test-environments.md."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("RAG_EVAL_TRACERS") == "1" else ["test_*.py"]
