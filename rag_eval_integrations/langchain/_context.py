"""Stage 1 for LangChain: determine the documents that the model saw, and how they are known.

Lists of documents are recorded wherever they pass (outputs of outermost retrievers, inputs and
outputs of chains, artifacts of tools), and verified against the prompt from which the answer was
generated. Runs that failed, such as the first attempts of a retry, do not count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import itemgetter

from pydantic import BaseModel

from rag_eval_integrations._answer import is_no_answer
from rag_eval_integrations._prompt_search import PromptPlace, headers, in_order, reached
from rag_eval_integrations.capture._calls import (
    Context,
    Snapshot,
    choose_namesakes,
    distinct,
    left_out,
    with_earlier,
)
from rag_eval_integrations.langchain._documents import (
    documents_of,
    single_documents,
    texts_beside,
)
from rag_eval_integrations.langchain._tree import ModelRequest, RootRun, Sighting
from rag_eval_integrations.records.call import DocumentsFrom

_GRADE = re.compile("score|grad|relevan|ground", re.IGNORECASE)
_WHY = re.compile("expla|reason", re.IGNORECASE)
_MIN_TELLING = 16  # characters from which a generated text does not occur elsewhere by chance
_LABEL = r"(?:.*[:.)\]*|-][ \t]|.*>)?"  # in a line: "Summary: ", "1. ", "- ", "<summary>"


def writers_of(
    response: str | None, asked: Sequence[ModelRequest]
) -> tuple[Sequence[ModelRequest], bool]:
    """Find the models that wrote the answer.

    An app may ask models after the answer as well (for a title, a check, follow-up questions). So
    the writer is the latest model whose text equals the response; otherwise all models whose texts
    are part of the response (a report, section by section); otherwise the latest model whose text
    contains the response (JSON). If a short response is part of several texts, or there is none, it
    is the last model, which is a guess.

    Args:
        response: the answer, if there is one.
        asked: the models that were asked, in order.

    Returns:
        The models, none if no model wrote the answer; and whether they are known for certain.
    """
    if response and (answer := response.strip()):
        texts = [(request, request.text_so_far().strip()) for request in asked]
        for request, text in reversed(texts):
            if text == answer:
                return (request,), True
        inside = [(request, text) for request, text in texts if _holds(answer, text)]
        if inside:
            return _without_drafts(inside, answer), True
        around = [request for request, text in texts if answer in text]
        if not around:
            return (), False
        if len(answer) >= _MIN_TELLING or len(around) == 1:
            return around[-1:], True
    return asked[-1:], False


def _without_drafts(
    texts: Sequence[tuple[ModelRequest, str]], answer: str
) -> Sequence[ModelRequest]:
    """Drop the models whose texts the answer holds only inside the texts of later models."""
    writers = []
    for position, (request, text) in enumerate(texts):
        repeats = sum(later.count(text) for _, later in texts[position + 1 :])
        if answer.count(text) > repeats:
            writers.append(request)
    return writers


def _holds(message: str, text: str) -> bool:
    """Return whether a message holds a generated text, and not by chance.

    A short text has to be a line by itself or, unless it is "yes" or the like, what follows a
    label. A number may be a page's.
    """
    if len(text) >= _MIN_TELLING or text not in message:
        return text in message
    label = "" if " " not in text and is_no_answer("", text) else _LABEL
    line = rf"(?m)^{label}[ \t]*{re.escape(text)}[ \t]*(?:$|<)"
    return any(map(str.isalpha, text)) and re.search(line, message) is not None


def context_of(
    call: RootRun,
    asked: Sequence[ModelRequest],
    writers: Sequence[ModelRequest],
    *,
    known: bool,
    question: str,
) -> Context:
    """Determine the documents that the writers of the answer saw.

    Documents of earlier turns that they were shown again come last. The context also says where the
    documents were seen, and which retrieved ones were not used. Runs under a failure from which
    a run above recovered are left out. An answer that no model wrote may replace one that the last
    model wrote, or be given after a grader's verdict, whose prompt is not looked at.

    Args:
        call: the call.
        asked: the models that were asked, in order.
        writers: the models that wrote the answer.
        known: whether the writers are known for certain.
        question: the user's question.
    """
    sightings, unwritten = call.sightings, not writers
    if call.any_failed:
        sightings = [sighting for sighting in sightings if sighting.run.counts()]
        seen = distinct([*call.given, *(s for sighting in sightings for s in sighting.documents)])
        candidates = [call.candidate(document) for document in seen]
    else:
        candidates = list(call.candidates.values())
    if unwritten:
        asked = [each for each in asked if not is_grade(each.text_so_far() or each.arguments, "")]
        if _asked_one_by_one(call, candidates, asked, question):
            asked = []
        writers = asked[-1:]
    if candidates and writers and not (call.history or call.earlier or call.carried):
        prompt = "\n".join(
            writers[0].prompt
            if len(writers) == 1
            else [text for request in writers for text in request.prompt]
        )
        if in_order([seen.text for seen in candidates], prompt, question):  # the usual case
            return Context(_with_headers(call, candidates, writers, question), "prompt", ())

    documents, source = _choose_documents(
        call, sightings, candidates, asked, writers, known, question
    )
    if len(documents) < len(candidates):
        documents = _with_latest_ids(call, documents, candidates, sightings)
    if unwritten and call.asked and source == "retriever":
        source = "dataflow"
    every = len(documents) == len(candidates)
    unused = () if every else _unused(call, documents, sightings, candidates)
    results, number, carried = call.earlier, call.of_earlier_turns, _carried_over(call, sightings)
    own = [seen for seen in documents if seen.text not in carried]
    older = [seen for seen in documents if seen.text in carried]
    older += _from_tool_results(results[:number], writers, own)
    if more := _from_tool_results(results[number:], writers, own):
        own = distinct([*own, *more])
    if not documents and (older or more):
        source = "prompt"
    context = Context(own, source, unused)
    context = with_earlier(context, older) if older else context
    return context._replace(documents=_with_headers(call, context.documents, writers, question))


def _with_headers(
    call: RootRun,
    documents: Sequence[Snapshot],
    writers: Sequence[ModelRequest],
    question: str,
) -> Sequence[Snapshot]:
    """Add headers to documents: what the app wrote in front of each from its metadata."""
    if not any(seen.metadata for seen in documents):
        return documents
    turns = [turn.content for turn in call.history]
    others = [text for text in (question, *turns) if text]
    texts, metadata = [seen.text for seen in documents], [seen.metadata for seen in documents]
    messages = [text for request in writers for text in request.prompt]
    in_front = headers(texts, metadata, messages, others)
    return [
        seen._replace(header=in_front[number]) if number in in_front else seen
        for number, seen in enumerate(documents)
    ]


def _with_latest_ids(
    call: RootRun,
    documents: Sequence[Snapshot],
    candidates: Sequence[Snapshot],
    sightings: Sequence[Sighting],
) -> list[Snapshot]:
    """Return the documents with the ids under which their texts were passed on last.

    Only ids that retrievers gave count, if there are any: a step that copies documents may make up
    its own.
    """
    ids = {seen.id for sighting in sightings if sighting.retrieved for seen in sighting.documents}

    def retrieved(documents: Sequence[Snapshot]) -> Sequence[Snapshot]:
        return [seen for seen in documents if seen.id in ids]

    lists: list[Sequence[Snapshot]] = [sighting.documents for sighting in sightings]
    if ids:
        lists = [*map(retrieved, lists)]
    return [*map(call.candidate, choose_namesakes(documents, candidates, lists))]


def _asked_one_by_one(
    call: RootRun, candidates: Sequence[Snapshot], asked: Sequence[ModelRequest], question: str
) -> bool:
    """Return whether each model was asked about a different single document, as graders are."""
    in_prompts = [_places_in_prompts(call, candidates, (request,), question) for request in asked]
    single = {verified[0][0].text for verified in in_prompts if verified}
    return (
        len(single) > 1
        and all(len(verified) < 2 for verified in in_prompts)
        and not _feeding_models(candidates, asked, asked[-1:])
    )


def _from_tool_results(
    results: Sequence[tuple[str, str, Sequence[Snapshot]]],
    writers: Sequence[ModelRequest],
    documents: Sequence[Snapshot],
) -> list[Snapshot]:
    """Return the documents in tools' results that the writers were shown beside the given ones.

    A result of which only the text is known is one document, without the texts of the given ones.
    """
    messages = [message for request in writers for message in request.prompt]
    older: list[Snapshot] = []
    for _, result, inside in results:
        if not _is_in_any(result, messages):
            continue
        if len(inside) > 1 or any(old.id for old in inside):
            older += inside
            continue
        for old in inside:
            text = old.text
            for seen in documents:
                text = text.replace(seen.text, "") if len(seen.text) >= _MIN_TELLING else text
            older += [old._replace(text=text.strip())] if text.strip() else []
    return older


def _is_in_any(text: str, others: Iterable[str]) -> bool:
    """Return whether a text is part of one of the others."""
    return any(text in other for other in others)


def _carried_over(call: RootRun, sightings: Sequence[Sighting]) -> set[str]:
    """Return the texts of the documents that a graph's state holds from an earlier turn.

    Without those that were retrieved again or, where no retriever ran, that a step returned.
    """
    steps = [sighting for sighting in sightings if sighting.run.parent is not None]
    fresh = [s.documents for s in steps if s.retrieved] or [
        s.documents for s in steps if not s.state
    ]
    return call.carried - {seen.text for seen in chain(call.given, *fresh)}


def context_given(
    call: RootRun, asked: Sequence[ModelRequest], documents: Sequence[Snapshot], question: str
) -> Context:
    """Return the context of documents that the user's own hook returned, in their order.

    Seen in the prompt if all of them stand in it whole.
    """
    several = distinct(documents)
    verified = _places_in_prompts(call, several, asked, question)
    whole = documents and len(verified) == len(several)
    return Context(
        documents,
        ("prompt" if whole and _all_whole(verified) else "dataflow") if documents else "none",
        _unused(call, documents, call.sightings, list(call.candidates.values())),
    )


def only_retrieved(
    call: RootRun, outputs: object, asked: Sequence[ModelRequest], inquiries: set[str]
) -> bool:
    """Return whether a root's outputs are documents, without an answer.

    They hold documents, or their texts, and nothing else but the question and queries. Models may
    have written on the way: a query, a hypothetical document, a grade.

    Args:
        call: the call.
        outputs: the root's outputs.
        asked: the models that were asked.
        inquiries: the question, and the queries of retrievers.
    """
    copies = 0
    for name, text in texts_beside(outputs):
        if text in inquiries or is_no_answer(name, text):
            continue
        copied = _count_copied(text, call, asked)
        if not copied:
            return False
        copies += copied
    if isinstance(outputs, str):
        # The text of one document may be the answer of an app without a model, such as a FAQ.
        return copies > (0 if asked else 1)
    return bool(copies or documents_of(outputs) or single_documents(outputs)) or _is_empty(outputs)


def is_grade(outputs: object, question: str) -> bool:
    """Return whether outputs are the verdict of a grader that is called by itself.

    They hold a grade and no other text but an explanation. To a question, "yes" may be the answer,
    unless its key says that it is a grade.
    """
    texts = list(texts_beside(outputs))
    if len(texts) == 1 and texts[0][1].startswith("{"):
        outputs = _json_in(texts[0][1])
        texts = list(texts_beside(outputs))
    grades = [name for name, text in texts if is_no_answer("", text)]
    if type(outputs) is dict or isinstance(outputs, BaseModel):  # a mark or a flag, not a text
        marks = [name for name, value in dict(outputs).items() if isinstance(value, int | float)]
        grades += [name for name in marks if _GRADE.search(name)]
    return (
        bool(grades)
        and not documents_of(outputs)
        and all(not question or _GRADE.search(name) for name in grades)
        and all(is_no_answer(name, text) or _WHY.search(name) for name, text in texts)
    )


def _json_in(text: str) -> object:
    """Parse a text as JSON; None if it is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None


def _count_copied(text: str, call: RootRun, asked: Sequence[ModelRequest]) -> int:
    """Return how many documents are copied into a text that consists mostly of documents.

    0 for a text of which they make up less than a half, and for one that a model wrote.
    """
    texts = {candidate.text for candidate in call.candidates.values()}
    inside = [copied for copied in texts if copied and copied in text]
    if 2 * sum(map(len, inside)) < len(text):
        return 0
    stripped = text.strip()
    for request in asked:
        generated = request.text_so_far().strip()
        if stripped in generated or (len(generated) >= _MIN_TELLING and generated in stripped):
            return 0
    return len(inside)


def _is_empty(outputs: object) -> bool:
    """Return whether outputs are an empty list, or hold one."""
    # Never compared by `==`, which is the app's own code.
    parts = outputs.values() if type(outputs) is dict else (outputs,)
    return any(type(part) is list and not part for part in parts)


def context_of_outputs(call: RootRun, outputs: object) -> Context:
    """Return the documents in the outputs of a root that only retrieved.

    They may be there as texts. Of several, those that the last steps chose.
    """
    sightings = [
        sighting for sighting in call.sightings if not call.any_failed or sighting.run.counts()
    ]
    every = list(call.candidates.values())
    documents = distinct(call.take(documents_of(outputs) or single_documents(outputs)))
    if not documents:
        copies = [text for _, text in texts_beside(outputs)]
        documents = [seen for seen in every if _is_in_any(seen.text, copies)]
    source: DocumentsFrom = "dataflow" if documents else "none"
    retrieved = [sighting.documents for sighting in sightings if sighting.retrieved]
    if any(documents == distinct(output) for output in retrieved) or (retrieved and not documents):
        source = "retriever"
    if len(documents) > 1:  # a state may hold the documents as found beside those that were chosen
        chosen, _ = _end_of_flow(
            [sighting for sighting in sightings if sighting.run.parent is not None], call.given
        )
        texts = {seen.text for seen in documents}
        if chosen and {seen.text for seen in chosen} < texts:
            documents, source = chosen, "dataflow"
    return Context(documents, source, _unused(call, documents, sightings, every))


def _unused(
    call: RootRun,
    used: Sequence[Snapshot],
    sightings: Sequence[Sighting],
    candidates: Sequence[Snapshot],
) -> list[Snapshot]:
    """Return the retrieved documents that are not among the used ones."""
    retrieved = distinct(
        s for sighting in sightings if sighting.retrieved for s in sighting.documents
    )
    if not retrieved:
        # Documents that a graph's state holds from an earlier turn were not retrieved in this one.
        old = _carried_over(call, sightings)
        retrieved = [seen for seen in candidates if seen.text not in old]
    return left_out(retrieved, used)


def _choose_documents(
    call: RootRun,
    sightings: Sequence[Sighting],
    candidates: Sequence[Snapshot],
    asked: Sequence[ModelRequest],
    writers: Sequence[ModelRequest],
    known: bool,
    question: str,
) -> tuple[Sequence[Snapshot], DocumentsFrom]:
    """Choose the documents that a call used, and say where they were seen.

    Those in the writers' prompts, or in prompts of models that fed these; else those with which the
    flow ends. A call that retrieved only after the answer was written used none.
    """
    if writers:
        end = max(request.sightings for request in writers)
        before = [
            sighting
            for sighting in call.sightings[:end]
            if not call.any_failed or sighting.run.counts()
        ]
    else:
        before = list(sightings)
    verified = _places_in_prompts(call, candidates, writers, question)
    if candidates and writers and not (len(verified) == len(candidates) and _all_whole(verified)):
        verified = _through_others(call, candidates, asked, writers, verified, before, question)
    if not verified and not known:
        verified = _places_in_prompts(call, candidates, asked, question)
    if verified:
        return [seen for seen, _ in verified], "prompt" if _all_whole(verified) else "dataflow"
    if known and not before and not call.given and candidates:
        return [], "none"  # retrieved after the answer was written
    return _end_of_flow(before or sightings, call.given)


def _places_in_prompts(
    call: RootRun, candidates: Sequence[Snapshot], asked: Sequence[ModelRequest], question: str
) -> list[tuple[Snapshot, PromptPlace]]:
    """Return the candidates in the models' prompts with their places, in the prompts' order."""
    if not candidates or not asked:
        return []
    # A text that an earlier turn happens to hold was not retrieved for this one. Turns are separate
    # messages, or part of a message.
    earlier = [turn.content for turn in call.history]
    prompt = "\n".join(
        [text for request in asked for text in _without_turns(request.prompt, earlier)]
    )
    messages = [text for request in asked for text in request.prompt] if earlier else ()
    inside = [text for text in earlier if text not in messages]
    places = reached([seen.text for seen in candidates], prompt, question, inside)
    placed = [(seen, place) for seen, place in zip(candidates, places, strict=True) if place]
    return sorted(placed, key=itemgetter(1))


def _without_turns(prompt: Sequence[str], earlier: Sequence[str]) -> Sequence[str]:
    """Drop the messages of earlier turns from a prompt, one for each turn."""
    if not earlier:
        return prompt
    left = list(prompt)
    for text in earlier:
        if text in left:
            left.remove(text)
    return left


def _all_whole(verified: Sequence[tuple[Snapshot, PromptPlace]]) -> bool:
    """Return whether every document stands in the prompt as a whole."""
    return all(place.whole for _, place in verified)


def _through_others(
    call: RootRun,
    candidates: Sequence[Snapshot],
    asked: Sequence[ModelRequest],
    writers: Sequence[ModelRequest],
    verified: list[tuple[Snapshot, PromptPlace]],
    before: Sequence[Sighting],
    question: str,
) -> list[tuple[Snapshot, PromptPlace]]:
    """Add the documents that reached the writers through texts of other models.

    Map-reduce: the prompt holds summaries, and the prompt of each summary holds a document.
    Refine: the prompt holds the last document and an answer that was made from the others. If the
    prompt holds documents itself, only documents of the same list are added, so that the input of
    a compressor is not. They have the order of their list, since summaries may be made in any.
    """
    feeding = _feeding_models(candidates, asked, writers)
    if not feeding:
        return verified
    lists = [*(sighting.documents for sighting in reversed(before)), call.given]
    # Chains go over the documents of a list one by one.
    orders = [_order_of(documents) for documents in lists if len(documents) > 1]
    direct = {seen.text for seen, _ in verified}
    pool = candidates
    if direct:
        same = next((order for order in orders if direct <= order.keys()), {})
        pool = [seen for seen in candidates if seen.text in same]
    through = _places_in_prompts(call, pool, [*feeding, *writers], question)
    if (len(through), _all_whole(through)) <= (len(verified), _all_whole(verified)):
        return verified
    texts = {seen.text for seen, _ in through}
    order = next((order for order in orders if texts <= order.keys()), None)
    return through if order is None else sorted(through, key=lambda item: order[item[0].text])


def _order_of(documents: Sequence[Snapshot]) -> dict[str, int]:
    """Return the position of each document's text in a list of documents."""
    return {seen.text: position for position, seen in enumerate(documents)}


def _feeding_models(
    candidates: Sequence[Snapshot], asked: Sequence[ModelRequest], writers: Sequence[ModelRequest]
) -> list[ModelRequest]:
    """Return the models whose texts are in the writers' prompts, or in prompts of such models."""
    prompts = [(text, request.begun) for request in writers for text in request.prompt]
    feeding: list[ModelRequest] = []
    for request in reversed(asked):
        text = request.text_so_far().strip()
        if request in writers or request.is_open or not text:
            continue
        if not any(request.ended < begun and _holds(prompt, text) for prompt, begun in prompts):
            continue
        # What a prompt said before a model wrote it, an example's words for instance, stands in the
        # writers' prompts for its own sake; but not the words of a document that does not.
        messages = [message for message, _ in prompts]
        quoted = _is_of_absent_document(text, candidates, messages)
        if not quoted and _was_prompted_before(text, asked):
            continue
        feeding.insert(0, request)
        prompts += [(message, request.begun) for message in request.prompt]
    # Short texts by themselves may be a router's: they count beside a summary.
    known = any(len(request.text_so_far().strip()) >= _MIN_TELLING for request in feeding)
    return feeding if known else []


def _is_of_absent_document(
    text: str, candidates: Sequence[Snapshot], messages: Sequence[str]
) -> bool:
    """Return whether a text is part of a document that none of the messages holds."""
    documents = [seen.text for seen in candidates if text in seen.text]
    return any(not _is_in_any(document, messages) for document in documents)


def _was_prompted_before(text: str, asked: Sequence[ModelRequest]) -> bool:
    """Return whether a prompt held a text before any model had written it."""
    first = min(other.ended for other in asked if other.text_so_far().strip() == text)
    earlier = [other for other in asked if other.begun < first]
    return any(_holds(message, text) for other in earlier for message in other.prompt)


def _end_of_flow(
    sightings: Sequence[Sighting], given: tuple[Snapshot, ...]
) -> tuple[list[Snapshot], DocumentsFrom]:
    """Return the documents that the steps of a call passed on last, and how they are known.

    A list replaces the earlier lists of which it is a part, or which are a part of it: so the
    output of a reranker replaces its input, and the lists of two parallel retrievers both stay.
    Single documents, over which a chain may just be mapped, count only if there is no list.
    """
    sightings = [sighting for sighting in sightings if not sighting.alone] or sightings
    if not any(sighting.documents for sighting in sightings):
        if given:
            return distinct(given), "dataflow"
        return [], "retriever" if any(sighting.retrieved for sighting in sightings) else "none"
    live: list[tuple[Sighting, set[str]]] = []
    for sighting in sightings:
        texts = {seen.text for seen in sighting.documents}
        if texts and not sighting.retrieved:
            live = [kept for kept in live if not (texts <= kept[1] or kept[1] <= texts)]
        if texts:
            live.append((sighting, texts))
    last, texts = live[-1]
    if not last.carried:  # otherwise nothing was found in this turn
        live = [kept for kept in live if not kept[0].carried]
    retrieved = [sighting for sighting in sightings if sighting.retrieved]
    if not any(seen.text in texts for sighting in retrieved for seen in sighting.documents):
        live = [(last, texts)]  # the texts were rewritten, or found by a plain function
    source: DocumentsFrom = (
        "retriever" if all(sighting.retrieved for sighting, _ in live) else "dataflow"
    )
    return distinct(seen for sighting, _ in live for seen in sighting.documents), source
