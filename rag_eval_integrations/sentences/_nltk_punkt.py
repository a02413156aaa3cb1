"""Punkt parameters of other languages than English, from `punkt_tab` data on this machine.

NLTK's data folders are searched without importing NLTK, which takes seconds.
"""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from rag_eval_integrations.sentences._decision import Parameters

_LLAMA_INDEX_DATA = ("core", "_static", "nltk_cache", "tokenizers")
_FORMS = ("punkt_tab", "punkt_tab.zip")


def places() -> Iterator[tuple[str, str]]:
    """Yield the `punkt_tab` folders and zip files of this machine, the user's own first.

    Each comes as the name of its data in the splitter's name, and its path.
    """
    for root in nltk_folders():
        for file in _FORMS:
            if (path := Path(root, "tokenizers", file)).exists():
                yield "nltk_data", str(path)
    try:
        spec = find_spec("llama_index")  # a namespace package: this imports nothing
    except ValueError:  # a module was put into `sys.modules` by hand
        return
    for root in (spec and spec.submodule_search_locations) or ():
        for file in _FORMS:
            if (path := Path(root, *_LLAMA_INDEX_DATA, file)).exists():
                yield "llama-index-core", str(path)


def nltk_folders() -> list[str]:
    """Return NLTK's data folders in order, as in `nltk.data.path`.

    If the app has imported NLTK, this is that list itself, which the app may have extended.
    Otherwise these are the documented folders: those in `NLTK_DATA`, in the home folder, below
    `sys.prefix`, and the system's.
    """
    imported = getattr(sys.modules.get("nltk.data"), "path", None)
    if imported is not None:
        return [str(folder) for folder in imported]
    own = [os.path.expanduser(x) for x in os.environ.get("NLTK_DATA", "").split(os.pathsep) if x]
    if "APPENGINE_RUNTIME" not in os.environ and os.path.expanduser("~/") != "~/":
        own.append(os.path.expanduser("~/nltk_data"))
    below = (sys.prefix, os.path.join(sys.prefix, "share"), os.path.join(sys.prefix, "lib"))
    if sys.platform.startswith("win"):
        system = (os.environ.get("APPDATA", "C:\\"), "C:\\", "D:\\", "E:\\")
    else:
        system = ("/usr/share", "/usr/local/share", "/usr/lib", "/usr/local/lib")
    return own + [os.path.join(folder, "nltk_data") for folder in (*below, *system)]


def languages(path: str) -> set[str]:
    """Return the languages that a `punkt_tab` folder or zip file holds."""
    if not path.endswith(".zip"):
        return {file.parent.name for file in Path(path).glob("*/ortho_context.tab")}
    with zipfile.ZipFile(path) as archive:
        parts = [name.split("/") for name in archive.namelist()]
    return {part[-2] for part in parts if part[-1] == "ortho_context.tab" and len(part) == 3}


def parameters(language: str, path: str) -> Parameters:
    """Read the parameters of one language from a `punkt_tab` folder or zip file.

    Raises:
        OSError: one of the four files is missing in a folder.
        KeyError: one of the four files is missing in a zip file.
        ValueError: a file does not have the expected format.
    """
    read = _reader(path, language)
    pairs = (line.split("\t") for line in read("collocations.tab"))
    contexts = (line.rsplit("\t", 1) for line in read("ortho_context.tab"))
    return Parameters(
        abbreviations=frozenset(read("abbrev_types.txt")),
        starters=frozenset(read("sent_starters.txt")),
        collocations=frozenset((pair[0], pair[1]) for pair in pairs),
        contexts={word: int(flags) for word, flags in contexts},
    )


def _reader(path: str, language: str) -> Callable[[str], list[str]]:
    """Return a function that reads the lines of one of a language's files."""

    def read(file: str) -> list[str]:
        if path.endswith(".zip"):
            with zipfile.ZipFile(path) as archive:
                text = archive.read(f"punkt_tab/{language}/{file}").decode("utf-8")
        else:
            text = Path(path, language, file).read_text(encoding="utf-8")
        return [line for line in text.split("\n") if line]

    return read
