# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Find the numbers of a sentence, in digits or words, in English, French, Italian and Korean.

`numbers_in` reads strictly, what is a number for sure; `mentions` reads generously, whatever may stand for a number:
"two" is a number, and "deux", "2", "deuxième", "double" and "tous les deux" mention it. Whoever asks for the first and
is content with the second finds lost numbers without accusing free translations. Read `failures.py` next.
"""

import functools
import re
import unicodedata

_UNITS = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen",
    "fr": "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept "
    "dix-huit dix-neuf",
    "it": "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici "
    "diciassette diciotto diciannove",
    "ko": "영 일 이 삼 사 오 육 칠 팔 구",
}
_TENS = {
    "en": "twenty thirty forty fifty sixty seventy eighty ninety",
    "fr": "vingt trente quarante cinquante soixante",
    "it": "venti trenta quaranta cinquanta sessanta settanta ottanta novanta",
}
_MAGNITUDES = {
    "en": {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12},
    "fr": {"cent": 100, "mille": 10**3, "million": 10**6, "milliard": 10**9, "billion": 10**12},
    "it": {"cento": 100, "mila": 10**3, "milion": 10**6, "miliard": 10**9, "bilion": 10**12},
    "ko": {"십": 10, "백": 100, "천": 10**3, "만": 10**4, "백만": 10**6, "천만": 10**7, "억": 10**8, "조": 10**12},
}
# Words that are something else as often as a number.
_AMBIGUOUS = {"en": {"one", "second"}, "fr": {"un", "neuf"}, "it": {"uno", "sei"}, "ko": set()}
# Before and after one of these, a word for a number is part of a larger one, or need not be kept.
_BEFORE = {
    "en": "hundred, hundred and, the, you, these, those, your, us",
    "fr": "cent, cents, mille, les, ces, vous, nous",
    "it": "cento, mille, i, gli, le, questi, queste, voi, noi",
}
_AFTER = {"en": "and a half|miles?|feet|foot|inch|pound|yard|of us|of you|of them", "fr": "et demi", "it": "e mezz"}
# Words that mention a number without being its name; longer words that begin like them do so too.
_RELATED = {
    "en": "1 a an once first single only, 2 second both twice pair couple double half, 3 third triple thrice, 4 fourth "
    "quarter, 5 fifth, 8 eighth, 9 ninth, 12 noon midnight midday dozen twelfth, 14 fortnight, 15 quarter fortnight, "
    "20 twentieth, 30 half thirtieth",
    "fr": "1 une premi seul, 2 second double doubler paire couple demi moitié ensemble jumea jumelle bidim, 3 tiers "
    "triple tridim, 4 quart, 7 semaine, 8 semaine, 9 neuvième, 10 dizaine décennie, 12 midi minuit douzaine, 14 quinz, "
    "15 quart, 20 vingtaine, 30 demi trentaine, 45 quart, 60 soixantaine, 70 septante, 90 nonante, 100 centaine "
    "siècle, 1000 millier",
    "it": "1 un una prim sol, 2 second doppi coppia paio mezz entramb ambedue metà insieme gemell bidim, 3 terz tripl "
    "tridim, 4 quart, 5 quint, 6 sest, 7 settim, 8 ottav, 9 nono nona, 10 decim decin decennio, 12 mezzogiorno "
    "mezzanotte dozzin, 14 quindic, 15 quart, 20 ventin, 30 mezz trentin, 45 quarti, 100 centina secolo, 1000 migliai",
    "ko": "",
}
_MONTHS = {  # in Korean they have numbers
    "en": "january february march april may june july august september october november december",
    "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
}
_KOREAN_ONES = {
    1: "하나 한 첫", 2: "둘 두 양 쌍 이틀", 3: "셋 세 석 서너 사흘", 4: "넷 네 넉 서너 나흘",
    5: "다섯 대여섯 닷새", 6: "여섯", 7: "일곱", 8: "여덟", 9: "아홉",
}  # fmt: skip
_KOREAN_TENS = {1: "열", 2: "스물 스무", 3: "서른", 4: "마흔", 5: "쉰", 6: "예순", 7: "일흔", 8: "여든", 9: "아흔"}
_KOREAN_OTHERS = {12: "정오 자정", 15: "보름", 30: "반", 100: "백", 1000: "천", 10**4: "만", 10**8: "억"}
# A single Sino-Korean syllable (이, 일, 오) is a number only before one of these.
_KOREAN_COUNTERS = (
    "년|월|일|분|초|원|주|층|번|호|권|세|인|개|학년|킬로|미터|센티|그램|리터|달러|유로|엔|도|퍼센트|프로|차|배|등|명|시|장|대|회|점|단|급|종|"
    "가지|살|달|계절"
)
# Numbers in digits: groups of three may stand apart, decimals and versions have points or commas.
_DIGITS = re.compile("\\d{1,3}(?:[.,'’ \u00a0\u2009\u202f]\\d{3})+(?!\\d)(?:[.,]\\d+)?|\\d+(?:[.,]\\d+)*")
# What translators convert, and digits that are part of a name: OCT2DEC, 3D.
_NOT_TO_KEEP = re.compile(
    r"\s?(?:°|degrees? F|miles?\b|feet\b|foot\b|inch|pounds?\b|gallons?\b|yards?\b|acres?\b|mph\b)"
    r"|(?!st|nd|rd|th|s)[a-zA-Z]"
)
_ROMAN = re.compile(r"\b[IVXL]{2,}|\b[IVX]e\b")


def numbers_in(text: str, lang: str | None) -> set[int]:
    """Find the numbers of a text.

    Args:
        text: a sentence.
        lang: its language, "en", "fr", "it" or "ko"; of any other, digits alone are read.

    Returns:
        Numbers in digits, without their separators ("1,000" and "1.000" are 1000, "3.5" is 35), and numbers from 2 to
        99 in words. Left out are words inside larger numbers ("two hundred") or after an article ("the two of us"),
        Korean words, zero, and what is better not kept: digits of names ("OCT2DEC"), miles and pounds.
    """
    found = {
        _whole(match.group())
        for match in _DIGITS.finditer(text)
        if not text[: match.start()][-1:].isalpha() and not _NOT_TO_KEEP.match(text, match.end())
    } - {0}  # "at 9:00"
    if lang in ("en", "fr", "it"):
        values, pattern = _words(lang)
        found |= {values[match] for match in pattern.findall(_plain(text))}
    return found


def mentions(text: str, number: int, lang: str | None) -> bool:
    """Tell whether a text may speak of a number: in digits, in words, as an ordinal, as a time of the day.

    Args:
        text: a sentence.
        number: a number as `numbers_in` gives it.
        lang: the language of the text; of a language that is not known here, digits alone are read.
    """
    matches = _DIGITS.findall(text)
    digits = {_whole(match) for match in matches} | {
        _whole(run) for match in matches for run in re.findall(r"\d+", match)
    }
    accepted = {number}
    if number <= 24:
        accepted |= {number - 12, number + 12}  # "3 p.m.": "15 h"
    if 1000 <= number < 2100:
        accepted.add(number % 100)  # "the 1990s": "les années 90"
    if accepted & digits or number < 40 and _ROMAN.search(text):
        return True
    if lang not in _UNITS:
        return False
    if any(
        digit * size == number and re.search(rf"\d\s*{name}", text.lower())
        for digit in digits
        for name, size in _MAGNITUDES[lang].items()
    ):
        return True
    plain = _plain(text)
    return any(re.search(pattern, plain) for value in accepted for pattern in _patterns(value, lang))


def spell(number: int, lang: str) -> str:
    """Write a number from 0 to 999,999 in words; in Korean in Sino-Korean ones."""
    if lang == "ko":
        return _spell_korean(number)
    units = _UNITS[lang].split()
    if number < 20:
        return units[number]
    if number < 100:
        return {"en": _english_tens, "fr": _french_tens, "it": _italian_tens}[lang](number)
    size, name = 100, {"en": "hundred", "fr": "cent", "it": "cento"}[lang]
    if number >= 1000:
        size, name = 1000, {"en": "thousand", "fr": "mille", "it": "mille" if number < 2000 else "mila"}[lang]
    count, rest = divmod(number, size)
    parts = [name] if count == 1 and lang != "en" else [spell(count, lang), name]
    if lang == "fr" and size == 100 and count > 1 and not rest:
        parts[-1] += "s"
    if rest:
        parts.append(spell(rest, lang))
    return ("" if lang == "it" else " ").join(parts)


def _english_tens(number: int) -> str:
    tens, unit = _TENS["en"].split()[number // 10 - 2], number % 10
    return f"{tens}-{_UNITS['en'].split()[unit]}" if unit else tens


def _french_tens(number: int) -> str:
    units = _UNITS["fr"].split()
    if number >= 80:
        return "quatre-vingts" if number == 80 else f"quatre-vingt-{units[number - 80]}"
    tens = min(number // 10, 6)
    rest, name = number - 10 * tens, _TENS["fr"].split()[tens - 2]
    if rest in (1, 11):
        return f"{name} et {units[rest]}"
    return f"{name}-{units[rest]}" if rest else name


def _italian_tens(number: int) -> str:
    tens, unit = _TENS["it"].split()[number // 10 - 2], number % 10
    if unit in (1, 8):
        tens = tens[:-1]  # ventuno, ventotto
    return tens + ("tré" if unit == 3 else _UNITS["it"].split()[unit] if unit else "")


def _spell_korean(number: int) -> str:
    if number == 0:
        return "영"
    text = ""
    for size, name in ((10**4, "만"), (1000, "천"), (100, "백"), (10, "십"), (1, "")):
        count, number = divmod(number, size)
        if count:
            text += "" if count == 1 and size > 1 else _spell_korean(count) if size > 1 else _UNITS["ko"].split()[count]
            text += name
    return text


def _whole(digits: str) -> int:
    return int(re.sub(r"\D", "", digits)[:18])  # Python reads at most 4,300 digits


def _plain(text: str) -> str:
    """Bring different ways of writing to one: lower case, no hyphens, no accent on "tré"."""
    return re.sub("[-\u2010\u2011]", " ", unicodedata.normalize("NFC", text).lower()).replace("tré", "tre")


@functools.cache
def _words(lang: str) -> tuple[dict[str, int], re.Pattern]:
    """Give the words for 2 to 99 with their values, and a pattern that finds those that stand alone."""
    values = {_plain(spell(number, lang)): number for number in range(2, 100)}
    for word in _AMBIGUOUS[lang]:
        values.pop(word, None)
    names = "|".join(sorted(values, key=len, reverse=True))
    before = "".join(rf"(?<!\b{word} )" for word in _BEFORE[lang].split(", "))
    return values, re.compile(rf"{before}\b({names})\b(?! (?:{'|'.join(_MAGNITUDES[lang])}|{_AFTER[lang]}))")


@functools.lru_cache(maxsize=4096)
def _patterns(number: int, lang: str) -> tuple[str, ...]:
    """Give patterns for whatever mentions a number in words."""
    if number < 0:
        return ()
    if lang == "ko":
        return _korean_patterns(number)
    stems = [
        word for entry in _RELATED[lang].split(", ") for word in entry.split()[1:] if entry.split()[0] == str(number)
    ]
    if number < 10**6:
        # quatre: quatrième; undici: undicesimo; short Italian stems would fit too much
        name = _plain(spell(number, lang))
        stems.append(name[:-1] if lang == "fr" and name[-1] in "es" or lang == "it" and number > 10 else name)
    else:
        stems += [name for name, size in _MAGNITUDES[lang].items() if size == number]
    months = _MONTHS[lang].split()[number - 1 : number] if number else []
    return (*(rf"\b{re.escape(stem)}" for stem in stems), *(rf"\b{month}\b" for month in months))


def _korean_patterns(number: int) -> tuple[str, ...]:
    forms = _KOREAN_OTHERS.get(number, "").split()
    if number < 10**6:
        name = spell(number, "ko")
        single = rf"(?<![가-힣]){name}\s?(?:{_KOREAN_COUNTERS})"
        forms.append(single if number < 10 else name)
    if number < 100:
        ones, tens = _KOREAN_ONES.get(number % 10, "").split(), _KOREAN_TENS.get(number // 10, "").split()
        forms += [rf"{ten}\s?{one}" for ten in tens or [""] for one in ones or [""] if ten + one]
    return tuple(forms)
