"""docs/tracing.md: its Python runs, the dashboard has our names."""

from __future__ import annotations

import json
import re

from pages import DOCS, run_python, text_of

from rag_eval_integrations import sinks

TEXT = text_of("docs/tracing.md")


def test_the_example_runs() -> None:
    """Offline, without an SDK that is set up."""
    run_python("docs/tracing.md")


def test_every_sink_of_a_tool_has_its_section() -> None:
    """With the lines to type."""
    tools = set(re.findall(r"`(\w+Sink)` \| `", TEXT))
    assert tools == set(sinks.__all__) & {
        "LangSmithSink", "LangfuseSink", "MLflowSink", "OpenTelemetrySink", "PhoenixSink",
    }  # fmt: skip
    assert all(f"sink = {name}(" in TEXT for name in tools)


def test_dashboard_and_alerts_ask_for_metrics_that_exist() -> None:
    """By the names that Prometheus gives them; each expression was run in a real one."""
    board = json.loads((DOCS / "grafana/dashboard.json").read_text())
    expressions = [one["expr"] for panel in board["panels"] for one in panel["targets"]]
    alerts = text_of("docs/grafana/alerts.yml")
    expressions += re.findall(r"expr: >\n((?: {10}.*\n)+)", alerts)

    assert len(expressions) == 8 + 2
    asked = {name for one in expressions for name in re.findall(r"rag_eval_\w+(?=[\[{])", one)}
    assert asked == {
        "rag_eval_score_bucket", "rag_eval_score_sum", "rag_eval_score_count",
        "rag_eval_unscored_total", "rag_eval_errors_total", "rag_eval_not_judged_total",
    }  # fmt: skip
