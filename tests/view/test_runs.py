"""The runs of a folder: what is one, how it stands, and what becomes of files that change."""

from __future__ import annotations

import gzip
import os
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hostile import HOSTILE
from processes import until
from report_rows import attacks, evaluations

from rag_eval_integrations.evaluations.summary import Summary
from rag_eval_integrations.records import to_line
from rag_eval_integrations.records.run import Run
from rag_eval_integrations.view import _runs
from rag_eval_integrations.view._runs import PAGE

from .conftest import Served, serving, write


@pytest.fixture(autouse=True)
def _looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that was found is taken to be so for two seconds."""
    monkeypatch.setattr(_runs, "POLL", 0.0)


def names(page: str) -> list[str]:
    """The runs that a page lists, in order."""
    return re.findall(r'<th scope="row"><a href="[^"]*"><bdi>([^<]*)</bdi>', page)


def read(served: Served, address: str, calls: int) -> None:
    """Wait until the figures of a run are of so many calls."""

    def is_read() -> bool:
        run = served.folder.run(address)
        return run is not None and run.is_read and run.figures().calls == calls

    until(is_read)


def test_runs_are_listed_the_newest_first(tmp_path: Path) -> None:
    """Plain and gzipped; what is not a run is left out, counted, and named with the reason."""
    rows = evaluations()[3:23]
    write(tmp_path / "old.jsonl", rows[:5])
    (tmp_path / "new.jsonl.gz").write_bytes(
        gzip.compress("".join(f"{to_line(row)}\n" for row in rows).encode())
    )
    os.utime(tmp_path / "old.jsonl", (1_700_000_000, 1_700_000_000))
    (tmp_path / "calls.jsonl").write_text('{"question":"q","documents":["d"],"response":"r"}\n')
    (tmp_path / "report.html").write_text("<!doctype html>")
    (tmp_path / "empty.jsonl").touch()
    newer = to_line(rows[0]).replace('"schema":2', '"schema":3')
    (tmp_path / "newer.jsonl").write_text(newer)
    with serving(tmp_path) as served:
        read(served, "new.jsonl.gz", 20)
        page = served.text()
        one = served.text("/run/new.jsonl.gz")

    assert names(page) == ["new.jsonl.gz", "old.jsonl"]
    assert Summary.of(rows).verdict() in page
    assert "4 other files are not shown" in page
    assert "read it with the newer version" in page
    assert page.count("days ago") == 1
    assert all(f'"q{row.id}"' not in one or row.id in one for row in rows)
    assert "20 calls" in one


def test_a_file_is_read_once_and_on_from_where_it_ended(tmp_path: Path) -> None:
    """Of a run that goes on, only what was appended is read; a row that is half written waits."""
    rows = evaluations()[3:43]
    path = write(tmp_path / "a.jsonl.partial", rows[:30])
    with serving(tmp_path) as served:
        read(served, "a.jsonl.partial", 30)
        run = served.folder.run("a.jsonl.partial")
        line = f"{to_line(rows[30])}\n"
        with path.open("a") as file:
            file.write(line[:100])
            file.flush()
            more = served.ask("/run/a.jsonl.partial/more?first=30")[2]
            assert '"index":[]' in more
            file.write(line[100:])
        read(served, "a.jsonl.partial", 31)
        write(path, rows[31:], "a")
        read(served, "a.jsonl.partial", 40)

        assert served.folder.run("a.jsonl.partial") is run
        assert run is not None
        assert str(run.figures()) == str(Summary.of(rows))
        assert run.bad == 0
        assert (
            '"more":"/run/a.jsonl.partial/more?first=40"'
            in (served.ask("/run/a.jsonl.partial/more?first=31")[2])
        )


def test_a_file_that_is_appended_to_behind_a_line_without_its_end(tmp_path: Path) -> None:
    """The last row counts without a line end, and what completes it makes no row of its own."""
    rows = evaluations()[3:9]
    path = write(tmp_path / "a.jsonl", rows[:5])
    line = f"{to_line(rows[5])}\n"
    with path.open("a") as file:
        file.write(line[:-1])
    with serving(tmp_path) as served:
        read(served, "a.jsonl", 6)
        served.text("/run/a.jsonl")
        with path.open("a") as file:
            file.write("\n")
        write(path, rows[:1], "a")
        read(served, "a.jsonl", 7)
        run = served.folder.run("a.jsonl")

        assert run is not None
        assert (run.bad, run.count()) == (0, 7)


def test_a_run_that_ended_leads_to_its_file(tmp_path: Path) -> None:
    """As `rag-eval run` ends: OUT takes the place of OUT.partial."""
    path = write(tmp_path / "a.jsonl.partial", evaluations()[3:9])
    with serving(tmp_path) as served:
        assert "This run goes on: 6 calls so far" in served.text("/run/a.jsonl.partial")
        path.rename(tmp_path / "a.jsonl")
        more = served.text("/run/a.jsonl.partial/more?first=6")

        assert '"link":["Its calls are here now.","/run/a.jsonl"]' in more
        assert '"more":""' in more
        assert names(served.text()) == ["a.jsonl"]
        assert served.ask("/run/a.jsonl.partial")[0] == 404


@pytest.mark.parametrize("how", ["in its place", "over it", "shorter", "longer"])
def test_a_file_that_is_replaced_is_read_anew(tmp_path: Path, how: str) -> None:
    """Whether another file takes its name, or its own bytes change."""
    rows = evaluations()
    path = write(tmp_path / "a.jsonl", rows[3:13])
    with serving(tmp_path) as served:
        read(served, "a.jsonl", 10)
        if how == "in its place":
            write(tmp_path / "b", rows[20:30]).replace(path)
        else:
            count = {"over it": 10, "shorter": 5, "longer": 60}[how]
            write(path, rows[20 : 20 + count])
        count = len(path.read_text().splitlines())
        os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))  # writes may be too fast for its clock
        read(served, "a.jsonl", count)
        run = served.folder.run("a.jsonl")

        assert run is not None
        assert str(run.figures()) == str(Summary.of(rows[20 : 20 + count]))
        assert f"{count} calls" in served.text("/run/a.jsonl")


def test_a_file_that_vanishes_is_gone(tmp_path: Path) -> None:
    """From the list and by its address, and nothing of the rest."""
    write(tmp_path / "a.jsonl", evaluations()[3:13])
    write(tmp_path / "b.jsonl", evaluations()[3:13])
    with serving(tmp_path) as served:
        (tmp_path / "a.jsonl").unlink()

        assert served.ask("/run/a.jsonl")[0] == 404
        assert names(served.text()) == ["b.jsonl"]


def test_damage_is_told_and_costs_the_damaged_rows_alone(tmp_path: Path) -> None:
    """A line that is not a row, and gzip that is cut off."""
    rows = evaluations()[3:13]
    path = write(tmp_path / "a.jsonl", rows)
    path.write_text(path.read_text().replace('{"schema":2', "}", 2).replace("}", '{"schema":2', 1))
    packed = gzip.compress(path.read_bytes() * 40)
    (tmp_path / "b.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    with serving(tmp_path) as served:
        read(served, "a.jsonl", 9)
        until(lambda: all(run.is_read for run in served.folder.runs()))
        page = served.text()
        one = served.text("/run/a.jsonl")
        damaged = served.text("/run/b.jsonl.gz")
        again = served.text("/run/b.jsonl.gz")

    assert page.count("1 row cannot be read") == 1
    assert "rows cannot be read" in page
    assert "1 row cannot be read" in one
    assert damaged == again


def test_hostile_names_and_texts_do_nothing(tmp_path: Path) -> None:
    """Each is a run like others, and its page is found by its link."""
    texts = [text for text in HOSTILE if "/" not in text and "\0" not in text]
    for at, text in enumerate(texts[:40]):
        name = os.fsencode(text.encode("utf-8", "surrogatepass"))[:200]
        with open(os.path.join(os.fsencode(tmp_path), b"%d" % at + name), "w") as file:
            file.write(f"{to_line(attacks()[at])}\n")
    with open(os.path.join(os.fsencode(tmp_path), b"\xff\xfe ?#%2F.jsonl"), "w") as file:
        file.write(f"{to_line(attacks()[0])}\n")
    with serving(tmp_path) as served:
        page = served.text()
        links = re.findall(r'<th scope="row"><a href="([^"]*)"', page)
        pages = [served.text(link) for link in links]

    assert len(links) == len(texts[:40]) + 1
    assert not re.search(r"<(?!/?(bdi|wbr))[a-z]+[^>]*\bon\w+=", page)
    assert all(text.count("<script") == text.count("</script>") for text in [page, *pages])


def test_a_long_run_is_paged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each page has its calls, all pages have the figures of the run."""
    monkeypatch.setattr("rag_eval_integrations.view._pages.PAGE", 10)
    monkeypatch.setattr(_runs, "PAGE", 10)
    rows = evaluations()[3:28]
    write(tmp_path / "a.jsonl", rows)
    with serving(tmp_path) as served:
        read(served, "a.jsonl", 25)
        last = served.text("/run/a.jsonl?page=3")

        assert "Calls 21 to 25 of 25." in last
        assert 'href="/run/a.jsonl?page=2"' in last
        assert last.count('\\"') or "25 calls" in last
        for number in ("0", "4", "x", "99999999999"):
            assert served.ask(f"/run/a.jsonl?page={number}")[0] == 404


@pytest.mark.slow
def test_a_run_of_100_000_calls_is_paged(tmp_path: Path) -> None:
    """A page in the middle is there before the figures are; the process stays small."""
    rows = evaluations()[3:203]
    write(tmp_path / "a.jsonl", rows)
    block = (tmp_path / "a.jsonl").read_bytes()
    with (tmp_path / "a.jsonl").open("ab") as file:
        for _ in range(499):
            file.write(block)
    with serving(tmp_path) as served:
        page = served.text("/run/a.jsonl?page=51")

        assert f"Calls 50,001 to {50_000 + PAGE:,} of 100,000." in page
        assert "of 100,000 calls" in page


def test_runs_that_are_picked_are_compared_with_the_oldest(tmp_path: Path) -> None:
    """By the page of `rag-eval compare`; runs that cannot be compared say why."""
    rows = evaluations()[3:33]
    worse = [
        row.model_copy(update={"scores": {"adherence": row.scores["adherence"]}}) for row in rows
    ]
    os.utime(write(tmp_path / "old.jsonl", rows), (1_700_000_000, 1_700_000_000))
    write(tmp_path / "new.jsonl", worse)
    write(tmp_path / "other.jsonl", [rows[0].model_copy(update={"id": "other", "question": "?"})])
    with serving(tmp_path) as served:
        page = served.text("/compare?run=new.jsonl&run=old.jsonl")
        alone = served.ask("/compare?run=new.jsonl")
        gone = served.ask("/compare?run=new.jsonl&run=none.jsonl")
        apart = served.ask("/compare?run=new.jsonl&run=other.jsonl")

    assert "old.jsonl compared with new.jsonl" in page
    assert '<a href="/">Overview</a>' in page
    assert (alone[0], gone[0], apart[0]) == (400, 404, 409)
    assert "Pick two runs" in alone[2]


def test_a_run_says_what_it_is(tmp_path: Path) -> None:
    """App, judge, and the name, revision and tags that `rag-eval run` was given; its age by them."""
    start = datetime(2024, 5, 1, tzinfo=UTC)
    made = Run(id="r", name="nightly", start=start, revision="abc123-dirty", tags={"k": "v<b>"})
    row = evaluations()[5].model_copy(update={"run": made, "app": "shop"})
    write(tmp_path / "a.jsonl", [row])
    write(tmp_path / "b.jsonl", [row.model_copy(update={"run": None})])
    with serving(tmp_path) as served:
        page = served.text()

    assert names(page) == ["b.jsonl", "a.jsonl"]
    about = page.split('id="run-a.jsonl"')[1].split("</tr>")[0]
    for words in ("shop", "nightly", "revision abc123-dirty", "k=v&lt;b&gt;", start.isoformat()):
        assert words in about
