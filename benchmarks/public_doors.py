"""Compare what users see of two checkouts: the same commands and apps, on the same real rows.

    python benchmarks/public_doors.py run OUT [--data DIR] [--caches EARLIER]
    python benchmarks/public_doors.py compare EARLIER OUT

`run` writes into OUT what the public doors of this checkout make: evaluations in all three states,
labels, requests, caches, captured calls, files, outputs and exit codes. Run it in two checkouts,
each by its own environment, and `compare` prints the differences, file by file. With `--caches` a
cache that the earlier checkout wrote is read, and should save every request.
DIR is a folder of labelled rows (`ragbench/*.jsonl.gz`, `promptpex/v7/*`), by default
../shared/data.
"""

from __future__ import annotations

import argparse
import csv
import difflib
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]

JUDGE = '''
"""Models that answer from gold labels, and write down every request."""
import dataclasses, json, os
from rag_eval_integrations import CachedModel
from rag_eval_integrations.errors import JudgeRejectedError
from rag_eval_integrations.models.completion import Choice, Completion
from rag_eval_integrations.records import Usage

GOLD = {row["question"]: row for row in map(json.loads, open("gold.jsonl"))}
FIELDS = ("relevance_explanation", "all_relevant_sentence_keys", "overall_supported_explanation",
          "sentence_support_information", "all_utilized_sentence_keys")

class Gold:
    version = "1"

    def __init__(self, name):
        self.name = name

    async def complete(self, request):
        text = "\\n".join(message.content for message in request.messages)
        with open(os.environ["REQUESTS"], "a") as file:
            file.write(repr(request) + "\\n")
        row = max((row for question, row in GOLD.items() if " ".join(question.split()) in text),
                  key=lambda row: len(row["question"]), default={"adherence_score": 1})
        answer = json.dumps({name: row.get(name) for name in FIELDS}
                            | {"overall_supported": bool(row["adherence_score"])})
        case = list(GOLD).index(row["question"]) % 5 if self.name == "trouble" else 0
        if case == 1:
            raise JudgeRejectedError("refused on purpose")
        texts = {2: "I would rather not say.", 3: '{"all_relevant_sentence_keys": null}',
                 4: "```json\\n" + answer + "\\n```"}
        choices = tuple(Choice(text=texts.get(case, answer), finish_reason="stop")
                        for _ in range(request.n))
        return Completion(choices=choices, usage=Usage(requests=1))

judge = Gold("gold")
trouble = Gold("trouble")
cached = CachedModel(Gold("gold"), "cache.sqlite") if "CACHED" in os.environ else None
'''

APPS = '''
"""Capture calls of small LangChain and LlamaIndex apps."""
import asyncio, json
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnablePassthrough
from llama_index.core import Document as IndexDocument, SummaryIndex
from llama_index.core.llms.mock import MockLLM
from rag_eval_integrations import capture_call
from rag_eval_integrations.langchain import RagEvalCallbackHandler
from rag_eval_integrations.llama_index import RagEvalHandler

ROWS = [json.loads(line) for line in open("gold.jsonl")][:12]
calls = []

class Rows(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        row = next(row for row in ROWS if row["question"] == query)
        return [Document(text, id=str(i)) for i, text in enumerate(row["documents"])]

handler = RagEvalCallbackHandler(calls.append)
prompt = ChatPromptTemplate.from_template("Answer from {context}\\n\\nQuestion: {question}")
for row in ROWS:
    model = FakeListChatModel(responses=[row["response"] or "-"])
    inputs = {"context": Rows(), "question": RunnablePassthrough()}
    chain = inputs | prompt | model | StrOutputParser()
    config = {"callbacks": [handler]}
    chain.invoke(row["question"], config)
    for _ in chain.stream(row["question"], config):
        pass
    asyncio.run(chain.ainvoke(row["question"], config))
chain = chain.with_config(callbacks=[handler])
handler.flush()
inner = RagEvalHandler(calls.append)
inner.install()
for row in ROWS:
    index = SummaryIndex.from_documents([IndexDocument(text=text) for text in row["documents"]])
    engine = index.as_query_engine(llm=MockLLM(max_tokens=20))
    str(engine.query(row["question"]))
inner.flush()
with capture_call(calls.append, ROWS[0]["question"]) as call:
    call.documents = ROWS[0]["documents"]
    call.response = ROWS[0]["response"]
for call in calls:
    print(call.model_dump_json())
'''

# What differs from run to run: times, identifiers, folders and amounts of seconds.
VARYING = (
    (r"\b20\d\d-\d\d-\d\dT?[ ]?\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00| UTC)?", "<time>"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<uuid>"),
    (r'"(run_id|trace_id|span_id|started_at|ended_at|created_at)": ?"[^"]*"', r'"\1":"<varies>"'),
    (r'"(seconds|duration|latency|elapsed)[a-z_]*": ?[\d.e-]+', r'"\1":0'),
    (r"\b[\d.,]+ (s|ms|seconds)\b(, [\d.,]+ per second)?", "<seconds>"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True, dest="command")
    running = commands.add_parser("run")
    running.add_argument("out", type=Path)
    running.add_argument("--data", type=Path, default=HERE.parent / "shared" / "data")
    running.add_argument("--caches", type=Path)
    comparing = commands.add_parser("compare")
    comparing.add_argument("earlier", type=Path)
    comparing.add_argument("out", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "compare":
        return compare(arguments.earlier, arguments.out)
    run(arguments.out.resolve(), arguments.data.resolve(), arguments.caches)
    return 0


def run(out: Path, data: Path, caches: Path | None) -> None:
    """Write what every public door makes of the rows."""
    out.mkdir(parents=True)
    rows = inputs(out, data)
    sets = ["--formulas", "ragbench"]
    command(out, "score", "score", "all.jsonl", "-o", "score.jsonl")
    command(out, "score-ragbench", "score", "all.jsonl", "-o", "score-ragbench.jsonl", *sets)
    command(out, "score-gzip", "score", "gold.jsonl", "-o", "score.jsonl.gz")
    for form in forms(out, rows):
        command(
            out,
            f"read-{form}",
            "run",
            form,
            "-o",
            f"read-{form}.jsonl",
            "--judge",
            "my_judges:judge",
        )
    command(out, "bad", "run", "bad.jsonl", "-o", "bad-out.jsonl", "--judge", "my_judges:judge")
    command(
        out,
        "bad-skip",
        "run",
        "bad.jsonl",
        "-o",
        "bad-skip.jsonl",
        "--judge",
        "my_judges:judge",
        "--skip-invalid",
    )
    command(out, "exists", "run", "calls.jsonl", "-o", "score.jsonl", "--judge", "my_judges:judge")
    command(out, "nothing", "run", "nowhere.jsonl", "-o", "nothing.jsonl")
    command(
        out, "trouble", "run", "calls.jsonl", "-o", "trouble.jsonl", "--judge", "my_judges:trouble"
    )
    resumed = ["run", "calls.jsonl", "-o", "resumed.jsonl", "--judge", "my_judges:judge"]
    command(out, "limited", *resumed, "--limit", "7")
    command(out, "resumed", *resumed, "--resume")
    command(out, "overwritten", *resumed, "--overwrite")
    os.environ["CACHED"] = "1"
    cached = ["run", "calls.jsonl", "--judge", "my_judges:cached", "-o"]
    command(out, "cached", *cached, "cached.jsonl")
    if caches:
        shutil.copy(caches / "cache.sqlite", out / "cache.sqlite")
    command(out, "cached-again", *cached, "cached-again.jsonl")
    command(
        out,
        "geval",
        "run",
        "few.jsonl",
        "-o",
        "geval.jsonl",
        "--judge",
        "my_judges:judge",
        "--metrics",
        "trace,retrieval,label_retrieval,context_recall,geval:coherence",
        "--geval-samples",
        "2",
    )
    command(out, "embedded", "run", "calls.jsonl", "-o", "embedded.jsonl")
    if (out / "embedded.jsonl").exists():
        command(
            out,
            "agreement",
            "agreement",
            "embedded.jsonl",
            "gold.jsonl",
            "--baselines",
            "-o",
            "agreement.html",
        )
        command(out, "agreement-json", "agreement", "embedded.jsonl", "gold.jsonl", "--json")
        command(
            out,
            "calibrate",
            "calibrate",
            "embedded.jsonl",
            "gold.jsonl",
            "-o",
            "calibration.json",
            "--target-error",
            "0.3",
        )
    for form in ("html", "md", "json", "csv"):
        command(out, f"report-{form}", "report", "score.jsonl", "-o", f"report.{form}")
        command(
            out, f"report-trouble-{form}", "report", "trouble.jsonl", "-o", f"report-trouble.{form}"
        )
    pair = ["compare", "read-calls.jsonl.jsonl", "trouble.jsonl", "--allow-mixed"]
    for form in ("html", "md", "json"):
        command(out, f"compare-{form}", *pair, "-o", f"compare.{form}")
    command(out, "compare", *pair, "--fail-on-regression", "adherence=0.02")
    for folder in sorted((data / "promptpex" / "v7").glob("*")):
        name = folder.name
        command(out, f"import-{name}", "prompt-tests", "import", str(folder), "-o", f"tests-{name}")
        command(out, f"prompts-{name}", "prompt-tests", "report", f"tests-{name}")
    python(out, "apps", "apps.py")
    python(out, "printed", "-c", PRINTED)


PRINTED = """
from rag_eval_integrations import Evaluations
evaluations = Evaluations.load("trouble.jsonl")
print(evaluations); print(repr(evaluations)); print(evaluations.to_pandas().to_csv())
for evaluation in list(evaluations)[:10]:
    print(evaluation); print(repr(evaluation)); print(evaluation._repr_html_())
print(evaluations._repr_html_())
"""


def inputs(out: Path, data: Path) -> list[dict]:
    """Write the rows that the doors read: all with labels, every thirtieth as calls and as gold."""
    rows = []
    for path in sorted((data / "ragbench").glob("*.jsonl.gz")):
        with gzip.open(path, "rt") as file:
            rows += [json.loads(line) for line in file]
    part, questions = [], set()
    for row in rows[::30]:
        if row["question"] not in questions:
            questions.add(row["question"])
            part.append(row)
    calls = [
        {"id": f"{row['_subset']}-{row['id']}", "question": row["question"],
         "documents": row["documents"], "response": row["response"]} for row in part
    ]  # fmt: skip
    gold = [row | {"id": call["id"]} for row, call in zip(part, calls, strict=True)]
    for name, content in (("all", rows), ("gold", gold), ("calls", calls), ("few", calls[:6])):
        (out / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in content))
    bad = [json.dumps(calls[0]), "not JSON", "{}", json.dumps(calls[1] | {"documents": 3}), "[1]"]
    (out / "bad.jsonl").write_text("\n".join([*bad, json.dumps(calls[2]), ""]))
    (out / "my_judges.py").write_text(JUDGE)
    (out / "apps.py").write_text(APPS)
    return calls


def forms(out: Path, calls: list[dict]) -> list[str]:
    """Write the same calls in the forms that other tools write; their names."""
    calls = calls[:20]
    ragas = [
        {
            "user_input": c["question"],
            "retrieved_contexts": c["documents"],
            "response": c["response"],
        }
        for c in calls
    ]
    deepeval = [
        {
            "input": c["question"],
            "retrieval_context": c["documents"],
            "actual_output": c["response"],
        }
        for c in calls
    ]
    common = [
        {"query": c["question"], "contexts": c["documents"], "answer": c["response"]} for c in calls
    ]
    (out / "calls.json").write_text(json.dumps(calls))
    (out / "indented.json").write_text(json.dumps(ragas, indent=2))
    (out / "deepeval.json").write_text(json.dumps(deepeval))
    (out / "common.jsonl").write_text("".join(json.dumps(row) + "\n" for row in common))
    with gzip.open(out / "ragas.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in ragas)
    for name, dump in (("python.csv", repr), ("json.csv", json.dumps)):
        with open(out / name, "w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["query", "contexts", "answer"])
            table.writerows([row["query"], dump(row["contexts"]), row["answer"]] for row in common)
    writing = (
        "import json, pyarrow as pa, pyarrow.parquet as pq\n"
        "table = pa.Table.from_pylist(json.load(open('indented.json')))\n"
        "pq.write_table(table, 'ragas.parquet')"
    )
    subprocess.run([sys.executable, "-c", writing], cwd=out, check=True)
    return ["calls.jsonl", "calls.json", "indented.json", "deepeval.json", "common.jsonl",
            "ragas.jsonl.gz", "python.csv", "json.csv", "ragas.parquet", "gold.jsonl"]  # fmt: skip


def command(out: Path, name: str, *words: str) -> None:
    """Run one command of rag-eval; keep what it prints, and its exit code."""
    program = Path(sys.executable).with_name("rag-eval")
    keep(out, name, [str(program), *words])


def python(out: Path, name: str, *words: str) -> None:
    """Run Python; keep what it prints, and its exit code."""
    keep(out, name, [sys.executable, *words])


def keep(out: Path, name: str, words: list[str]) -> None:
    environment = os.environ | {
        "REQUESTS": f"requests-{name}.jsonl", "COLUMNS": "100", "PYTHONPATH": str(out),
        "NO_COLOR": "1", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    done = subprocess.run(
        words, cwd=out, env=environment, capture_output=True, timeout=600, check=False
    )
    text = done.stdout.decode() + "\n-- standard error\n" + done.stderr.decode()
    (out / f"{name}.said").write_text(f"exit code {done.returncode}\n{text}")
    print(f"{name}: exit code {done.returncode}", flush=True)


def compare(earlier: Path, out: Path) -> int:
    """Print the differences of two runs; 1 if there are any."""
    names = sorted(
        {str(p.relative_to(f)) for f in (earlier, out) for p in f.rglob("*") if p.is_file()}
    )
    differences = 0
    for name in names:
        if name.endswith((".sqlite", ".sqlite-wal", ".sqlite-shm", ".pyc")):
            continue
        sides = [lines(folder / name, folder) for folder in (earlier, out)]
        if sides[0] != sides[1]:
            differences += 1
            print(f"\n== {name}")
            for line in list(difflib.unified_diff(*sides, lineterm="", n=0))[2:14]:
                print("  " + line[:300])
    print(f"\n{differences} of {len(names)} files differ")
    return 1 if differences else 0


def lines(path: Path, folder: Path) -> list[str]:
    """Give a file's lines without what varies; requests in order of their text."""
    if not path.exists():
        return ["(no such file)"]
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    text = content.decode("utf-8", "replace").replace(str(folder.resolve()), "<folder>")
    for pattern, instead in VARYING:
        text = re.sub(pattern, instead, text)
    result = text.splitlines()
    return sorted(result) if path.name.startswith("requests-") else result


if __name__ == "__main__":
    sys.exit(main())
