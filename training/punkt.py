"""Derive the English Punkt parameters that ship with the project.

    python training/punkt.py --data ../shared/data

NLTK's own trainer (Kiss and Strunk 2006) reads the texts of RAGBench and RAGTruth. Its findings are
reduced to those that carry over to other texts, and joined with the lists of common English
abbreviations below. The result is deterministic: texts are read once each, in sorted order.

These findings of the trainer are kept, for these reasons:

* Abbreviations: those that are followed by a comma, a figure or a small letter in at least two
  sources. The rest were measured to be part numbers and acronyms of one manual.
  Abbreviations of the form `a.b` are left out, since the splitter knows their form.
* Sentence starters: those that begin a sentence in at least five of the six sources.
* Orthographic context: words that are seen in small letters and at least three times. A word that
  is never seen in small letters decides nothing that an unseen word does not decide.
* Collocations: none. The 292 found were the numbers of list steps with their first words, and the
  initials of particular people.

No text is stored, only word forms and flags.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from nltk.tokenize.punkt import PunktTrainer  # type: ignore[import-untyped]  # nltk has no stubs

OUTPUT = Path(__file__).parents[1] / "rag_eval_integrations" / "sentences" / "punkt_english.json"
VERSION = 2
MINIMUM_COUNT = 3
STARTER_SOURCES = 5
ABBREVIATION_SOURCES = 2
_LOWER_CASE_FLAGS = 0b1110000  # nltk's _ORTHO_LC: begins, continues, unknown, in small letters

SOURCES = [
    {"name": "RAGBench", "licence": "CC-BY-4.0", "from": "rungalileo/ragbench"},
    {"name": "RAGTruth", "licence": "MIT", "from": "ParticleMedia/RAGTruth"},
]

# Never the last word of a sentence, whatever follows. A title counts only as a name is written,
# "Gen." and not "gen." or "GEN.".
NEVER_FINAL = """
approx cf dr e.g eg i.e ie messrs mr mrs ms mx prof viz vs
"""
TITLES = """
adm brig capt cmdr col cpl fr gen gov hon lt maj pres rep reps rev revd sen sens sgt supt
"""

# Only before a digit, because many of them are ordinary words ("no", "fig", "art").
NUMBERED = """
app art bk c ca ch chap cl col eq eqn eqns eqs ex exh fig figs fn fol hob ln no nos p para paras
pg pl pp pt pts ref refs rm sc sec secs sect sects ser tab v ver vol vols
"""

# Only before a lower-case letter or a digit. A capital after them begins a sentence more often
# than it goes on with a name: "for 5 min. Remove it", "pears, etc. Apples are".
BEFORE_SMALL = """
abbr al avg cent cert chap cm comm contd cu diam ed edn eds elec equiv est etc ext fol freq ft hr
hrs ibid illus incl ing intl kg lb lbs loc max mfg mg mi min mins misc mkt mm mol mos mph msec natl
neg nr obs orig oz par pat perf pers pkg pl plc poss pref prev prob pseud pt publ qt qtr rd rec ref
refs reg regd regs repr res resp rpm sec secs sect seq sp spec spp sq sqq ssp subsp suppl syn tbsp
tel temp trans transl tsp var wk wks wt yd yds yr yrs
"""

# A name may follow, so Punkt decides.
ABBREVIATIONS = """
acad admin ala apr apt ariz ark assn assoc asst atty aug ave bldg blvd bros calif co colo conf
conn corp cos cpl ct dec def dep dept depts dist div esp esq feb fla fri ft ga govt hist hosp inc
inst jan jnr jr jul jun kan ky ltd llc llp mar md mich minn mon mt mtn mts mont neb nev nov oct
okla org pa penn ph pkwy prov pty pvt rd rte sep sept snr soc sq sr st ste surg tenn tex thu thur
thurs tue tues twp univ va vt wed wis wyo
a.d a.k.a a.m b.a b.c b.c.e b.s c.e c.e.o d.c j.d l.a l.l.c ll.b ll.d ll.m m.a m.b.a m.d m.s n.b n.j
n.y o.k p.a p.c p.m p.s ph.d r.i.p s.a s.c u.k u.n u.s u.s.a u.s.c u.s.s.r v.p w.h.o
"""

STARTERS = """
a after all also although an another any as at because before both but by each every few for
from he her here his how i if in into it its many most my no nobody none not now on once one other
our she since so some such that the their then there these they this those though thus to under
until we what when where whether which while who why with without you your
"""


def texts_by_source(folder: Path) -> dict[str, list[str]]:
    """Return the distinct texts of each source, sorted; headings of `Title:` lines left out."""
    counted: dict[str, set[str]] = defaultdict(set)
    for file in sorted((folder / "ragbench").glob("*.jsonl.gz")):
        for row in _rows(file):
            counted[file.name.split("_")[0]].update([*row["documents"], row["response"]])
    for row in _rows(folder / "ragtruth" / "qa_train.jsonl.gz"):
        counted["ragtruth"].update([row["passages"], row["response"]])
    # A title is written in capitals throughout, and would teach that every word is a name.
    title = re.compile(r"^Title:.*$", re.MULTILINE)
    return {name: sorted(title.sub("", text) for text in texts) for name, texts in counted.items()}


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def attested(pattern: re.Pattern[str], sources: dict[str, list[str]]) -> Counter[str]:
    """Count the sources in which each word form is found by *pattern*'s first group."""
    counted: Counter[str] = Counter()
    for texts in sources.values():
        counted.update({match[1].lower() for text in texts for match in pattern.finditer(text)})
    return counted


def derive(sources: dict[str, list[str]]) -> dict[str, object]:
    """Train on every source and keep what carries over; see the module's docstring."""
    trainer = PunktTrainer()
    words: Counter[str] = Counter()
    for name in sorted(sources):
        for text in sources[name]:
            trainer.train(text, finalize=False)
            words.update(word.lower() for word in re.findall(r"[^\W\d_][\w'’-]*", text))
    trainer.finalize_training()
    learned = trainer.get_params()

    inside = attested(re.compile(r"\b([A-Za-z]+)\.(?=[,;]|\s[a-z\d(])"), sources)
    begins = attested(re.compile(r"[a-z]{3}[.?!]\s+([A-Z][a-z]*)\b"), sources)
    abbreviations = {*ABBREVIATIONS.split(), *NEVER_FINAL.split(), *TITLES.split()}
    abbreviations |= {t for t in learned.abbrev_types if inside[t] >= ABBREVIATION_SOURCES}
    abbreviations -= set(BEFORE_SMALL.split())
    starters = set(STARTERS.split())
    starters |= {t for t in learned.sent_starters if begins[t] >= STARTER_SOURCES}
    orthography: dict[str, list[str]] = defaultdict(list)
    for word, flags in sorted(learned.ortho_context.items()):
        if flags & _LOWER_CASE_FLAGS and words[word] >= MINIMUM_COUNT:
            orthography[str(flags)].append(word)
    return {
        "version": VERSION,
        "language": "english",
        "derived_from": SOURCES,
        "derived_by": "training/punkt.py",
        "abbreviations": _line(abbreviations),
        "before_small": _line(BEFORE_SMALL.split()),
        "never_final": _line(NEVER_FINAL.split()),
        "numbered": _line(NUMBERED.split()),
        "titles": _line(TITLES.split()),
        "starters": _line(starters),
        "orthography": {flags: _line(counted) for flags, counted in sorted(orthography.items())},
    }


def _line(words: Iterable[str]) -> str:
    return " ".join(sorted(set(words)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    parameters = derive(texts_by_source(arguments.data))
    text = json.dumps(parameters, ensure_ascii=False, indent=1) + "\n"
    arguments.output.write_text(text, encoding="utf-8")
    print(f"{arguments.output.name}: {len(text.encode()) / 1000:.0f} kB")
    for key in ("abbreviations", "starters"):
        print(f"  {len(str(parameters[key]).split()):5} {key}")


if __name__ == "__main__":
    main()
