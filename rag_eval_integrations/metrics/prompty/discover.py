"""Which metric files there are beside a prompt, and what is odd about them. No judge is asked."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path

from rag_eval_integrations.errors import ConfigurationError
from rag_eval_integrations.metrics.prompty.file import Prompty, prompt_name
from rag_eval_integrations.metrics.prompty.metric import VARIABLES, PromptyMetric

SUFFIX = ".metric.prompty"
_TAG = re.compile(r"<\s*/?\s*([A-Za-z][\w.-]*)\s*>")


def metric_files(folder: str | Path) -> list[Path]:
    """List the metric files of a folder by name; none where there is no such folder.

    Folders and pipes of such a name are left out: reading a pipe would never end.
    """
    folder = Path(folder)
    if not folder.is_dir():
        return []
    return sorted(
        path
        for path in folder.iterdir()
        if path.name.lower().endswith(SUFFIX) and (path.is_file() or not path.exists())
    )


def discover_metrics(
    folder: str | Path, *, named: Collection[str] = (), groundtruth: bool = False
) -> list[PromptyMetric]:
    """Load the metric files of a folder.

    A file with the tag `experimental` is left out unless it is named; one with the tag
    `groundtruth` judges expected outputs and is only given when these are asked for.

    Args:
        folder: where the prompt under test is.
        named: give these metrics only; empty for all.
        groundtruth: give the metrics for expected outputs, instead of those for outputs.

    Raises:
        ConfigurationError: a file that is no prompt, a name that is not there, or a name twice.
    """
    found: list[PromptyMetric] = []
    for path in metric_files(folder):
        if named and prompt_name(path) not in named:
            continue  # before it is read: a broken file is in nobody's way then
        metric = PromptyMetric(path)
        tags = metric.prompt.tags
        if named and ("groundtruth" in tags) != groundtruth:
            what = "expected outputs" if "groundtruth" in tags else "outputs"
            raise ConfigurationError("metric", metric.name, f"{path} is for {what}, by its tags")
        if ("groundtruth" in tags) != groundtruth or ("experimental" in tags and not named):
            continue
        found.append(metric)
    absent = sorted(set(named) - {metric.name for metric in found})
    if absent:
        raise ConfigurationError("metric", absent, f"no {absent[0]}{SUFFIX} in {folder}")
    return distinct(found)


def distinct(metrics: Iterable[PromptyMetric]) -> list[PromptyMetric]:
    """Return the metrics, unless two have one name.

    Raises:
        ConfigurationError: names both files.
    """
    by_name: dict[str, PromptyMetric] = {}
    for metric in metrics:
        other = by_name.setdefault(metric.name, metric)
        if other is not metric:
            both = f"{other.prompt.source} and {metric.prompt.source}"
            raise ConfigurationError("metric", metric.name, f"two metrics have this name: {both}")
    return list(by_name.values())


def lint(prompt: Prompty, known: Iterable[str] = VARIABLES) -> list[str]:
    """Say what is odd about a metric file; empty when nothing is.

    Found are variables that are declared, or spoken of as in `<INPUT>`, and never inserted; a
    metric that never sees the output; and variables that nobody gives.
    """
    known = tuple(known)
    used = prompt.variables
    odd = [f"declares `{name}` and never inserts it" for name in prompt.inputs if name not in used]
    for tag in dict.fromkeys(_TAG.findall(prompt.text)):
        meant = _meant(tag, known)
        if meant is not None and meant not in used:
            odd.append(f"speaks of <{tag}> and never inserts {{{{{meant}}}}}")
    if "output" not in used:
        odd.append("never inserts {{output}}: every output gets the same score")
    odd += [
        f"inserts {{{{{name}}}}}, which is given only where the call or the user names it"
        for name in sorted(used - set(known) - set(prompt.inputs))
    ]
    return list(dict.fromkeys(odd))


def _meant(tag: str, known: tuple[str, ...]) -> str | None:
    """Name the variable that a tag speaks of: `<INPUT>`, `<CHATBOT_OUTPUT>`, `<INPUT_SPEC>`."""
    words = re.split(r"[_.-]", tag.lower())
    whole = "".join(words)
    for name in known:
        if whole == name.lower():
            return name
    return next((name for name in known if name.lower() in words), None)
