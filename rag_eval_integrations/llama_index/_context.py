"""Stage 1 for LlamaIndex: determine the nodes that the model saw, and how they are known.

These are the nodes that reached synthesis: the response's source nodes, after all postprocessors,
verified against the prompts of the models that wrote the answer. If the response names no nodes
(agents, workflows, custom engines), they are the nodes in the prompts, or else those that were
passed on last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from rag_eval_integrations._prompt_search import in_order, reached
from rag_eval_integrations.capture._calls import (
    Context,
    Snapshot,
    choose_namesakes,
    distinct,
    left_out,
)
from rag_eval_integrations.llama_index._tree import Span, Stage
from rag_eval_integrations.llama_index._values import is_derived_from, source_of
from rag_eval_integrations.records.call import DocumentsFrom

# Within one query, chat or tool, a later stage holds what is left of an earlier one.
_RANKS: dict[Stage, int] = {
    "retrieve": 1,
    "own": 2,
    "postprocess": 2,
    "synthesize": 3,
    "tool": 4,
    "answer": 4,
}
RETRIEVED_IN = frozenset({"retrieve", "own"})
"""Stages in which nodes are found."""
_MAY_EMPTY = frozenset({"postprocess", "synthesize"})
"""Stages in which an empty list means that no node is left; an answer or a tool may omit it."""
_NODE_MAKERS = frozenset({"retrieve", "own", "postprocess"})


class FoundNodes(NamedTuple):
    """Nodes and the span in which they were found."""

    span: Span
    nodes: Sequence[Any]
    """Snapshots; for a synthesizer, LlamaIndex's own objects until they are needed."""
    answer: str | None = None
    """The answer of a nested query or chat."""

    def is_settled(self) -> bool:
        """Return whether the nodes are snapshots already, or of another span than a synthesis."""
        return self.span.stage != "synthesize" or not self.nodes or type(self.nodes[0]) is Snapshot


def context(
    sources: Sequence[Snapshot],
    sightings: Sequence[FoundNodes],
    prompts: str,
    question: str,
    bodies: Mapping[str, str],
    given: Sequence[Snapshot] | None = None,
    *,
    last: str | None = None,
) -> Context:
    """Choose the documents, and say how they are known.

    The user's hook first; else the sources or the nodes seen, as far as the prompts hold them; else
    what the flow of nodes ends with.

    Args:
        sources: the nodes that the response itself names.
        sightings: the nodes found in spans that count, in order.
        prompts: the prompts of the models that wrote the answer, joined: an answer may be refined
            or summarised in several requests.
        question: the user's question, which may contain a short document as well.
        bodies: text of a node with its metadata → text without it.
        given: the documents that the user's hook returned, if it did.
        last: the last prompt, if it alone may show on which documents the answer rests.
    """
    answers = _answers_of_engines(sightings)
    retrievals = [each for each in sightings if each.span.stage in RETRIEVED_IN]
    retrieved = distinct([seen for seen in _latest(retrievals) if seen not in answers])
    if given is not None:
        source: DocumentsFrom = "dataflow" if given or not retrieved else "retriever"
        return Context(given, source, unused(retrieved, given, bodies))
    candidates: Sequence[Snapshot] = distinct(_without_answers(sources, sightings, retrieved))
    if not candidates:
        candidates = _without_answers(_latest(sightings), sightings, retrieved)
    if not candidates:
        return Context((), "retriever" if _has_retrieval(sightings) else "none", retrieved)
    documents = _in_prompts(candidates, prompts, question, bodies)
    if documents and last is not None:
        documents = _repeated_in_last(documents, prompts, last, question) or documents
    if documents:
        lists = [sighting.nodes for sighting in sightings]
        documents = choose_namesakes(documents, candidates, lists)
        return Context(documents, "prompt", unused(retrieved, documents, bodies))
    if sources:
        return Context(candidates, "dataflow", unused(retrieved, candidates, bodies))
    rank, flowed = _flow(sightings)
    documents = distinct(_without_answers(flowed, sightings, retrieved))
    source = "dataflow" if rank > _RANKS["retrieve"] else "retriever"
    return Context(documents, source, unused(retrieved, documents, bodies))


def _latest(sightings: Sequence[FoundNodes]) -> list[Snapshot]:
    """Return each node once, in its latest form: with the score of the last postprocessor.

    Retrievers may find one text under several ids; another step that has an id of its own for a
    known text made a copy.
    """
    latest: dict[tuple[str, str | None], Snapshot] = {}
    first: dict[str, tuple[str, str | None]] = {}
    for sighting in sightings:
        for seen in sighting.nodes:
            key = seen.text, seen.id
            if key not in latest and sighting.span.stage != "retrieve":
                key = first.get(seen.text, key)
            first.setdefault(seen.text, key)
            latest[key] = seen
    return list(latest.values())


def _in_prompts(
    candidates: Sequence[Snapshot], prompts: str, question: str, bodies: Mapping[str, str]
) -> list[Snapshot]:
    """Return the candidates in the prompts, in that order; empty if one of them is cut there.

    LlamaIndex puts a node's metadata in front of its text. Apps that write their prompts themselves
    often use the text alone; then the text alone is the document.
    """
    if in_order([seen.text for seen in candidates], prompts, question):  # the usual case
        return list(candidates)
    there, cut = _find(candidates, prompts, question)
    if bodies and (cut or len(there) < len(candidates)):
        whole = {seen.text for seen in there} - cut
        bare = [
            candidate if candidate.text in whole else _without_metadata(candidate, bodies)
            for candidate in candidates
        ]
        again, cut_again = _find(bare, prompts, question)
        if len(again) >= len(there):
            there, cut = again, cut_again
    return [] if cut else there


def _repeated_in_last(
    documents: Sequence[Snapshot], prompts: str, last: str, question: str
) -> list[Snapshot]:
    """Return the documents in the last prompt if earlier prompts hold all of them, else none.

    An app may ask a model about each document first, in order to choose: then the answer rests on
    the choice. Or it may refine an answer with each document: then the last document is new.

    Args:
        documents: the documents in the prompts.
        prompts: the text of all prompts, which ends with `last`.
        last: the last prompt.
        question: the user's question, which may contain a short document as well.
    """
    there, _ = _find(documents, last, question)
    earlier = prompts[: len(prompts) - len(last)]
    return there if all(seen.text in earlier for seen in there) else []


def _find(
    nodes: Sequence[Snapshot], prompts: str, question: str
) -> tuple[list[Snapshot], set[str]]:
    """Return the nodes that are in the prompts, in that order, and the texts that are cut there."""
    there = []
    cut = set()
    places = reached([seen.text for seen in nodes], prompts, question)
    for seen, place in zip(nodes, places, strict=True):
        if place is not None:
            there.append((place.start, seen))
            if not place.whole:
                cut.add(seen.text)
    there.sort()  # no two nodes share a place
    return [seen for _, seen in there], cut


def _without_metadata(seen: Snapshot, bodies: Mapping[str, str]) -> Snapshot:
    """Return a snapshot whose text is the node's body alone."""
    return seen._replace(text=bodies.get(seen.text, seen.text))


def _has_retrieval(sightings: Sequence[FoundNodes]) -> bool:
    """Return whether any of the sightings is a retriever's."""
    return any(sighting.span.stage == "retrieve" for sighting in sightings)


def _without_answers(
    nodes: Sequence[Snapshot], sightings: Sequence[FoundNodes], retrieved: Sequence[Snapshot]
) -> Sequence[Snapshot]:
    """Drop nodes that hold the answer to a part of the question, which are not documents.

    A sub-question engine wraps answers into nodes, and so does a retriever that asks an engine.
    Other nodes from a retriever or a postprocessor stay whatever their text, and so do parts of
    one (a citation engine makes such nodes).
    """
    answers = [sighting.answer for sighting in sightings if sighting.answer]
    if not answers:
        return nodes
    known = {
        seen.id
        for sighting in sightings
        if sighting.span.stage in _NODE_MAKERS
        for seen in sighting.nodes
    } - {seen.id for seen in _answers_of_engines(sightings)}

    def is_answer(node: Snapshot) -> bool:
        """Return whether a node holds an answer and is not a part of a retrieved node."""
        if node.id in known or not _contains_any(node.text, answers):
            return False
        return source_of(node.text, retrieved) is None

    return [node for node in nodes if not is_answer(node)]


def _answers_of_engines(sightings: Sequence[FoundNodes]) -> list[Snapshot]:
    """Return the nodes of retrievers that hold the answer of an engine that the retriever asked."""
    answered = [(each.span, each.answer) for each in sightings if each.answer]
    nodes: list[Snapshot] = []
    for retrieval in sightings if answered else ():
        if retrieval.span.stage == "retrieve":
            answers = [text for span, text in answered if span.is_below(retrieval.span)]
            nodes += [seen for seen in retrieval.nodes if _contains_any(seen.text, answers)]
    return nodes


def _contains_any(text: str, parts: Iterable[str]) -> bool:
    """Return whether a text contains one of the parts."""
    return any(part in text for part in parts)


def _flow(sightings: Sequence[FoundNodes]) -> tuple[int, list[Snapshot]]:
    """Return the nodes that each outer query, chat or tool passed on last, and their highest rank.

    Nodes of equal rank add up, unless a later step chose among them.
    """
    best: dict[Span, tuple[int, list[Snapshot]]] = {}
    for sighting in sightings:
        rank = _RANKS[sighting.span.stage]
        before, nodes = best.get(sighting.span.scope, (0, []))
        if rank == before and not _replaces(sighting, nodes):
            nodes.extend(sighting.nodes)
        elif rank >= before and (sighting.nodes or sighting.span.stage in _MAY_EMPTY):
            best[sighting.span.scope] = rank, list(sighting.nodes)
    own = {scope: flow for scope, flow in best.items() if not _is_covered(scope, best)}
    return (
        max((rank for rank, _ in own.values()), default=0),
        [seen for _, nodes in own.values() for seen in nodes],
    )


def _replaces(sighting: FoundNodes, nodes: Sequence[Snapshot]) -> bool:
    """Return whether a step's nodes replace earlier nodes of the same rank."""
    if sighting.span.stage == "own":
        before = {seen.text for seen in nodes}
        return all(seen.text in before for seen in sighting.nodes)
    return sighting.span.stage == "postprocess"


def _is_covered(scope: Span, best: dict[Span, tuple[int, list[Snapshot]]]) -> bool:
    """Return whether a query, chat or tool around this one has the final nodes."""
    outer = scope.parent
    while outer is not None:
        if best.get(outer.scope, (0, []))[0] == _RANKS["answer"]:
            return True
        outer = outer.scope.parent
    return False


def unused(
    retrieved: Sequence[Snapshot], documents: Sequence[Snapshot], bodies: Mapping[str, str]
) -> list[Snapshot]:
    """Return the retrieved nodes of which no part is among the documents."""
    if retrieved == documents:  # the usual case
        return []
    absent = left_out(retrieved, documents)
    if not absent:
        return absent
    ids = {seen.id for seen in documents if seen.id is not None}
    known = {seen.text for seen in retrieved}
    derived = [seen for seen in documents if seen.text not in known]

    def is_used(seen: Snapshot) -> bool:
        if seen.id in ids:
            return True
        bare = _without_metadata(seen, bodies)
        if any(is_derived_from(document, [seen, bare]) for document in derived):
            return True
        return _is_inside(bare.text, documents, bodies)

    return [seen for seen in absent if not is_used(seen)]


def _is_inside(text: str, documents: Sequence[Snapshot], bodies: Mapping[str, str]) -> bool:
    """Return whether a longer document holds a text: an app may join what it retrieved."""
    longer = [_without_metadata(seen, bodies).text for seen in documents]
    return bool(text) and any(text in other and text != other for other in longer)
