"""A store that is served: its page, what waits, and the calls of a time page by page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from report_rows import evaluations

from rag_eval_integrations import RagCall
from rag_eval_integrations.dataset._labels_file import LabelsFile, asked
from rag_eval_integrations.records import to_line
from rag_eval_integrations.store import Store
from rag_eval_integrations.store.database import Outcome
from rag_eval_integrations.store.spool import SpooledCall, new_uid
from rag_eval_integrations.view import _pages
from rag_eval_integrations.view._app import StorePages
from rag_eval_integrations.view._corrections import Corrections

from .conftest import Served, running

ROWS = evaluations()[3:]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Twelve calls of the last minutes, the newest last, and one that waits."""
    with closing(Store(tmp_path / "e.db")) as store:
        now = store.now()
        for number in range(13):
            call = RagCall(f"Question {number}", ["It leaves at nine."], "At ten.")
            store.add([SpooledCall(new_uid(), now - 130 + number * 10, to_line(call))])
        for claimed in store.claim("w", 12):
            number = int(claimed.call().question.split()[1])
            changed = {"id": f"n{number}", "question": claimed.call().question}
            evaluation = ROWS[number].model_copy(update=changed)
            store.settle([Outcome(claimed, "judged", evaluation=evaluation)], "w")
        yield store


@pytest.fixture
def served(store: Store, tmp_path: Path) -> Iterator[Served]:
    """A server of the store, which saves corrections."""
    with running(StorePages(store, Corrections(tmp_path / "l.jsonl", "ann")).routes) as served:
        yield served


def ids(page: str) -> list[str]:
    """The calls of a page, in its order."""
    index = page.split('id="index">')[1].split("</script>")[0]
    return [row[0] for row in json.loads(index)]


def test_the_page_is_that_of_store_report_and_says_what_waits(served: Served) -> None:
    """At the first address, too, where no folder is served."""
    page = served.text("/store")

    assert "1 due now" in page
    assert "The newest failing calls" in page
    assert 'href="/store/hour"' in page
    assert "RAG calls in" in served.text("/")


def test_calls_of_a_time_are_paged(
    served: Served, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    """The newest first; links hold the end of the time, so that pages stay as calls come."""
    monkeypatch.setattr(_pages, "PAGE", 5)
    first = served.text("/store/hour")
    (second,) = set(re.findall(r'href="(/store/hour\?until=\d+&amp;page=2)"', first))
    store.add([SpooledCall(new_uid(), store.now() + 5, to_line(RagCall("New", ["D."], "A.")))])
    (claimed,) = [one for one in store.claim("w", 9) if one.call().question == "New"]
    store.settle([Outcome(claimed, "judged", evaluation=ROWS[0])], "w")
    last = second.replace("&amp;", "&").replace("page=2", "page=3")

    assert ids(first) == ["n11", "n10", "n9", "n8", "n7"]
    assert ids(served.text(second.replace("&amp;", "&"))) == ["n6", "n5", "n4", "n3", "n2"]
    assert ids(served.text(last)) == ["n1", "n0"]
    assert served.ask(last.replace("page=3", "page=4"))[0] == 404
    assert served.ask("/store/year")[0] == 404


def test_corrections_of_its_calls_are_saved(served: Served, tmp_path: Path) -> None:
    """To the file that was named."""
    page = served.text("/store/day")
    found = re.search(r'"save":"(/store/day/label\?until=\d+)"', page.replace("\\u0026", "&"))
    assert found is not None
    number = next(at for at in range(11, -1, -1) if asked(ROWS[at]))
    call = ROWS[number]
    sent = {"call": 12 - number, "row_key": call.row_key, "key": asked(call)[0].key, "label": True}
    body = json.dumps({**sent, "who": "ann"})

    assert served.ask(found[1], method="POST", body=body, Origin=served.address)[0] == 200
    (held,) = LabelsFile(tmp_path / "l.jsonl").calls.values()
    assert held.answers == {asked(call)[0].key: True}


def test_without_a_file_of_labels_nobody_is_asked(store: Store) -> None:
    """The page has no controls, and a correction that is sent is refused."""
    with running(StorePages(store, None).routes) as served:
        assert '"review":null' in served.text("/store/day")
        answer = served.ask("/store/day/label", method="POST", body="{}", Origin=served.address)
        assert answer[0] == 404
