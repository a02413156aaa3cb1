"""What was answered once is not asked again, across runs and processes."""

from rag_eval_integrations.judges.caching.judge import CachingJudge

__all__ = ["CachingJudge"]
