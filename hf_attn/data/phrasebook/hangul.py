"""Final consonants of Korean syllables, and the particles and endings that depend on them.

A syllable block of Unicode is ``0xAC00 + (initial * 21 + vowel) * 28 + final``, final 0 meaning none.
"""

_FIRST, _FINALS = 0xAC00, 28
_NIEUN, _RIEUL, _BIEUP, _SSANGSIOT = 4, 8, 17, 20
_AFTER_VOWEL = {"은": "는", "이": "가", "을": "를", "과": "와", "으로": "로"}


def final(word: str) -> int:
    """Return the number of the final consonant of the last syllable, 0 if it ends with a vowel.

    Args:
        word: it ends with a syllable of Hangul.
    """
    return (ord(word[-1]) - _FIRST) % _FINALS


def attach(word: str, particle: str) -> str:
    """Attach a particle in the form that fits.

    Args:
        word: a noun.
        particle: "은", "이", "을", "과", "으로" (given as after a consonant), or one that never changes.
    """
    if particle == "으로" and final(word) == _RIEUL:  # 서울로
        return word + "로"
    return word + (particle if final(word) else _AFTER_VOWEL.get(particle, particle))


def close(stem: str, consonant: str) -> str:
    """Give the last syllable of a stem a final consonant; a final ㄹ makes way for it.

    Args:
        stem: it ends with a vowel or with ㄹ.
        consonant: "ㄴ", "ㄹ", "ㅂ" or "ㅆ".
    """
    number = {"ㄴ": _NIEUN, "ㄹ": _RIEUL, "ㅂ": _BIEUP, "ㅆ": _SSANGSIOT}[consonant]
    return stem[:-1] + chr(ord(stem[-1]) - final(stem) + number)


def without_rieul(stem: str) -> str:
    """Return a stem as it stands before ㄴ and ㅅ, where a final ㄹ drops out.

    Args:
        stem: of a verb or adjective.
    """
    return stem[:-1] + chr(ord(stem[-1]) - _RIEUL) if final(stem) == _RIEUL else stem


def formal(stem: str) -> str:
    """Return stem + -(스)ㅂ니, to which 다 or 까 is added.

    Args:
        stem: of a verb or adjective.
    """
    if final(stem) in (0, _RIEUL):
        return close(stem, "ㅂ") + "니"
    return stem + "습니"
