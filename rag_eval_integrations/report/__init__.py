"""Reports for people: tables on a terminal, running totals, and plots as an HTML page."""

from rag_eval_integrations._lazy import publish
from rag_eval_integrations.report.console import calls_table, plain, unsupported_sentences

__all__ = ["calls_table", "plain", "unsupported_sentences"]

publish(__name__, __all__)
