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
from any_records import JSON
from hypothesis import given
from hypothesis import strategies as st
from tables import as_csv, as_parquet

from rag_eval_integrations.dataset import _input, read_calls

ROWS: list[dict[str, Any]] = [
    {"id": str(number), "question": "Wann? ☕", "documents": ["At\nnine.", 'Or "ten", ten.'],
     "response": "At nine, or ten."}
    for number in range(5)
]  # fmt: skip


def keys(source: Any, **options: Any) -> list[str]:
    """The calls of a source by id and key; a fault by its words."""
    return [
        f"{line.value.id} {line.value.row_key}" if line.value else str(line.error)
        for line in read_calls(source, **options)
    ]


FORMS: dict[str, Callable[[list[dict[str, Any]]], bytes]] = {
    ".jsonl": lambda rows: "".join(json.dumps(row) + "\n" for row in rows).encode(),
    ".json": lambda rows: json.dumps(rows, indent=1, ensure_ascii=False).encode(),
    ".csv": as_csv,
    ".parquet": as_parquet,
}


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


CALL = '{"question": "q", "documents": ["d"], "response": "r"}'
SPREAD = CALL.replace(", ", ",\n ").replace("{", "{\n ")


@pytest.mark.parametrize(
    ("content", "calls"),
    [
        (CALL, 1), (f"\ufeff {CALL}\n{CALL}", 2), (f"\n [{CALL}]", 1),
        (f"\ufeff[{CALL}, {CALL}]", 2), (SPREAD, 1), (f"{SPREAD}{SPREAD}", 2),
        ("question,documents,response\nq,d,r\n", 1),
        ("\ufeffquestion;documents;response\nq;d;r", 1),
        ("sep=;\nquestion;documents;response\nq;d;r", 1),
        ("question|documents|response\n\nq|d|r\n", 1),
    ],
)  # fmt: skip
def test_the_first_bytes_say_the_format(content: str, calls: int) -> None:
    """A file without a name."""
    lines = list(read_calls(io.BytesIO(content.encode())))
    assert [line.value and line.value.response for line in lines] == ["r"] * calls


@pytest.mark.parametrize(
    "content", [b"hello, world\n", b"question\n", b"\0,question\n", b"\xff,question\n"]
)
def test_only_a_line_with_a_known_name_is_the_head_of_a_table(content: bytes) -> None:
    """Damaged rows hold commas, too."""
    (line,) = read_calls(io.BytesIO(content))
    assert str(line.error).startswith("line 1: not ")


# --- JSON that is not one row per line


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ("[]", []),
        (f" [ {CALL} , {CALL} ] ", ["r", "r"]),
        (f'[1, "x", [2], null, {CALL}]', ["row 1: not a JSON object, but 1",
         "row 2: not a JSON object, but 'x'", "row 3: not a JSON object, but [2]",
         "row 4: not a JSON object, but None", "r"]),
        (f'[{CALL[:-1]}, "n": [NaN]}}, {CALL}]', ["row 1: not JSON: NaN is not a number", "r"]),
        (f'[{CALL[:-1]}, "n": -Infinity}}]', ["row 1: not JSON: -Infinity is not a number"]),
        (f'[{CALL}, {{"a" 1}}, {CALL}]',
         ["r", "row 2: not JSON: Expecting ':' delimiter at line 1 column 63; what follows is lost"]),
        (f"[{CALL} {CALL}]",
         ["r", "row 2: not JSON: Expecting ',' delimiter at line 1 column 57; what follows is lost"]),
        (f"[{CALL},]", ["r", "row 2: not JSON: Expecting value at line 1 column 57; what follows is lost"]),
        (f"[{CALL}] x", ["r", "row 2: not JSON: Extra data at line 1 column 57; what follows is lost"]),
        (f"[\n{CALL},\n{CALL[:30]}",
         ["r", "row 2: not JSON: Expecting value at line 3 column 31; what follows is lost"]),
        ("[{}]".encode("utf-16"), ["line 1: not UTF-8, but probably UTF-16; convert the file"]),
        (b'[{"a": "\xff"}]', ["row 1: not UTF-8 at byte 8; save it as UTF-8, or convert it with iconv"]),
        ('[{"a": ' + "[" * 100_000 + "]" * 100_000 + "}]", ["row 1: not usable: "]),
        ('[{"a": ' + "9" * 5000 + "}]", ["row 1: not usable: "]),
        ("\n".join([SPREAD, SPREAD.replace(":", ""), SPREAD]),
         ["r", "row 2: not JSON: Expecting ':' delimiter at line 6 column 13; what follows is lost"]),
    ],
)  # fmt: skip
def test_a_bad_row_is_one_and_what_is_not_json_is_told_with_its_place(
    content: str | bytes, rows: list[str]
) -> None:
    """The rows before it are read."""
    data = content if isinstance(content, bytes) else content.encode()
    lines = list(read_calls(io.BytesIO(data), tell=print))
    assert [line.number for line in lines] == list(range(1, len(rows) + 1))
    for line, expected in zip(lines, rows, strict=True):
        text = str(line.value.response if line.value else line.error)
        assert text == expected if "usable" not in expected else text.startswith(expected)


@pytest.mark.parametrize("form", ["[{},\n{}]", "{}\n{}\n"])
def test_nan_of_a_field_is_null(form: str) -> None:
    """`json.dumps` of a frame's records writes it; inside of a value, it spoils its row."""
    row = CALL[:-1] + ', "reference": NaN, "n": '
    first, second = read_calls(io.BytesIO(form.format(row + "NaN}", row + "[NaN]}").encode()))
    assert first.value is not None
    assert (first.value.reference, first.value.metadata) == (None, {"n": None})
    assert str(second.error).endswith("2: not JSON: NaN is not a number")


def test_an_array_beyond_the_limit_names_json_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read whole, which takes memory."""
    monkeypatch.setattr(_input, "_MOST_JSON", 50)
    (line,) = read_calls(io.BytesIO(f"[{CALL}]".encode()))
    why = "row 1: is longer than 50 bytes; write JSON lines, one object per line"
    assert str(line.error) == why


@given(st.lists(JSON, max_size=6), st.booleans(), st.sampled_from([None, 0, 2]))
def test_any_array_is_read_as_json_reads_it(
    values: list[Any], ascii_only: bool, indent: int | None
) -> None:
    """As metadata of calls."""
    rows = [{**json.loads(CALL), "metadata": {"value": value}} for value in values]
    text = json.dumps(rows, ensure_ascii=ascii_only, indent=indent)
    content = text.encode("utf-8", "replace")
    lines = list(read_calls(io.BytesIO(content)))
    kept = [line.value.metadata["value"] for line in lines if line.value]
    assert kept == [row["metadata"]["value"] for row in json.loads(content)]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("name", ["calls.jsonl", "calls.json", "calls"])
@pytest.mark.parametrize("indent", [1, 2, "\t"])
def test_objects_over_several_lines_are_calls(
    tmp_path: Path, indent: int | str, name: str, pack: Callable[[bytes], bytes]
) -> None:
    """One that was written to be read, or one behind the other, as `jq` prints them."""
    path = tmp_path / name
    for rows in (ROWS[:1], ROWS):
        messages = "\n".join(json.dumps(row, indent=indent) for row in rows)
        path.write_bytes(pack(f"{messages}\n".encode()))
        assert keys(path) == keys(rows)


# --- CSV


HEAD = b"question,documents,response,x\n"


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (b"", []),
        (HEAD, []),
        (b"\xef\xbb\xbf" + HEAD + b"q,d,r,1\r\n\r\nq,d,r,3", [(2, "1"), (4, "3")]),
        (HEAD + b'q,d,r,"1\n\n,""x"""\nq,d,r,3\n', [(2, '1\n\n,"x"'), (5, "3")]),
        (HEAD.replace(b",", b";") + b"q;d;r;1,5\n", [(2, "1,5")]),
        (HEAD.replace(b",", b"\t") + b"q\td\tr\t1,5\n", [(2, "1,5")]),
        (b"sep=;\r\n" + HEAD.replace(b",", b";") + b"q;d;r;1,5\r\n", [(3, "1,5")]),
        (b'\xef\xbb\xbf"SEP=\t"\n' + HEAD.replace(b",", b"\t") + b"1\n",
         [(3, "has 1 cells, and the table 4 columns")]),
        (HEAD + b"q\nq,d,r,1,2\nq,d,r,4\n", [(2, "has 1 cells, and the table 4 columns"),
         (3, "has 5 cells, and the table 4 columns"), (4, "4")]),
        (HEAD + b'q,d,r,"1"x\nq,d,r,4\n', [(2, """not CSV: ',' expected after '"'"""), (3, "4")]),
        (HEAD + b'q,d,r,5" disk\n', [(2, '5" disk')]),
        (HEAD + b'q,d,r,"1\nq,d,r,4\n', [(2, "not CSV: unexpected end of data")]),
        (HEAD + b"q,d,r,\xff\nq,d,r,4\n", [(2, "not UTF-8 at byte 6; save it as UTF-8, or convert it with iconv"), (3, "4")]),
        (HEAD + b"x" * 3000 + b",d,r,2\nq,d,r,4\n",
         [(2, "is 3,007 bytes long; the limit is 2,000"), (3, "4")]),
        (HEAD + b'q,d,r,"1\n' + b"q,d,r,4\n" * 400, [(2, "not CSV: field larger than field limit (2000)")]),
        (HEAD.decode().encode("utf-16"), [(1, "not UTF-8, but probably UTF-16; convert the file")]),
    ],
)  # fmt: skip
def test_tables_are_read_by_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, rows: list[Any]
) -> None:
    """A row has the number of its first line; a bad one loses no other."""
    monkeypatch.setattr(_input, "LONGEST_CALL", 2000)
    path = tmp_path / "calls.csv"
    path.write_bytes(content)
    lines = [
        (line.number, line.value.metadata["x"] if line.value else line.error and line.error.why)
        for line in read_calls(path)
    ]
    assert lines[: len(rows)] == rows
    assert all(value == "4" for _, value in lines[len(rows) :])


def test_the_limit_of_cells_is_only_our_own() -> None:
    """Python's is of the whole process; documents are longer than it is."""
    before = csv.field_size_limit()
    (line,) = read_calls(io.BytesIO(HEAD + b"q,d,r," + b"x" * 200_000 + b"\n"))
    assert len(str(line.value and line.value.metadata["x"])) == 200_000
    assert csv.field_size_limit() == before


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))),
    st.sampled_from(",;\t|"), st.sampled_from(["\n", "\r\n"]))  # fmt: skip
def test_any_table_is_read_as_it_was_written(cells: list[str], delimiter: str, end: str) -> None:
    """Whatever its cells hold."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerow(["question", "documents", "response", "x"])
    writer.writerows(["q", "d", "r", each] for each in cells)
    lines = read_calls(io.BytesIO(out.getvalue().encode()))
    assert [line.value and line.value.metadata["x"] for line in lines] == cells


# --- Parquet


@pytest.mark.parametrize("cut", [0, 4, 40, -1, -8, -40])
def test_a_damaged_parquet_file_is_one_bad_row(tmp_path: Path, cut: int) -> None:
    """It is read from its end, so there is no other; bytes that changed raise nothing."""
    path = tmp_path / "calls.parquet"
    whole = as_parquet(ROWS)
    path.write_bytes(whole[:cut] if cut else b"")
    (fault,) = keys(path)
    assert fault.startswith("row 1: the Parquet data is damaged")
    for seed in range(50 * cut, 50 * cut + 50):
        chance = random.Random(seed)
        content = bytearray(whole)
        for _ in range(chance.choice((1, 1, 4))):
            content[chance.randrange(len(content))] = chance.randrange(256)
        path.write_bytes(content)
        lines = list(read_calls(path))
        assert all((line.value is None) != (line.error is None) for line in lines), seed


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
    ("head", "row", "bad"),
    [("", f"\n{CALL}", "line 1"), ("question,documents,response\n", ",x,y\nq,d,r\n", "line 2")],
    ids=["lines", "csv"],
)
def test_a_row_without_end_takes_no_memory(tmp_path: Path, head: str, row: str, bad: str) -> None:
    """256 MiB in one line, in a kilobyte of gzip: one bad row, and the next is read."""
    words = [sys.executable, "-c", BOMB, str(tmp_path / "bomb.gz"), head, row]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    fault, good, megabytes = done.stdout.split("|")
    assert fault.startswith(f"{bad}: is 268,435,4")
    assert good == "read"
    assert int(megabytes) < 120
