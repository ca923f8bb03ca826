"""Is the language kept? By script, and among languages in Latin letters by their small words."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from corl.diversity.rephrase.drawings import without_drawings

_LETTERS_READ = 4_000
_FEWEST_LETTERS = 12
_FEWEST_HITS = 3

_FORMULA = re.compile(
    r"\$\$.*?\$\$|\$[^$]*\$|\\\[.*?\\\]|\\\(.*?\\\)|\\begin\{(\w+)\*?\}.*?\\end\{\1\*?\}|\\[A-Za-z]+",
    re.S,
)
_WORD = re.compile(r"[^\W\d_]+")
_SMALL_WORDS = {
    "English": "the of and to is in that what find how are with for if by an be this which each "
    "from it as has have value many much when two on at can do does no not his her he she they "
    "all than there more per after then will so",
    "German": "der die das und ist von zu den mit eine ein wie für sich auf nicht dem des wenn "
    "werden einer sind man wird viele welche bestimme berechne finde im",
    "French": "le la les et est de des un une que pour dans du avec qui sur par quel quelle "
    "combien sont on au ce si trouver calculer déterminer valeur",
    "Spanish": "el la los las es de un una que en para con por del cuál cuántos son se al si "
    "como su hallar encuentra calcula valor qué",
    "Italian": "il lo la gli le di un una che per con del della quanti sono si al se come "
    "trova calcola valore nel dei quale",
    "Portuguese": "os as de um uma que em para com por do da quantos são se ao como "
    "encontre calcule valor qual no na",
    "Dutch": "de het een en is van in te dat wat hoeveel met voor op zijn als bij door welke wordt "
    "bepaal bereken vind aan er",
}
_LANGUAGES = {name: frozenset(words.split()) for name, words in _SMALL_WORDS.items()}
_OWNERS = {
    word: [name for name, small in _LANGUAGES.items() if word in small]
    for words in _LANGUAGES.values()
    for word in words
}


def language_fault(original: str, rewritten: str) -> str | None:
    """The two languages, where they differ beyond doubt; None too where a text says too little."""
    before, after = language(original), language(rewritten)
    if before is None or after is None or before == after:
        return None
    # A Latin text whose small words decide nothing is no other language.
    if "Latin" in (before, after) and {before, after} & {"Latin", *_LANGUAGES} == {before, after}:
        return None
    return f"{before} became {after}"


def language(text: str) -> str | None:
    """English, German, ...; or the script, such as Cyrillic; None for a text that is all formula.

    Japanese is Han with kana: texts in Han letters alone are called Han.
    """
    words = _WORD.findall(_FORMULA.sub(" ", without_drawings(text)))
    letters = "".join(words)[:_LETTERS_READ]
    scripts = Counter(_script(letter) for letter in letters)
    if scripts["Hiragana"] + scripts["Katakana"] > len(letters) / 20:
        return "Japanese"
    if len(letters) < _FEWEST_LETTERS and not (letters and scripts["Latin"] == 0):
        return None
    script = scripts.most_common(1)[0][0]
    if script != "Latin":
        return script
    # A letter alone is more often a variable than a word.
    lower = [word.lower() for word in words if len(word) > 1]
    hits = Counter(name for word in lower for name in _OWNERS.get(word, ()))
    # A word that several languages share says less.
    weights = {
        name: sum(1 / len(_OWNERS[word]) for word in lower if word in small)
        for name, small in _LANGUAGES.items()
    }
    best, second = sorted(weights, key=lambda name: -weights[name])[:2]
    is_clear = hits[best] >= _FEWEST_HITS and weights[best] > 1.3 * weights[second]
    return best if is_clear else "Latin"


def _script(letter: str) -> str:
    name = unicodedata.name(letter, "")
    first = name.partition(" ")[0].title()
    return {"Cjk": "Han", "Fullwidth": "Latin", "Mathematical": "Latin"}.get(first, first)
