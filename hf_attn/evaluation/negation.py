# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Find negation in English, French, Italian and Korean sentences.

Every language has three patterns: what looks like a negation and is none ("isn't it?", "n'est-ce pas ?", "잘못"), what
negates, and what may stand for a negation in a free translation ("without", "ignorer", "몰라"). A sentence is negated
if the second is found outside the first; it may be if any of the three is found. The patterns are as short as they can
be while translations by people are seldom accused. Read `failures.py` next.
"""

import re
from typing import NamedTuple


class _Patterns(NamedTuple):
    apart: re.Pattern
    negating: re.Pattern
    related: re.Pattern


def _patterns(apart: str, negating: str, related: str) -> _Patterns:
    return _Patterns(*(re.compile(pattern, re.IGNORECASE) for pattern in (apart, negating, related)))


_LANGUAGES = {
    "en": _patterns(
        r",\s*\w+n['’]t\s+\w+(?:\s+\w+)?\?|^\W*\w+n['’]t\s[^?]*\?|\bwhy (?:don|doesn|didn|not)\b(?:['’]t)?"
        r"|\bnot (?:only|just|merely|least|bad|equal|until)\b|\bor not\b|\bnothing but\b|\bfor nothing\b"
        r"|\bno\.|\bnever (?:fail|stop)|\b(?:can['’]?no?t|couldn['’]t) (?:wait|help|stand|agree)\b"
        r"|\bno (?:doubt|wonder|matter|sooner|later|way|problem)\b|\b(?:don|doesn|didn)['’]t (?:care|matter|mind)\b"
        r"|(?-i:\bN(?:OT|O|ONE)\b|(?<!^)\b(?:None|Nothing)\b)",
        r"\b(?:not|cannot|never|nobody|nothing|nowhere|none|neither|nor|no|nope)\b|n['’]t\b",
        r"\b(?:without|hardly|barely|scarcely|seldom|rarely|unable|unless|ever|instead|wrong|too|few|little|whether|out"
        r"|only|afraid|before|until|since|right|otherwise|must have|empty|keep|kept|off|outside|mismatch|imposs\w*"
        r"|invalid|invisible|fail\w*|refus\w*|stop\w*|lack\w*|doubt\w*|miss\w*|reject\w*|except\w*|prevent\w*|hate\w*"
        r"|ignor\w*|inactiv\w*|gone|used to|any\w*|\w+less|dis\w+|un\w{3,}|non\w*)\b",
    ),
    "fr": _patterns(
        r"\bn['’]est[- ]ce pas\b|,\s*(?:non|pas vrai)\s*\?|\b(?:si|que|à|plus|moins) jamais\b|\bpas mal\b"
        r"|\bn['’]importe\b|\bpourquoi (?:ne\b.*\bpas|pas)\b"
        r"|\b(?:de|un|le|les|des|ses|ces|mes|premiers?|faux|quelques) pas\b|\bpas (?:que|seulement|de danse|à pas)\b"
        r"|\bnon(?:-\w+| (?:seulement|plus))\b|\b(?:de|pour) rien\b|\brien (?:que|d['’]autre)\b",
        r"\b(?:pas|jamais|rien|aucune?|ni|non|nulle? part|guère|nullement|aucunement)\b"
        r"|\b(?:ne\s|n['’]).*\b(?:plus|personne|nul|nulle)\b|\b(?:personne|nul|nulle)\b.*\b(?:ne\s|n['’])",
        r"\bn['’]|\b(?:ne|sans|peu|rarement|à peine|hâte|sinon|mal|loin|hors|faux|fausse|absen\w*|refus\w*|ignor\w*"
        r"|dé(?:plai|plu|conseill)\w*|il(?:lég|lic|lis|log)\w*|dépourvu\w*|fich\w*|fout\w*|moqu\w*|égal\w*"
        r"|interdi\w*|évit\w*|cess\w*|arrêt\w*|manqu\w*|déteste\w*|im(?:poss|pati|prob|parf)\w*"
        r"|in(?:cap|diff|util|just|conn|suff|corr|trouv|acc|visi|cert|sens|évit|comp|habit|égal|dign|satis|soum)\w*)\b",
    ),
    "it": _patterns(
        r"\bnon\.|\.non\b|\bnon (?:appena|solo|soltanto|è vero)\b|\bo no\b|\bno\?|\b(?:sì|si)/no\b|\b(?:se|che) mai\b",
        r"\b(?:non|né|mai|nessun[oa]?|niente|nulla|no|neanche|nemmeno|neppure)\b|\bnessun['’]",
        r"\b(?:senza|altrimenti|invece|imposs\w*|imped\w*|ignor\w*|manc\w*|assenz\w*|divers\w*|disabilit\w*|esclu\w*"
        r"|insuffic\w*|\w*consigl\w*|priv[oaie])\b",
    ),
    "ko": _patterns(
        r"[가-힣]잖|않(?:아|니|나|습니까|을래|을까|겠|으시겠|을지|는지)[가-힣]*\s*\?|뿐만?\s?아니|아니라|아니면|잘못|못\s?생"
        r"|(?:틀림|어이|실|끊임|변함|상관|문제|수)없|면 안\s?[돼되]",
        r"않|없|아니|아닌|아닙|아닐|아님|아냐|아녜|아녔|지는?\s?(?:마(?=$|[\s.!?]|라|세|시|십|요)|말(?=아|았|라|고|자|지)|못)"
        r"|말아|(?:^|\s)안(?:\s|돼|되|됐|됩|됨|해|했|하|할|합|가|갔|와|왔|먹|봤|좋|들)|(?:^|\s)못\s|못(?:해|했|하|합|할|한)",
        r"말고|모르|모른|모를|모릅|몰라|몰랐|싫|별로|(?:^|\s)안(?!나|녕|경|에)|(?<!지)만\b|밖에|그만|달리|불가|무시|제외|부족|부등|미혼|비어",
    ),
}  # fmt: skip


def knows(lang: str | None) -> bool:
    """Tell whether the negation of a language can be found here."""
    return lang in _LANGUAGES


def is_negated(text: str, lang: str) -> bool:
    """Tell whether a sentence is negated."""
    patterns = _LANGUAGES[lang]
    return patterns.negating.search(patterns.apart.sub(" ", text)) is not None


def may_be_negated(text: str, lang: str) -> bool:
    """Tell whether a sentence is negated, or has anything that a translator may have put in the place of a negation."""
    return any(pattern.search(text) for pattern in _LANGUAGES[lang])
