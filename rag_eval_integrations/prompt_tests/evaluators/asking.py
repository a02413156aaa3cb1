"""What all evaluators share: one question to a judge, OK or ERR back."""

from __future__ import annotations

from collections.abc import Mapping

from rag_eval_integrations.errors import JudgeError
from rag_eval_integrations.judges import Completer
from rag_eval_integrations.judges.completion import CompletionRequest, Message
from rag_eval_integrations.metrics.prompty.verdict import read_verdict
from rag_eval_integrations.prompt_tests.records import Judged
from rag_eval_integrations.prompt_tests.sections import sections

ANSWER = """\
Write your reason first, in at most 20 words. Then, on the next line, write one word: OK or ERR."""

_STOPPED = {
    "content_filter": "a content filter stopped the judge",
    "refusal": "the judge refused",
    "length": "the judge's reply was cut off",
}


async def judged(
    judge: Completer,
    instructions: str,
    parts: Mapping[str, str],
    *,
    version: str,
) -> Judged:
    """Ask a judge; what it does not answer is `unknown` with the reason, and nothing is raised.

    Args:
        judge: who is asked.
        instructions: what about.
        parts: the material, by name; judged text is only ever in here.
        version: of prompt and parser.
    """
    request = CompletionRequest(
        messages=(
            Message(role="system", content=instructions),
            Message(role="user", content=sections(parts)),
        ),
        temperature=0.0,
        prompt_version=version,
    )
    try:
        completion = await judge.complete(request)
    except JudgeError as error:
        why = f"{type(error).__name__}: {error}"
        return Judged(outcome="unknown", reason=why, judge=judge.name, failed=True)
    stopped = _STOPPED.get(completion.finish_reason)
    if stopped is not None:
        return Judged(outcome="unknown", reason=stopped, raw=completion.text, judge=judge.name)
    verdict = read_verdict(completion.text)
    return Judged(
        outcome=verdict.outcome, reason=verdict.reason, raw=completion.text, judge=judge.name
    )
