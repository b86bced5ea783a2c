# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Failure flags: sentences with one fault each, translations by people that have none, and the same with faults put in.

The rates are measured on data that nobody chose for this purpose: the references of the development files and of the
phrasebook. A check that accuses people, or that finds no fault, fails here.
"""

import re
from collections import Counter
from pathlib import Path

import pytest

from hf_attn.data import load_pairs, phrasebook
from hf_attn.evaluation import Failure, count_failures, find_failures
from hf_attn.evaluation.failures import KINDS
from hf_attn.evaluation.numbers import mentions, numbers_in, spell

DATA = Path(__file__).parents[3] / "shared" / "data"


def kinds(source, text, langs="en-fr", **options):
    source_lang, target_lang = langs.split("-")
    failures = find_failures(source, text, source_lang=source_lang, target_lang=target_lang, **options)
    return [failure.kind for failure in failures]


FOUND = [
    ("empty", "en-fr", "Where is it?", ""),
    ("empty", "en-fr", "Where is it?", " … "),
    ("looping", "en-fr", "He is in the house.", "Il est dans la maison de la maison de la maison."),
    ("looping", "en-fr", "I see it.", "Je le vois vois vois."),
    ("looping", "en-fr", "I don't know.", "Je ne sais pas. Je ne sais pas. Je ne sais pas."),
    ("looping", "en-fr", "The dog sleeps.", "Le chien de la rue est le chien de la rue, et le chien de la rue dort."),
    ("looping", "en-ko", "I laughed a lot.", "나는 많이 하하하하하하하하 웃었다."),
    ("looping", "en-ko", "He reads a book.", "그는 책을 책을 책을 읽는다."),
    ("copied", "en-fr", "Where is the station?", "Where is the station?"),
    ("copied", "en-fr", "We saw the old man yesterday.", "We saw the old man hier."),
    ("copied", "fr-en", "Je ne sais pas.", "Je ne sais pas."),
    ("copied", "en-ko", "Where is the station?", "Where is the station?"),
    ("lost_number", "en-fr", "He has 3 cats.", "Il a des chats."),
    ("lost_number", "en-fr", "He has three cats.", "Il a quatre chats."),
    ("lost_number", "en-it", "It costs 1,250 euros.", "Costa 125 euro."),
    ("lost_number", "en-ko", "She bought five books.", "그녀는 책을 네 권 샀다."),
    ("lost_number", "fr-en", "Il a vingt-deux ans.", "He is twenty years old."),
    ("lost_number", "it-en", "Ha comprato trentuno libri.", "He bought some books."),
    ("lost_number", "ko-en", "그는 1945년에 태어났다.", "He was born in 1946."),
    ("lost_name", "en-fr", "Yesterday Tom met Mary in Boston.", "Hier, Tom l'a rencontrée là-bas."),
    ("lost_name", "en-it", "I live in Berlin.", "Vivo in una grande casa."),
    ("lost_name", "en-ko", "I know that Peter lives here.", "나는 그가 여기 사는 것을 안다."),
    ("lost_name", "fr-en", "Nous connaissons Camille.", "We know her."),
    ("lost_url", "en-fr", "See https://example.org/a?b=1.", "Voir https://example.org/a."),
    ("lost_url", "en-ko", "Write to me.2@example.org today.", "오늘 편지를 쓰세요."),
    ("lost_negation", "en-fr", "He didn't come.", "Il est venu."),
    ("lost_negation", "en-fr", "Nobody saw us.", "On nous a vus."),
    ("lost_negation", "en-it", "I never eat meat.", "Mangio la carne."),
    ("lost_negation", "en-ko", "She does not drink milk.", "그녀는 우유를 마신다."),
    ("lost_negation", "ko-en", "나는 그를 믿지 않는다.", "I believe him."),
    ("lost_negation", "fr-en", "Il n'a rien mangé.", "He ate it."),
    ("lost_negation", "en-fr", "He came yesterday.", "Il n'est pas venu hier."),
    ("lost_negation", "en-it", "She likes the sea.", "Non le piace il mare."),
    ("lost_negation", "en-ko", "He goes to school.", "그는 학교에 가지 않는다."),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "langs", "source", "text"), FOUND)
def test_a_fault_is_found_and_nothing_else(kind, langs, source, text):
    assert set(kinds(source, text, langs)) == {kind}


FREE = [
    ("en-fr", "He has 3 cats.", "Il a trois chats."),
    ("en-fr", "He has three cats.", "Il a 3 chats."),
    ("en-fr", "It is the third house.", "C'est la troisième maison."),
    ("en-fr", "The meeting is at 3 p.m.", "La réunion est à 15 h."),
    ("en-fr", "He gets up at 9:00.", "Il se lève à neuf heures."),
    ("en-fr", "It was 6:30.", "Il était six heures et demie."),
    ("en-fr", "It costs 10,000 yen.", "Cela coûte 10 000 yens."),
    ("en-fr", "We walked ten miles.", "Nous avons marché seize kilomètres."),
    ("en-fr", "I love the 1990s.", "J'adore les années quatre-vingt-dix."),
    ("en-it", "It is 3.5 metres long.", "È lungo 3,5 metri."),
    ("en-it", "He is twenty-eight.", "Ha ventotto anni."),
    ("en-ko", "He has three cats.", "그는 고양이가 세 마리 있다."),
    ("en-ko", "It costs 20,000 won.", "이만 원입니다."),
    ("en-ko", "It costs 20,000 won.", "2만 원입니다."),
    ("en-ko", "We wait for ten minutes.", "우리는 십 분 동안 기다린다."),
    ("en-fr", "I was in London with Tom.", "J'étais à Londres avec Tom."),
    ("en-fr", "He comes from Germany.", "Il vient d'Allemagne."),
    ("en-fr", "We meet on Monday with the English teacher.", "On se voit lundi avec le professeur d'anglais."),
    ("en-ko", "I met Tom in Boston.", "나는 보스턴에서 톰을 만났다."),
    ("en-ko", "He went to Japan with Marco.", "그는 마르코와 일본에 갔다."),
    ("en-it", "See www.example.org.", "Vedi www.example.org!"),
    ("en-fr", "You like it, don't you?", "Tu l'aimes, n'est-ce pas ?"),
    ("en-fr", "Why don't we dance?", "Et si on dansait ?"),
    ("en-fr", "I don't know his name.", "J'ignore son nom."),
    ("en-fr", "It's only a game.", "Ce n'est qu'un jeu."),
    ("en-fr", "I want more bread.", "Je veux plus de pain."),
    ("en-it", "He left without a word.", "Se n'è andato senza dire niente."),
    ("en-it", "Not only you.", "Non solo tu."),
    ("en-ko", "I don't know.", "몰라."),
    ("en-ko", "It was a mistake.", "잘못이었다."),
    ("en-fr", "No, no, no!", "Non, non, non !"),
    ("en-fr", "We sit down. We eat.", "Nous nous asseyons. Nous mangeons."),
    ("en-fr", "Tom, Paris, 1996.", "Tom, Paris, 1996."),
    ("en-fr", "Attention!", "Attention !"),
    ("en-ko", "LibreOffice Writer", "LibreOffice Writer"),
]


@pytest.mark.parametrize(("langs", "source", "text"), FREE)
def test_a_free_translation_is_no_fault(langs, source, text):
    assert kinds(source, text, langs) == []


def test_what_needs_a_language_is_left_out_without_it():
    assert find_failures("He did not see Tom.", "Il a vu.") == []
    assert find_failures("He did not see 12 dogs.", "Er sah Hunde.", source_lang="en", target_lang="de") == [
        Failure("lost_number", "12")
    ]
    assert kinds("He did not come.", "Il est venu.", "en_US-fr") == ["lost_negation"]
    assert find_failures("", "") == find_failures("?!", "") == []


def test_kinds_are_in_their_order_and_details_say_what():
    failures = find_failures(
        "On 12 May Tom wrote to me@example.org, not to Peter.", "Il a écrit a écrit a écrit a écrit a écrit.",
        source_lang="en", target_lang="fr", truncated=True,
    )  # fmt: skip
    assert [failure.kind for failure in failures] == [
        "looping", "truncated", "lost_number", "lost_name", "lost_name", "lost_url", "lost_negation",
    ]  # fmt: skip
    assert [failure.detail for failure in failures if failure.kind == "lost_name"] == ["Tom", "Peter"]
    assert Failure("lost_url", "me@example.org") in failures and Failure("lost_number", "12") in failures
    assert failures[0].detail == "'a écrit' 5 times"
    assert kinds("Where?", "", truncated=True) == ["empty", "truncated"]


def test_counts_are_of_translations():
    failures = [[Failure("lost_name", "Tom"), Failure("lost_name", "Mary")], [], [Failure("empty", "nothing")]]
    assert count_failures(failures) == {**dict.fromkeys(KINDS, 0), "lost_name": 1, "empty": 1, "any": 2}
    assert count_failures([])["any"] == 0


@pytest.mark.parametrize(
    ("lang", "number", "words"),
    [
        ("en", 21, "twenty-one"), ("en", 342, "three hundred forty-two"), ("en", 2000, "two thousand"),
        ("fr", 21, "vingt et un"), ("fr", 71, "soixante et onze"), ("fr", 80, "quatre-vingts"),
        ("fr", 81, "quatre-vingt-un"), ("fr", 99, "quatre-vingt-dix-neuf"), ("fr", 200, "deux cents"),
        ("fr", 1789, "mille sept cent quatre-vingt-neuf"),
        ("it", 21, "ventuno"), ("it", 23, "ventitré"), ("it", 28, "ventotto"), ("it", 150, "centocinquanta"),
        ("it", 3000, "tremila"), ("ko", 10, "십"), ("ko", 365, "삼백육십오"), ("ko", 12000, "만이천"),
    ],
)  # fmt: skip
def test_numbers_are_spelled_as_people_spell_them(lang, number, words):
    assert spell(number, lang) == words
    assert mentions(f"({words})", number, lang)


@pytest.mark.parametrize("lang", ["en", "fr", "it"])
def test_numbers_in_words_are_read_back(lang):
    for number in range(2, 100):
        if number not in {"en": (), "fr": (9,), "it": (6,)}[lang]:  # neuf is new, sei is you are
            assert numbers_in(f"x {spell(number, lang)} x", lang) == {number}


def test_digits_are_read_as_people_write_them():
    assert numbers_in("1,000 and 1\u202f000 and 1.000", None) == {1000}
    assert numbers_in("March 31 1999 at 8:05, version 2.1", None) == {31, 1999, 8, 5, 21}
    assert find_failures("9" * 5000, "8" * 5000)[-1].kind == "lost_number"
    assert numbers_in("OCT2DEC, 3D, 5 miles, the two of us, one", "en") == set()


def pairs_of(name, langs):
    return [(pair[langs[0]], pair[langs[1]]) for pair in load_pairs(str(DATA / name), *langs)["translation"]]


def rates(pairs, langs):
    source_lang, target_lang = langs
    found = [find_failures(*pair, source_lang=source_lang, target_lang=target_lang) for pair in pairs]
    return {kind: number / len(pairs) for kind, number in count_failures(found).items() if number and kind != "any"}


@pytest.mark.parametrize(
    ("name", "langs"),
    [
        ("tatoeba.en-fr.dev.tsv", ("en", "fr")),
        ("tatoeba.en-ko.dev.tsv", ("en", "ko")),
        ("lohelp.en-it.dev.tsv", ("en", "it")),
        ("lohelp.en-ko.dev.tsv", ("en", "ko")),
    ],
)
def test_people_are_seldom_accused(name, langs):
    if not DATA.is_dir():
        pytest.skip(f"needs the files of {DATA.name}/")
    pairs = pairs_of(name, langs)
    for direction in (1, -1):
        found = rates([pair[::direction] for pair in pairs], langs[::direction])
        assert all(rate <= 0.015 for rate in found.values()), found


@pytest.mark.parametrize("pair", ["en-fr", "en-it", "en-ko"])
def test_the_phrasebook_is_not_accused(pair):
    langs = tuple(pair.split("-"))
    pairs = [(row[langs[0]], row[langs[1]]) for row in phrasebook(pair, "test", 400)["translation"]]
    for direction in (1, -1):
        assert rates([both[::direction] for both in pairs], langs[::direction]) == {}


NEGATION = {
    "fr": lambda text: re.sub(r"\bn['’]|\bne | pas\b", "", text),
    "it": lambda text: re.sub(r"\b[Nn]on ", "", text),
    "ko": lambda text: re.sub(r"지 않", "", text).replace("이 아닙니다", "입니다").replace("가 아닙니다", "입니다"),
}
TWO_TO_FIVE = {
    "fr": (r"\b(?:deux|trois|quatre|cinq) ", "des "),
    "it": (r"\b(?:due|tre|quattro|cinque) ", "dei "),
    "ko": (r" (?:두|세|네|다섯) (?:마리|명|권|개|잔|벌|대|장|그루|송이|채|병|자루|켤레|척|통|봉지|조각)", ""),
}


@pytest.mark.parametrize("pair", ["en-fr", "en-it", "en-ko"])
def test_faults_put_into_the_phrasebook_are_found(pair):
    target_lang = pair[-2:]
    put, found = Counter(), Counter()
    for row in phrasebook(pair, "train", 1000)["translation"]:
        source, target = row["en"], row[target_lang]
        faults = {"empty": "", "copied": source, "looping": f"{target} {' '.join(target.split()[-3:] * 3)}"}
        if len(source.split()) < 6:
            del faults["copied"]
        if re.search(r"\b(?:two|three|four|five)\b", source):
            faults["lost_number"] = re.sub(*TWO_TO_FIVE[target_lang], target)
        if re.search(r"n't|\bnot\b", source):
            faults["lost_negation"] = NEGATION[target_lang](target)
        for kind, text in faults.items():
            if text != target:
                put[kind] += 1
                found[kind] += kind in kinds(source, text, pair)
    assert all(put[kind] >= 10 for kind in ("empty", "copied", "looping", "lost_number", "lost_negation")), put
    for kind, number in put.items():
        assert found[kind] >= 0.9 * number, (kind, found[kind], number)


def test_faults_put_into_everyday_sentences_are_found():
    if not DATA.is_dir():
        pytest.skip(f"needs the files of {DATA.name}/")
    put, found = Counter(), Counter()
    names = [f"tatoeba.en-fr.{split}.tsv" for split in ("dev", "test")]
    for source, target in [pair for name in names for pair in pairs_of(name, ("en", "fr"))]:
        faults = {}
        for name in re.findall(r"(?<=[a-z] )(?:Tom|Mary|Boston|Tokyo|Paris)\b(?!')", source):
            faults["lost_name"] = re.sub(rf"\b{name}\b", "lui", target)
        if re.search(r"\b(?:don't|didn't|isn't|wasn't)\b", source) and "?" not in source:
            faults["lost_negation"] = NEGATION["fr"](target)
        for kind, text in faults.items():
            if text != target:
                put[kind] += 1
                found[kind] += kind in kinds(source, text)
    for kind, share in (("lost_name", 0.85), ("lost_negation", 0.75)):
        assert put[kind] >= 50, put
        assert found[kind] >= share * put[kind], (kind, found, put)
