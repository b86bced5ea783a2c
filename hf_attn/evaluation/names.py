# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Find the names of a sentence that its translation has lost.

A name is what is capitalised in the midst of a sentence of prose. In Latin letters it is kept if a word of the
translation begins alike ("London", "Londres"), or if the translation has a capitalised word of its own that no other
name explains ("Germany", "Allemagne"). In Korean it is kept if a word has its first consonants ("Boston", "보스턴").
The first word of a sentence is not looked at, since it is capitalised whatever it is. Read `failures.py` next.
"""

import re
import unicodedata

# Capitalised in English and not in French or Italian, or translated: days and months, titles, languages, peoples.
_NO_NAMES = re.compile(
    r"The|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?|January|February|March|April|May|June|July|August|September|October"
    r"|November|December|Mrs|Sir|Mom|Mommy|Dad|Miss|Madam|Mother|Father|Grandma|Grandpa|Uncle|Aunt|Doctor|Professor|Mme"
    r"|Mlle|King|Queen|Prince|Princess|President|Lord|God|Bible|Christmas|Easter|Santa|Earth|Moon|Sun|Internet|Asia"
    r"|America|United|States|Scotland|Day|Year|Street|Dieu|Noël|Saint\w*|Arab\w*|Jew\w*"
    r"|\w*(?:s|ese|ish|ian|ean|ican|ench|utch|men|man|reek|wiss|ist|ism)"
)
_KOREAN_OTHERS = re.compile(r"Japan|China|Korea|England|Britain|Germany|Australia|Thailand|Taiwan|India|Europe|Tokyo")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_RUN = re.compile(r"(?<![\w'’_.-])[^\W\d_a-zà-ÿ가-힣][^\W\d_]+(?:[-\s][^\W\d_a-zà-ÿ가-힣][^\W\d_]+)*(?![\w_(]|\.\w)")
_DETERMINER = re.compile(r"\b(?:the|an?|my|your|his|her|our|their|any|every|each|un|une|una|uno) $", re.I)
# Words beside which a capitalised word is a label of a program, and translated as any other word.
_BEFORE_LABEL = re.compile(
    r"\b(?:click|choose|press|select|mark|unmark|check|uncheck|enable|hit|hold down|use|type|set) $", re.I
)
_AFTER_LABEL = re.compile(
    r" (?:dialog|button|icon|command|key|function|box|tab|field|option|menu|bar|area|pane|mode|list|window|page|style"
    r"|view|chart|method|property|format|value|size|date|time|line|file|object|section|\d)"
)
# Headings, menus ("Tools - Options"), keys ("Ctrl+C") and formulas capitalise what they like.
_NO_PROSE = re.compile(r" [-–/] |[|>;=\\]|\w\+\w")


def lost_names(source: str, text: str, target_lang: str | None) -> list[str]:
    """Find the names that a translation has lost.

    Args:
        source: a sentence in Latin letters.
        text: its translation.
        target_lang: the language of the translation, "ko" for Korean.

    Returns:
        The names, each as far as it stands together ("New York").
    """
    names = _names(source)
    if target_lang == "ko":
        acronyms = [[word] for word in re.findall(r"(?<![\w.])[A-Z]{3,}(?![\w(.])", source) if not source.isupper()]
        return [" ".join(name) for name in names + acronyms if not _kept_in_korean(name, text)]
    words = [_plain(word) for word in _WORD.findall(text)]
    lost = [
        name
        for name in names
        if not any(word.startswith(_plain(part)[:3]) or _plain(part)[:4] in word for word in words for part in name)
    ]
    beginnings = tuple(_plain(part)[:3] for name in names for part in name)
    text = re.sub(r"(?<=\w)['’](?=\w)", " ", text)  # l'Allemagne
    others = [
        match.group()
        for match in _RUN.finditer(text)
        if not _begins_sentence(text, match.start()) and not _plain(match.group()).startswith(beginnings)
    ]
    return [" ".join(name) for name in lost[len(others) :]]


def _names(text: str) -> list[list[str]]:
    if not re.search(r"[.!?…]\W*$", text) or _NO_PROSE.search(text):
        return []
    names = []
    for match in _RUN.finditer(text):
        before, parts = text[: match.start()], re.split(r"[-\s]", match.group())
        if before[-1:] in tuple('"“«‘'):  # a title
            continue
        if _begins_sentence(text, match.start()):
            before, parts = f"{before}{parts[0]} ", parts[1:]
        elif _DETERMINER.search(before):
            continue
        if _BEFORE_LABEL.search(before) or _AFTER_LABEL.match(text, match.end()):
            continue
        parts = [part for part in parts if len(part) > 2 and not part.isupper() and not _NO_NAMES.fullmatch(part)]
        if parts:
            names.append(parts)
    return names


def _begins_sentence(text: str, position: int) -> bool:
    before = text[:position].rstrip()
    return not before or not (before[-1].isalnum() or before[-1] in ",'’)&")


def _plain(word: str) -> str:
    """Drop capitals and accents."""
    return "".join(character for character in unicodedata.normalize("NFD", word.lower()) if character.isalpha())


_INITIALS = "g kk n d tt r m b pp s ss  j jj ch k t p h".split(" ")
_FINALS = " g gg gs n nj nh d l lg lm lb ls lt lp lh m b bs s ss n j ch k t p h".split(" ")
_CLASSES = str.maketrans("gcqxdlbfvzj", "kkkktrpppss", "aeiouwyh")


def _kept_in_korean(name: list[str], text: str) -> bool:
    if any(part.lower() in text.lower() or _KOREAN_OTHERS.fullmatch(part) for part in name):
        return True
    words = [_consonants("".join(map(_romanise, word))) for word in re.findall(r"[가-힣]+", text)]
    # the r of "Park" is silent in 파크, that of "Marco" sounds in 마르코
    sounds = [_consonants(each) for part in name for each in (part.lower(), re.sub("r(?![aeiouy])", "", part.lower()))]
    return any(sound[:2] in word for sound in sounds for word in words)


def _romanise(syllable: str) -> str:
    """Write the consonants of a syllable of Hangul, and "a" for its vowel."""
    number = ord(syllable) - ord("가")
    return _INITIALS[number // 588] + "a" + _FINALS[number % 28]


def _consonants(word: str) -> str:
    """Reduce a word to the kinds of its consonants, those that Korean keeps apart."""
    for letters, sound in (("ch", "s"), ("sh", "s"), ("ph", "p"), ("th", "s"), ("ck", "k"), ("gh", ""), ("ng", "n")):
        word = word.replace(letters, sound)
    word = re.sub(r"c(?=[eiy])|gi(?=[aou])", "s", word)
    return re.sub(r"(.)\1+", r"\1", word.translate(_CLASSES))
