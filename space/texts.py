# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""What the tabs explain, in English and Korean, and sentences to begin with."""

EXAMPLES = [
    "The old teacher reads a long letter in the garden.",
    "We did not see the three red books.",
    "Where is the girl?",
]
REFERENCES = {  # French translations of the examples, by people
    EXAMPLES[0]: "Le vieux professeur lit une longue lettre dans le jardin.",
    EXAMPLES[1]: "Nous n'avons pas vu les trois livres rouges.",
    EXAMPLES[2]: "Où est la fille ?",
}
CLAUSES = [  # what lengthens a sentence, with French translations
    ("and the girl sleeps in the house", "et la fille dort dans la maison"),
    ("but the boy does not want to eat", "mais le garçon ne veut pas manger"),
    ("because his mother is in the kitchen", "parce que sa mère est dans la cuisine"),
    ("and we are waiting for the train", "et nous attendons le train"),
    ("while my brother drinks a glass of water", "pendant que mon frère boit un verre d'eau"),
    ("and the dog is looking at the cat", "et le chien regarde le chat"),
]
LECTURE = {  # the pair on which perplexity and BLEU disagree
    "source": "I love to go to school .",
    "reference": "나는 학교에 가는 것을 좋아한다 .",
    "first": "학교에 가는 것을 좋아한다 나는 .",
    "second": "나는 오락실에 가는 것을 싫어한다 .",
}
EXPLANATIONS = {
    "translate": (
        "Point at a word, or move to it with the Tab key: the words it was made of light up with their attention "
        "weights. Each row of weights sums to 1. Dark in the heatmap is much attention.",
        "단어를 가리키거나 Tab 키로 옮겨 가면, 그 단어를 만들 때 본 단어들이 Attention 가중치만큼 밝아집니다. 한 "
        "행의 가중치 합은 1입니다. 히트맵에서 진한 칸이 가중치가 큰 곳입니다.",
    ),
    "steps": (
        "Attention in its steps, with the numbers of this model: scores, softmax, weighted sum, and what becomes "
        "of it. Choose an output piece, a layer and a head.",
        "Attention을 단계별로, 이 모델의 실제 숫자로 보여 줍니다. 점수, softmax, 가중합, 그리고 그 결과가 출력이 "
        "되는 과정입니다. 출력 조각과 층, head를 고르세요.",
    ),
    "history": (
        "One sentence through the architectures of 2014 to 2017. Lengthen it with the slider: without attention "
        "one vector has to carry everything, and the longer the sentence, the more is lost.",
        "한 문장을 2014년부터 2017년까지의 구조에 차례로 넣어 봅니다. 슬라이더로 문장을 늘려 보세요. Attention이 "
        "없으면 벡터 하나가 문장 전체를 담아야 하므로, 길어질수록 더 많이 잃어버립니다.",
    ),
    "what_if": (
        "Switch off the attention to a source word, take away a head, or put another word into the translation, "
        "and see which probabilities change. A word is switched off for the decoder only: the encoder has read "
        "it.",
        "입력 단어에 대한 Attention을 끄거나, head 하나를 빼거나, 번역에 다른 단어를 넣고, 어떤 확률이 바뀌는지 "
        "보세요. 단어는 decoder에서만 보이지 않게 됩니다. encoder는 이미 읽었습니다.",
    ),
    "metrics": (
        "BLEU counts which n-grams a translation shares with the reference; perplexity asks how probable each "
        "word was in its place. On the pair below they disagree, and BLEU agrees with people.",
        "BLEU는 번역과 정답이 공유하는 n-gram을 세고, perplexity는 제자리의 단어가 얼마나 그럴듯했는지를 "
        "묻습니다. 아래의 두 번역에서는 둘의 판정이 뒤집히고, 사람의 판단은 BLEU와 같습니다.",
    ),
    "inputs": (
        "The same equation reads other things: a text in both directions (BERT), a text from left to right (GPT), a "
        "picture cut into patches (ViT), and a picture by the one who describes it.",
        "같은 식이 다른 입력도 읽습니다. 양방향으로 읽는 글(BERT), 왼쪽에서 오른쪽으로 읽는 글(GPT), patch로 자른 "
        "그림(ViT), 그리고 그림을 보고 설명을 쓰는 모델입니다.",
    ),
}


def explanation(tab: str) -> str:
    """Give what a tab explains as HTML, in both languages; the style sheet shows one."""
    english, korean = EXPLANATIONS[tab]
    return f'<p class="explained" lang="en">{english}</p><p class="explained" lang="ko">{korean}</p>'
