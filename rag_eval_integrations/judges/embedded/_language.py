"""Detection of calls that are not in English, first by script and then by function words.

Stems, function words and the refusal patterns of the features are English, so that the scores of a
call in another language would have no meaning. Question, response and documents are tested one by
one (an English response cannot be compared with German documents by its words) and as a whole. In
short text one sign of another language is enough where nothing is clearly English; text without any
sign, such as a name or numbers, is accepted.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

from rag_eval_integrations.judges.embedded._words import FUNCTION_WORDS, listed, sections

SAMPLED_CHARACTERS = 600
"""Limit on the characters that are read of one part of a call: some 100 words, in English about 40
of them function words. A limit of 20,000 doubled the judge's time and changed no result."""
_SAMPLED_OF_ONE = 200

# Letters beyond Latin and its extensions; "ª" and "µ" occur in every language.
_BEYOND_LATIN = re.compile(r"[^\W\d_\u0000-\u02ff\u1d00-\u1eff\u2c60-\u2c7f\ua720-\ua7ff]")
_LETTER = re.compile(r"[^\W\d_]")
# "w1" and "5e" are not words: their letters alone would look Polish or Portuguese.
_WORD = re.compile(r"(?<![^\W_])[^\W\d_]++(?:'[^\W\d_]++)?(?!\d)")
_ASCII_WORD = re.compile(r"(?<![a-z0-9])[a-z]++(?:'[a-z]++)?(?![0-9])")
"""The same for lower-case text without accents: 18 µs for 600 characters instead of 33."""

# The commonest words of languages in Latin script, without those that are English words too.
_OTHERS = sections("""
German: der das und ist nicht ein eine einen einem einer mit von zu für auf dem des sich auch wird
 werden sind oder als wie bei nach durch über aus kann im zum zur ich sie wir was wer welche
French: le la les des du un une et est dans que qui pour par pas sur avec sont ce cette il elle nous
 vous ou aux au ne plus être été ses leur mais comme c'est d'un d'une quelle quel quels sans très
Spanish: el la los las de del un una y es en que por para con no se su al lo como más son este esta
 fue pero sus le ha está hay también entre cuando muy cuál qué cómo dónde quién
Italian: il lo la gli le di del della dei che è un una e per con non si da nel nella sono come più
 anche questo questa al alla ha ma dal dalla delle essere qual cosa
Portuguese: o os as de do da dos das um uma e é em no na que por para com não se ao mais como são
 foi sua seu pelo pela também está ser isso
Dutch: de het een en van dat niet zijn voor op te aan ook er maar om bij naar wordt worden deze dit
 kan uit als door heeft hebben wat hij zij we
Swedish: och det att en ett är som på för av med inte till har de om kan från var eller så vid också
 när
Danish: og det at en et er som på for af med ikke til har de om kan fra eller så ved også når der
Norwegian: og det å en et er som på for av med ikke til har de om kan fra eller så ved også når
Polish: i w na z że się nie jest do to jak o po przez dla ale są oraz od za który która które może
 być ten tym
Czech: a v na se že je to z do s jako pro ale po jsou od za který která které může být tak nebo když
Romanian: și în de la cu pe nu este un o care că din pentru sunt mai ce sau prin fi au fost
Turkish: ve bir bu için ile da de çok olarak daha gibi olan ne değil ama kadar sonra var veya ise
 her
Finnish: ja on ei että se hän oli ovat joka kun mutta myös niin tai kuin voi sen tämä ole mukaan
Hungarian: a az és egy hogy nem is van meg ez csak volt de el már mint vagy ha azt kell
Indonesian: dan yang di ini itu dengan untuk dari pada adalah tidak dalam akan ke juga atau oleh
 sebagai dapat karena
Vietnamese: là và của có không được trong cho với các một những này đã để người khi từ về
Swahili: na ya wa kwa ni katika la za hii cha kama kuwa si lakini hiyo yake
""")
_FOREIGN = {name: listed(text) - FUNCTION_WORDS for name, text in _OTHERS.items()}
# Parts of names, such as "Juan de la Cruz" and "Ludwig van Beethoven", do not indicate a language.
_PARTICLES = listed("da de del der des di dos du e el la las le les los van von y")


_ASKING = listed("""
wann warum wieso wieviel wo wer wie welche wem wohin welcher welches kostet gibt combien quand où
pourquoi comment quelles cuánto cuándo cuáles cuántas cuánta cuántos cuanto cuando donde cuál qué
cómo quién quien cuales porqué quanto quando dove quanti quante perché quale quali onde quem quais
wanneer waar waarom welke hoeveel vad hur vem varför vilken hvad hvornår hvor hvem hvorfor hvilken
hva ile kiedy gdzie kto dlaczego jaki jaka jakie kolik kdy kde kdo proč jaký nerede nasıl neden
hangi paljonko milloin missä kuka miten miksi mikä mennyi mennyibe mikor miért hogyan melyik cât
când unde cine berapa kapan siapa mengapa bagaimana dimana nhiêu đâu gì ngapi wapi nani nini
""")
"""Words that questions begin with: signs of another language also with a capital letter."""
_LOANED = listed("""
door care come mint par plus pour pro son till con non kan akan dan est sur pas mais café cafés
crème brûlée jalapeño jalapeños naïve résumé façade déjà fiancé fiancée cliché clichés purée sauté
sautéed soufflé entrée entrées décor piñata protégé exposé pâté rosé latté voilà fête crêpe crêpes
née ten volt ale hay comment com matinée à über smörgåsbord açaí señor señora
""")
"""Words of other languages that English has too: no sign by themselves."""
_SIGNS = frozenset().union(_ASKING, *_FOREIGN.values()) - _PARTICLES - _LOANED - FUNCTION_WORDS
_CLEARLY_ENGLISH = FUNCTION_WORDS.difference(*[text.split() for text in _OTHERS.values()])
_OTHER_SCRIPT = re.compile(f"{_BEYOND_LATIN.pattern}{{2}}")

_FEW = 8
"""Number of words below which a part may be just a foreign title, so that no language is named."""
_MANY = SAMPLED_CHARACTERS
_SCRIPTS = listed(
    "arabic armenian bengali cherokee coptic cyrillic devanagari ethiopic georgian greek gujarati "
    "gurmukhi hebrew kannada khmer lao malayalam mongolian myanmar oriya sinhala syriac tamil "
    "telugu thaana thai tibetan"
)
_LANGUAGES = {
    "cjk": "Chinese or Japanese",
    "hiragana": "Japanese",
    "katakana": "Japanese",
    "hangul": "Korean",
}
_UNKNOWN = "not English"


def not_covered(question: str, response: str, documents: Sequence[str]) -> str | None:
    """Describe a part of a call that is not English, with its language or script; None without one.

    In Latin script, a part of fewer than eight words is refused only when it holds no English
    function word (unlike "Who wrote La vida es sueño?"). A response of fewer than eight words may
    be a title, and is tested only as part of the whole call, unless it ends as a sentence does and
    none of its words is in the documents. Documents are refused when more of them are in another
    language than in English: one passage in Spanish is no reason.
    """
    parts = (("question", question), ("response", response), ("documents", _sample(documents)))
    for name, text in parts:
        language = _foreign_language(text, may_be_a_title=name == "response")
        if language is None:
            if _is_strange(text) and not (name == "response" and _may_be_a_title(text, documents)):
                language = _UNKNOWN
            else:
                continue
        if name == "documents" and _as_many_are_english(documents):
            return None
        return f"the {name} (looks {language})"
    if len(question) + len(response) > SAMPLED_CHARACTERS // 2:
        return None  # long enough for the tests above
    whole = _sample([question, response, *documents])
    language = _foreign_language(whole) or (_UNKNOWN if _is_strange(whole) else None)
    return None if language is None else f"the call (looks {language})"


def foreign(text: str) -> str | None:
    """Return the language or script of a text that is clearly not English, else None.

    None also for text of fewer than four words in Latin script, and for text without letters.
    """
    return _language_and_counts(text)[0]


def _as_many_are_english(documents: Sequence[str]) -> bool:
    """Tell whether at least as many documents are clearly English as are in another language."""
    looks = [_language_and_counts(text[:_SAMPLED_OF_ONE]) for text in documents]
    strange = sum([language is not None for language, _, _ in looks])
    return sum([english >= 0.2 * words > 0 for _, words, english in looks]) >= max(1, strange)


def _foreign_language(text: str, *, may_be_a_title: bool = False) -> str | None:
    """Return the foreign language of a text; None for English.

    A short text without an English word is of an unknown language, unless it may be a title.
    """
    language, words, english = _language_and_counts(text)
    if language is None or words >= _FEW:
        return language
    return None if english or may_be_a_title else _UNKNOWN


def _is_strange(text: str) -> bool:
    """Tell whether a text has a sign of another language, and no word that is clearly English.

    Signs are function words and question words of other languages, and words with letters that
    English does not have; capitalised, only question words, since others are parts of names. Of
    eight words or more, two have to be signs.
    """
    if not _CLEARLY_ENGLISH.isdisjoint(text[:_SAMPLED_OF_ONE].lower().split()):
        return False  # nearly always, and at once
    text = unicodedata.normalize("NFKC", text[:SAMPLED_CHARACTERS]).replace("μ", "")
    words = _WORD.findall(text)
    if not _CLEARLY_ENGLISH.isdisjoint(map(str.lower, words)):
        return False
    if _OTHER_SCRIPT.search(text) and not re.search("[A-Za-z]", text):
        return True
    signs = {
        word
        for word in words
        if len(word) > 1
        and (word in _SIGNS or word.lower() in _ASKING or not word.isascii())
        and (word.islower() or word.lower() in _ASKING)
        and word not in _LOANED
    }
    return len(signs) >= (1 if len(words) < _FEW else 2)


def _may_be_a_title(response: str, documents: Iterable[str]) -> bool:
    """Tell whether a response is not a sentence, or has a word from a document."""
    if not response.rstrip().endswith((".", "!", "?", "。", "！", "？", "।", "؟")):
        return True
    known = {word for text in documents for word in _WORD.findall(text.lower())}
    return not known.isdisjoint(word for word in _WORD.findall(response.lower()) if len(word) > 3)


def _language_and_counts(text: str) -> tuple[str | None, int, int]:
    """Return a text's foreign language or script, its number of words and of English words.

    The language is None for English and for fewer than four words; another script alone counts as
    `_MANY` words.
    """
    text = text[:SAMPLED_CHARACTERS]
    if text.isascii():
        words = _ASCII_WORD.findall(text.lower())
    else:
        # Full-width and mathematical letters count as letters.
        text = unicodedata.normalize("NFKC", text)
        other = _BEYOND_LATIN.findall(text)
        # A few Greek letters in a formula do not make the text Greek.
        if len(other) >= 6 and len(other) > 0.4 * len(_LETTER.findall(text)):
            return _script(other), _MANY, 0
        words = _WORD.findall(text.lower().replace("’", "'"))
    if len(words) < 4:
        return None, len(words), 0
    english = sum(map(FUNCTION_WORDS.__contains__, words))
    language = None if english >= 0.2 * len(words) else _language_by_words(words, english)
    return language, len(words), english


def _language_by_words(words: list[str], english: int) -> str | None:
    """Return the language whose words stand out in a text; None for English or too few.

    None also if the signs are single letters or particles of names alone, or, of eight words or
    more, one word again and again. `english` is the number of English function words among them.
    """
    hits, language = max(
        (sum(map(own.__contains__, words)), name) for name, own in _FOREIGN.items()
    )
    if hits < 2 or hits <= 1.5 * english or hits < 0.08 * len(words):
        return None
    signs = _FOREIGN[language].intersection(words)
    # Two signs, not one again and again ("Roe v. Wade"); a letter by itself may be an initial.
    if max(map(len, signs)) < 2 or (len(signs) < 2 and len(words) >= _FEW):
        return None
    return None if _PARTICLES.issuperset(signs) else language


def _sample(texts: Iterable[str]) -> str:
    """Join the beginnings of the texts, up to `SAMPLED_CHARACTERS` in all."""
    taken: list[str] = []
    left = SAMPLED_CHARACTERS
    for text in texts:
        if left <= 0:
            break
        taken.append(text[: min(left, _SAMPLED_OF_ONE)])
        left -= len(taken[-1])
    return "\n".join(taken)


def _script(letters: Sequence[str]) -> str:
    """Name a script by the commonest first word of the characters' names.

    "CYRILLIC SMALL LETTER A" → "Cyrillic".
    """
    names = [unicodedata.name(char, "").lower().split(" ")[0].split("-")[0] for char in letters]
    name = max(sorted(set(names)), key=names.count)
    return name.capitalize() if name in _SCRIPTS else _LANGUAGES.get(name, _UNKNOWN)
