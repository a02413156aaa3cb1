"""Make dashboard.json, a Grafana dashboard of the metrics of `OpenTelemetrySink`.

uv run --with grafana-foundation-sdk python docs/grafana/make.py
"""

from __future__ import annotations

import json
from pathlib import Path

from grafana_foundation_sdk.builders import dashboard, prometheus, stat, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import DataSourceRef

NAME = "gen_ai_evaluation_name"
RATE = "$__rate_interval"
MEAN = (
    f"sum by ({NAME}) (rate(rag_eval_score_sum[{RATE}])) / "
    f"sum by ({NAME}) (rate(rag_eval_score_count[{RATE}]))"
)
LOWEST = f"histogram_quantile(0.1, sum by (le, {NAME}) (rate(rag_eval_score_bucket[{RATE}])))"
ADHERENCE = '{gen_ai_evaluation_name="adherence"}'

GRAPHS = [
    ("Mean of each score", MEAN, f"{{{{{NAME}}}}}", "percentunit"),
    ("A tenth of the calls is below", LOWEST, f"{{{{{NAME}}}}}", "percentunit"),
    ("Scores per second", f"sum by ({NAME}) (rate(rag_eval_score_count[{RATE}]))",
     f"{{{{{NAME}}}}}", "short"),
    ("Scores without a value, by reason",
     f"sum by (rag_eval_unscored) (rate(rag_eval_unscored_total[{RATE}]))",
     "{{rag_eval_unscored}}", "short"),
    ("Failed scores, by error", f"sum by (error_type) (rate(rag_eval_errors_total[{RATE}]))",
     "{{error_type}}", "short"),
    ("Calls that were not judged, by reason",
     f"sum by (rag_eval_reason) (rate(rag_eval_not_judged_total[{RATE}]))",
     "{{rag_eval_reason}}", "short"),
]  # fmt: skip
NUMBERS = [
    ("Adherence", f"sum(increase(rag_eval_score_sum{ADHERENCE}[$__range])) / "
     f"sum(increase(rag_eval_score_count{ADHERENCE}[$__range]))", "percentunit"),
    ("Calls with an adherence score", f"sum(increase(rag_eval_score_count{ADHERENCE}[$__range]))",
     "short"),
]  # fmt: skip


def main() -> None:
    """Write the file beside this one."""
    source = DataSourceRef(type_val="prometheus", uid="${datasource}")
    board = (
        dashboard.Dashboard("RAG evaluation")
        .uid("rag-eval")
        .tags(["rag", "evaluation"])
        .refresh("1m")
        .time("now-6h", "now")
        .with_variable(dashboard.DatasourceVariable("datasource").type("prometheus"))
    )
    for title, expression, unit in NUMBERS:
        query = prometheus.Dataquery().expr(expression).instant()
        number = stat.Panel().title(title).unit(unit).datasource(source)
        board.with_panel(number.with_target(query).span(12).height(4))
    for title, expression, legend, unit in GRAPHS:
        query = prometheus.Dataquery().expr(expression).legend_format(legend)
        graph = timeseries.Panel().title(title).unit(unit).datasource(source).min(0)
        board.with_panel(graph.with_target(query).span(12).height(8))
    text = json.dumps(json.loads(json.dumps(board.build(), cls=JSONEncoder)), indent=1)
    Path(__file__).with_name("dashboard.json").write_text(text + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
