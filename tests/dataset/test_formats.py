"""JSONL, a JSON array, CSV and Parquet are the same calls, plain or gzipped; damage is counted."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_eval_integrations.dataset import read_calls
from rag_eval_integrations.dataset._formats import count_rows, format_of, table
from rag_eval_integrations.dataset._json_array import values
from rag_eval_integrations.dataset._line import Patience
from rag_eval_integrations.dataset.calls import read_rows
from rag_eval_integrations.errors import ConfigurationError, InputError

ROWS: list[dict[str, Any]] = [
    {"id": str(number), "question": "Wann? ☕", "documents": ["At\nnine.", 'Or "ten", ten.'],
     "response": "At nine, or ten."}
    for number in range(5)
]  # fmt: skip


def jsonl(rows: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def json_array(rows: list[dict[str, Any]]) -> bytes:
    return json.dumps(rows, indent=1, ensure_ascii=False).encode()


def as_csv(rows: list[dict[str, Any]], delimiter: str = ",") -> bytes:
    out = io.StringIO(newline="")
    table = csv.writer(out, delimiter=delimiter)
    table.writerow(rows[0])
    for row in rows:
        table.writerow(json.dumps(v) if isinstance(v, list) else v for v in row.values())
    return out.getvalue().encode()


def parquet(rows: list[dict[str, Any]]) -> bytes:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), out)
    return out.getvalue()


def keys(source: Any, **options: Any) -> list[str]:
    """The calls of a source by id and key; a fault by its words."""
    return [
        f"{line.value.id} {line.value.row_key}" if line.value else str(line.error)
        for line in read_calls(source, **options)
    ]


FORMS = {".jsonl": jsonl, ".json": json_array, ".csv": as_csv, ".parquet": parquet}


@pytest.mark.parametrize("suffix", ["named", ""])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("form", FORMS)
def test_every_format_gives_the_same_calls(
    tmp_path: Path, form: str, pack: Callable[[bytes], bytes], suffix: str
) -> None:
    """By the end of the name, or by the first bytes alone; also twice."""
    path = tmp_path / (f"calls{form}" if suffix else "calls")
    path.write_bytes(pack(FORMS[form](ROWS)))

    assert keys(path) == keys(ROWS)
    assert keys(path) == keys(ROWS)
    assert count_rows(path) == (5 if form == ".jsonl" else None)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "jsonl"), (b"{}", "jsonl"), (b"\xef\xbb\xbf {}", "jsonl"), (b"\n [", "json"),
        (b"\xef\xbb\xbf[", "json"), (b"PAR1", "parquet"), (b"question,x\n", "csv"),
        (b"\xef\xbb\xbfquestion;x", "csv"), (b"hello, world\n", "jsonl"), (b"question\n", "jsonl"),
        (b"sep=;\nWhen;x", "csv"), (b"question|x\n", "csv"),
        (b'{"question": "Q"}\n{"question": "Q"}', "jsonl"), (b'{"question": "Q",\n', "jsonl"),
        (b'{\n  "question": "Q"\n}', "json"), (b'{"a": "Q",\r\n "b": 1}', "json"), (b"{\n}\n", "jsonl"),
        (b"\0,question\n", "jsonl"), (b"\xff,question\n", "jsonl"), (b'"a\n', "jsonl"),
    ],
)  # fmt: skip
def test_the_first_bytes_say_the_format(content: bytes, found: str) -> None:
    """Only a line with a known name is the head of a table: damaged rows hold commas, too."""
    stream = io.BytesIO(content)
    assert format_of("", stream, ["question"]) == found
    assert stream.tell() == 0


# --- A JSON array


def of_array(content: str | bytes, longest: int = 1000) -> list[tuple[int, Any]]:
    data = content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass")
    return [
        (number, str(row) if isinstance(row, InputError) else row)
        for number, row in values(io.BufferedReader(io.BytesIO(data)), longest, Patience())
    ]


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ("[]", []),
        (' [ {"a": 1} , {"a": 2} ] ', [{"a": 1}, {"a": 2}]),
        ('[{"a": "]}\\""}, {"b": [[{}]]}]', [{"a": ']}"'}, {"b": [[{}]]}]),
        ('[1, "x", [2], null]', ["not a JSON object, but 1", "not a JSON object, but 'x'",
         "not a JSON object, but [2]", "not a JSON object, but None"]),
        ('[{"a" 1}, {"a": 2}]', ["not JSON: Expecting ':' delimiter at column 6", {"a": 2}]),
        ('[{"a": [}, {"a": 2}]', ["not JSON: Expecting value at column 8", {"a": 2}]),
        ('[{"a": NaN}, {"a": 2}]', ["not JSON: NaN is not a number", {"a": 2}]),
        ('[{"a": 1} {"a": 2}, {"a": 3}]', [{"a": 1}, "not JSON: there is no comma before this row",
         {"a": 3}]),
        ('[,{"a": 1}]', ["not JSON: a row should be here, not ','", {"a": 1}]),
        ('[}{"a": 1}]', ["not JSON: a row should be here, not '}'", {"a": 1}]),
        ('[{"a": 1}', [{"a": 1}, "the array is not closed: the file was cut off"]),
        ('[{"a": 1}, {"b', [{"a": 1}, "not JSON: Unterminated string starting at at column 2",
         "the array is not closed: the file was cut off"]),
        ('[{"a": 1}, {"b\\', [{"a": 1}, "not JSON: Unterminated string starting at at column 2",
         "the array is not closed: the file was cut off"]),
        ('[{"a": 1}] x', [{"a": 1}, "not JSON: there is more behind the end of the array"]),
        ("x", ["not a JSON array: it begins with 'x'"]),
        ("[{}]".encode("utf-16"), ["not UTF-8, but probably UTF-16; convert the file"]),
        (b'[{"a": "\xff"}, {"a": 2}]', ["not UTF-8", {"a": 2}]),
        ('[{"a": ' + "9" * 5000 + '}, {"a": 2}]', ["is 5,007 characters long; the limit is 1,000",
         {"a": 2}]),
        ("[" + "[" * 900 + "]" * 900 + ', {"a": 2}]',
         ["is 1,800 characters long; the limit is 1,000", {"a": 2}]),
    ],
)  # fmt: skip
def test_a_damaged_row_of_an_array_loses_no_other(content: str, rows: list[Any]) -> None:
    """It ends where its brackets and strings do; what is behind it is read."""
    assert of_array(content) == list(enumerate(rows, 1))


def test_what_python_cannot_read_is_a_bad_row() -> None:
    """Numbers of 5,000 digits, and nesting beyond the recursion limit."""
    deep, long = "[" * 100_000 + "]" * 100_000, "9" * 5000
    found = of_array('[{"a": ' + deep + '}, {"a": ' + long + '}, {"a": 2}]', 10**6)
    assert found == [
        (1, "not usable: the JSON is nested too deeply"),
        (2, "not usable: a number has more digits than Python reads"),
        (3, {"a": 2}),
    ]


@given(st.lists(st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8,
), max_size=6), st.integers(1, 9), st.booleans(), st.sampled_from([None, 0, 2]))  # fmt: skip
def test_any_array_is_read_as_json_reads_it(
    values: list[Any], block: int, ascii_only: bool, indent: int | None
) -> None:
    """Wherever the blocks of the file end."""
    content = json.dumps(values, ensure_ascii=ascii_only, indent=indent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rag_eval_integrations.dataset._json_array._BLOCK", block)
        found = of_array(content, 10**6)
    expected = [value for value in values if isinstance(value, dict)]
    assert len(found) == len(values)
    assert [json.dumps(row) for _, row in found if isinstance(row, dict)] == [
        json.dumps(value) for value in expected
    ]  # lone surrogates are in both


TOKENS = ['{"a": 1}', "[", "]", "{", "}", '"', "\\", ",", ":", "1", " ", "NaN", "\\u12", "\ud800"]


@given(st.lists(st.sampled_from(TOKENS), max_size=30), st.integers(1, 5))
def test_no_text_ends_the_reading_of_an_array(tokens: list[str], block: int) -> None:
    """It ends, and never holds more rows than characters."""
    content = "[" + "".join(tokens)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rag_eval_integrations.dataset._json_array._BLOCK", block)
        found = of_array(content, 12)
    assert [number for number, _ in found] == list(range(1, len(found) + 1))
    assert len(found) <= len(content)


BOMB = """
import gzip, resource, sys
from rag_eval_integrations.dataset import read_calls
head, row = sys.argv[2:]
with gzip.open(sys.argv[1], "wb", 1) as bomb:
    bomb.write(head.encode())
    for _ in range(256):
        bomb.write(b"x" * 2**20)
    bomb.write(row.encode())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
lines = list(read_calls(sys.argv[1]))
grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(*(line.error or "read" for line in lines), grown // 1024, sep="|")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "row", "fault"),
    [
        ('[{"a": "', '"}, {"question": "q", "documents": ["d"], "response": "r"}]',
         "row 1: is 268,435,465 characters long; the limit is 16,777,216"),
        ("question,documents,response\n", ",x,y\nq,d,r\n",
         "line 2: is longer than 16,777,216 bytes; perhaps a quote is not closed"),
    ],
    ids=["array", "csv"],
)  # fmt: skip
def test_a_row_without_end_takes_no_memory(tmp_path: Path, head: str, row: str, fault: str) -> None:
    """256 MiB in one cell or string, in a kilobyte of gzip: one bad row, and the next is read."""
    words = [sys.executable, "-c", BOMB, str(tmp_path / "bomb.gz"), head, row]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    bad, good, megabytes = done.stdout.split("|")
    assert (bad, good) == (fault, "read")
    assert int(megabytes) < 120


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("name", ["calls.jsonl", "calls.json", "calls"])
@pytest.mark.parametrize("indent", [1, 2, "\t"])
def test_objects_over_several_lines_are_calls(
    tmp_path: Path, indent: int | str, name: str, pack: Callable[[bytes], bytes]
) -> None:
    """One that was written to be read, or one behind the other, as `jq` prints them."""
    path = tmp_path / name
    for rows in (ROWS[:1], ROWS):
        told = "\n".join(json.dumps(row, indent=indent) for row in rows)
        path.write_bytes(pack(f"{told}\n".encode()))
        assert keys(path) == keys(rows)
        assert count_rows(path) is None


def test_a_damaged_object_over_several_lines_is_one_bad_row(tmp_path: Path) -> None:
    """And not one for each of its lines; those behind it are read."""
    path = tmp_path / "calls.jsonl"
    told = [json.dumps(row, indent=1) for row in ROWS]
    path.write_text(told[0] + told[1].replace(":", "") + told[2])
    first, fault, last = keys(path)
    assert [first, last] == [keys(ROWS)[0], keys(ROWS)[2]]
    assert fault.startswith("row 2: not JSON")


# --- CSV


def of_table(content: bytes, longest: int = 200) -> list[tuple[int, Any]]:
    stream: Any = io.BufferedReader(io.BytesIO(content))
    return [
        (number, str(row) if isinstance(row, InputError) else row)
        for number, row in table(stream, longest, lambda _: None, Patience())
    ]


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (b"", []),
        (b"a,b\n", []),
        (b"\xef\xbb\xbfa,b\r\n1,2\r\n\r\n3,4", [(2, {"a": "1", "b": "2"}), (4, {"a": "3", "b": "4"})]),
        (b'a,b\n"1\n\n,""x""",2\n3,4\n', [(2, {"a": '1\n\n,"x"', "b": "2"}), (5, {"a": "3", "b": "4"})]),
        (b"a;b\n1,5;2\n", [(2, {"a": "1,5", "b": "2"})]),
        (b"a\tb\n1,5\t2\n", [(2, {"a": "1,5", "b": "2"})]),
        (b"a|b\n1,5|2\n", [(2, {"a": "1,5", "b": "2"})]),
        (b"sep=;\r\na;b,c\r\n1,5;2\r\n", [(3, {"a": "1,5", "b,c": "2"})]),
        (b'\xef\xbb\xbf"SEP=\t"\na\tb\n1\n', [(3, "has 1 cells, and the table 2 columns")]),
        (b"sep=x\n1\n", [(2, {"sep=x": "1"})]),
        (b'"a;x",b\n1,2\n', [(2, {"a;x": "1", "b": "2"})]),
        (b",a,\n0,1,2\n", [(2, {"a": "1"})]),
        (b"a,b\n1\n1,2,3\n3,4\n", [(2, "has 1 cells, and the table 2 columns"),
         (3, "has 3 cells, and the table 2 columns"), (4, {"a": "3", "b": "4"})]),
        (b'a,b\n"1"x,2\n3,4\n', [(2, """not CSV: ',' expected after '"'"""), (3, {"a": "3", "b": "4"})]),
        (b'a,b\n1,5" disk\n3,4\n', [(2, {"a": "1", "b": '5" disk'}), (3, {"a": "3", "b": "4"})]),
        (b'a,b\n"1,2\n3,4\n', [(2, "not CSV: unexpected end of data")]),
        (b"a,b\n\xff,2\n3,4\n", [(2, "not UTF-8 at byte 0"), (3, {"a": "3", "b": "4"})]),
        (b"a,b\n" + b"x" * 1000 + b",2\n3,4\n",
         [(2, "is longer than 200 bytes; perhaps a quote is not closed"), (3, {"a": "3", "b": "4"})]),
        ("a,b\n1,2\n".encode("utf-16"), [(1, "not UTF-8, but probably UTF-16; convert the file")]),
        (b"a,b\n1,\0\n3,4\n", [(2, {"a": "1", "b": "\0"}), (3, {"a": "3", "b": "4"})]),
    ],
)  # fmt: skip
def test_tables_are_read_by_the_line(content: bytes, rows: list[Any]) -> None:
    """A row has the number of its first line; a bad one loses no other."""
    assert of_table(content) == rows


def test_a_quote_that_is_never_closed_costs_a_row_of_memory() -> None:
    """It is one bad row, as long as a row may be; behind it rows are read again."""
    content = b'a,b\n"1,2\n' + b"3,4\n" * 100
    found = of_table(content)
    assert found[0] == (2, "is longer than 200 bytes; perhaps a quote is not closed")
    assert 0 < len(found) < 60
    assert all(row == {"a": "3", "b": "4"} for _, row in found[1:])


def test_the_limit_of_cells_is_only_our_own() -> None:
    """Python's is of the whole process; documents are longer than it is."""
    before = csv.field_size_limit()
    found = of_table(b"a,b\n1," + b"x" * 200_000 + b"\n", 10**6)
    assert len(found[0][1]["b"]) == 200_000
    assert csv.field_size_limit() == before


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    """One would be lost, and nothing says which."""
    path = tmp_path / "calls.csv"
    path.write_text("question,question,answer\n1,2,3\n")
    with pytest.raises(ConfigurationError, match="the name of two columns"):
        list(read_calls(path))


@given(st.lists(st.lists(st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=2, max_size=2)),
    st.sampled_from(",;\t|"), st.sampled_from(["\n", "\r\n"]))  # fmt: skip
def test_any_table_is_read_as_it_was_written(
    rows: list[list[str]], delimiter: str, end: str
) -> None:
    """Whatever its cells hold; a row without any text is a blank line."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows([["a", "b"], *rows])
    found = of_table(out.getvalue().encode(), 10**6)
    assert [list(row.values()) for _, row in found] == [row for row in rows if any(row)]


# --- Parquet


@pytest.mark.parametrize("cut", [0, 4, 40, -1, -8, -40])
def test_a_damaged_parquet_file_is_one_bad_row(tmp_path: Path, cut: int) -> None:
    """It is read from its end, so there is no other."""
    path = tmp_path / "calls.parquet"
    path.write_bytes(parquet(ROWS)[:cut] if cut else b"")
    (fault,) = keys(path)
    assert fault.startswith("row 1: the Parquet data is damaged")


@pytest.mark.slow
def test_no_damage_to_a_parquet_file_ends_the_reading(tmp_path: Path) -> None:
    """Bytes that changed are a fault, or are not noticed; never an exception."""
    whole, path = parquet(ROWS), tmp_path / "calls.parquet"
    for seed in range(300):
        chance = random.Random(seed)
        content = bytearray(whole)
        for _ in range(chance.choice((1, 1, 4))):
            content[chance.randrange(len(content))] = chance.randrange(256)
        path.write_bytes(content)
        lines = list(read_calls(path))
        assert all((line.value is None) != (line.error is None) for line in lines), seed


def test_labelled_rows_are_read_from_parquet(tmp_path: Path) -> None:
    """As RAGBench publishes them."""
    path = tmp_path / "rows.parquet"
    path.write_bytes(parquet([{"a": [["0a", "x"]]}, {"a": None}]))
    found = [line.value for line in read_rows(path, lambda row: row["a"])]
    assert found == [[["0a", "x"]], None]
