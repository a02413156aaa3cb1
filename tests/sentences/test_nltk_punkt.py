"""Punkt data of other languages: where it is looked for, and what is read."""

from __future__ import annotations

import ntpath
import runpy
import sys
import zipfile
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace

import nltk.data  # type: ignore[import-untyped]  # nltk has no stubs
import pytest

from rag_eval_integrations.sentences import _nltk_punkt as punkt_tab
from rag_eval_integrations.sentences.punkt import Punkt


def split(text: str, splitter: Punkt) -> list[str]:
    return [text[start:end] for start, end in splitter.spans(text)]


FILES = {
    "abbrev_types.txt": "hr\nnr\n",
    "sent_starters.txt": "der\n",
    "collocations.tab": "str\tchen\n",
    "ortho_context.tab": "der\t46\nhaus\t4\n",
}


@pytest.fixture(params=["folder", "zip"])
def german(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of the user's with a small German punkt_tab, as a folder or a zip file."""
    tokenizers = tmp_path / "tokenizers"
    tokenizers.mkdir()
    if request.param == "zip":
        with zipfile.ZipFile(tokenizers / "punkt_tab.zip", "w") as archive:
            for name, text in FILES.items():
                archive.writestr(f"punkt_tab/german/{name}", text)
    else:
        (tokenizers / "punkt_tab" / "german").mkdir(parents=True)
        for name, text in FILES.items():
            (tokenizers / "punkt_tab" / "german" / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(punkt_tab, "nltk_folders", lambda: [str(tmp_path)])
    monkeypatch.setattr(punkt_tab, "find_spec", lambda name: None)
    return tmp_path


def test_the_users_own_data_is_read_as_folder_and_as_zip(german: Path) -> None:
    """Abbreviations and collocations of the files are used, and the name says where they were."""
    splitter = Punkt(language="german")

    assert splitter.name == "punkt-german(nltk_data)@1"
    assert split("Hr. Meier kam. Er ging.", splitter) == ["Hr. Meier kam.", "Er ging."]
    assert split("Die Str. chen ist es. Der Hr. Der kam.", splitter) == [
        "Die Str. chen ist es.",
        "Der Hr.",
        "Der kam.",
    ]


def test_a_language_without_data_is_an_error_at_construction(german: Path) -> None:
    """It names the field, the value, what was found, and where."""
    with pytest.raises(ValueError, match=r"`language` = 'klingon'.*Also found: .*german"):
        Punkt(language="klingon")


def test_no_data_at_all_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message then tells where it looked: empty folders hold no data."""
    namespace = ModuleSpec("llama_index", None, is_package=True)
    namespace.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(punkt_tab, "nltk_folders", lambda: [str(tmp_path)])
    monkeypatch.setattr(punkt_tab, "find_spec", lambda name: namespace)

    with pytest.raises(
        ValueError, match=r"`language` = 'german'.*no punkt_tab data in NLTK's data"
    ):
        Punkt(language="german")


def test_a_module_without_a_spec_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """A `llama_index` put into `sys.modules` by hand has no data, and is no crash."""

    def no_spec(name: str) -> None:
        raise ValueError(f"{name}.__spec__ is None")

    monkeypatch.setattr(punkt_tab, "nltk_folders", list)
    monkeypatch.setattr(punkt_tab, "find_spec", no_spec)

    with pytest.raises(ValueError, match="`language` = 'german'"):
        Punkt(language="german")


def test_data_of_llama_index_is_found_without_importing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """German of llama-index-core's wheel, under its own name."""
    monkeypatch.setattr(punkt_tab, "nltk_folders", list)
    if not any(name == "llama-index-core" for name, _ in punkt_tab.places()):
        pytest.skip("llama-index-core is not installed")
    splitter = Punkt(language="german")

    assert splitter.name == "punkt-german(llama-index-core)@1"
    assert split("Am 3. Mai kam Dr. Meier. Er ging.", splitter) == [
        "Am 3. Mai kam Dr. Meier.",
        "Er ging.",
    ]


@pytest.mark.parametrize(
    "environment",
    [
        {"HOME": "/home/somebody"},
        {"HOME": "/home/somebody", "NLTK_DATA": "/one:/two::three"},
        {"HOME": "/home/somebody", "APPENGINE_RUNTIME": "python"},
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="HOME and ':' are not Windows's")
def test_nltks_folders_are_those_of_nltk(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list that `nltk.data` makes when it is imported, without it."""
    for name in ("HOME", "NLTK_DATA", "APPENGINE_RUNTIME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    theirs = runpy.run_path(nltk.data.__file__)["path"]
    monkeypatch.setitem(sys.modules, "nltk.data", None)

    assert punkt_tab.nltk_folders() == theirs


def test_what_an_app_adds_to_nltks_folders_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where NLTK is imported anyway, its own list is used."""
    monkeypatch.setattr(nltk.data, "path", ["/added"])

    assert punkt_tab.nltk_folders() == ["/added"]


def test_nltks_folders_on_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """As NLTK documents them for Windows."""
    monkeypatch.setattr(punkt_tab, "sys", SimpleNamespace(platform="win32", prefix="P", modules={}))
    windows = SimpleNamespace(path=ntpath, pathsep=";", environ={"APPDATA": "A"})
    monkeypatch.setattr(punkt_tab, "os", windows)

    folders = punkt_tab.nltk_folders()

    below = ["P", "P\\share", "P\\lib", "A", "C:", "D:", "E:"]
    assert folders[-7:] == [f"{folder}\\nltk_data" for folder in below]
