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
BLANKS = [  # texts with blanks that a small BERT of the Bible fills in sensibly
    "The ___ of the LORD came to me, and the king of ___ went up to Jerusalem.",
    "Moses stretched out his ___ over the sea.",
    "Jesus said to his ___, “Follow me.”",
]
BEGINNINGS = [  # which a small GPT of the Bible goes on with and ends by itself
    "Then Jesus said to his disciples",
    "Do not be afraid",
    "In the beginning God",
]
SENSES = [  # a word, two sentences in which it means different things, and one in which it means that of the second
    [
        *("Python", "He got bit by Python", "Python is my favorite programming language"),
        "She writes all her programs in Python",
    ],
    ["bear", "The lion and the bear went out.", "She will bear a son.", "How can an old woman bear a child?"],
    ["left", "He lifted up his left hand.", "They left the city.", "He left the house."],
]
EXPLANATIONS = {
    "translate": (
        "Point at a word, tap it, or move to it with the Tab key: the words it was made of light up with their "
        "attention weights. Each row of weights sums to 1. The stronger the colour of a cell, the larger its weight. "
        "Try “the three red books”: French puts the colour after the noun, and the strong cells leave the diagonal. A "
        "piece is a word or a part of one; ▁ marks where a word begins, &lt;/s&gt; the end of the sentence. “Weights × "
        "value norms” multiplies each weight by the length of the vector that it weighs. The models are small and "
        "know short, everyday English: what they do not know, they make up.",
        "단어를 가리키거나 누르거나 Tab 키로 옮겨 가면, 그 단어를 만들 때 본 단어들이 Attention 가중치만큼 밝아집니다. "
        "한 행의 가중치 합은 1입니다. 히트맵에서는 칸의 색이 진할수록 가중치가 큽니다. 예문의 the three red books를 "
        "보세요. 프랑스어는 색깔을 명사 뒤에 쓰므로 진한 칸이 대각선에서 벗어납니다. 조각(토큰)은 단어이거나 단어의 "
        "일부이고, ▁는 단어의 시작, &lt;/s&gt;는 문장의 끝입니다. ‘weights × value norms’는 각 "
        "가중치에 그 가중치가 곱해지는 벡터의 길이를 곱한 것입니다. 모델이 작아서 짧은 일상 영어만 알고, 모르는 말은 "
        "지어냅니다.",
    ),
    "checkpoint": (
        "A translator by its id on the Hugging Face Hub, or as a folder on the machine that runs this Space: Marian, "
        "BART, T5 or a model of hf_attn, with weights in safetensors files of at most 1 GB. Only you see it in the "
        "list of models.",
        "Hugging Face Hub의 id나 이 Space를 실행하는 컴퓨터의 폴더로 번역 모델을 엽니다. Marian, BART, T5, 또는 "
        "hf_attn의 모델이며, 가중치는 safetensors 파일로 1GB까지입니다. 연 모델은 연 사람의 목록에만 나타납니다.",
    ),
    "steps": (
        "Attention step by step, with the numbers of this model: scores, softmax, weighted sum, and what becomes "
        "of it. Choose an output piece and, where there are several, a layer and a head. ▁ marks where a word begins.",
        "Attention을 단계별로, 이 모델의 실제 숫자로 보여 줍니다. 점수, softmax, 가중합, 그리고 그 결과가 출력이 "
        "되는 과정입니다. 출력 조각(토큰)을 고르고, 여러 개가 있으면 층과 head도 고르세요. ▁는 단어의 시작입니다.",
    ),
    "history": (
        "One sentence through the architectures of 2014 to 2017. Lengthen it with the slider: without attention "
        "one vector has to carry everything, and the longer the sentence, the more is lost.",
        "한 문장을 2014년부터 2017년까지의 구조에 차례로 넣어 봅니다. 슬라이더로 문장을 늘려 보세요. Attention이 "
        "없으면 벡터 하나가 문장 전체를 담아야 하므로, 길어질수록 더 많이 잃어버립니다.",
    ),
    "what_if": (
        "Switch off the attention to a source word, take away a head, or put another word into the translation, "
        "and see which probabilities change. A source word is hidden from the decoder only: the encoder has "
        "already read it. In the first example, with “teacher” hidden, the model no longer knows who reads the letter, "
        "but still that it is long.",
        "입력 단어에 대한 Attention을 끄거나, head 하나를 빼거나, 번역에 다른 단어를 넣고, 어떤 확률이 바뀌는지 "
        "보세요. 그 단어는 decoder에게만 가려집니다. encoder는 이미 읽었습니다. 처음 문장에서 teacher를 가리면 "
        "모델은 누가 편지를 읽는지 모르게 되지만, 편지가 길다는 것은 여전히 압니다.",
    ),
    "metrics": (
        "BLEU counts which n-grams a translation shares with the reference; perplexity asks how probable each "
        "word was in its place. In the pair shown first, translation 1 has all the right words in the wrong order, "
        "and translation 2 says “I hate going to the arcade”: perplexity prefers 2, BLEU and people prefer 1.",
        "BLEU는 번역과 정답에 함께 나오는 n-gram을 세고, perplexity는 각 단어가 그 자리에 올 확률이 얼마나 높았는지를 "
        "봅니다. 처음 나오는 예에서 번역 1은 단어는 모두 맞고 순서만 틀렸으며, 번역 2는 뜻이 다릅니다. 그런데 "
        "perplexity는 번역 2를, BLEU와 사람은 번역 1을 더 낫다고 합니다.",
    ),
    "inputs": (
        "The same equation reads other things: a text in both directions (BERT), a text from left to right (GPT), a "
        "picture cut into patches (ViT), and a picture that the model then describes (ViT and GPT).",
        "같은 식으로 다른 입력도 읽습니다. 글을 양방향으로 읽고(BERT), 글을 왼쪽에서 오른쪽으로 읽고(GPT), 그림을 "
        "patch로 잘라 읽고(ViT), 그림을 본 뒤 설명을 씁니다(ViT와 GPT).",
    ),
    "fill_in": (
        "BERT reads a text in both directions. Write ___ where it should guess: it says which pieces fit there, and "
        "the picture shows which pieces each piece reads. The model that comes with this Space has read one book, the "
        "Bible, in lower case: it knows the words and the style of that book, and little else.",
        "BERT는 글을 양쪽 방향으로 읽습니다. 맞혀 볼 자리에 ___ 를 쓰면 그 자리에 어울리는 조각(토큰)과 확률을 알려 "
        "주고, 아래 그림은 각 조각이 어떤 조각들을 읽는지 보여 줍니다. 이 Space의 작은 모델은 성경 한 권을 소문자로 "
        "읽었을 뿐이라, 그 책의 단어와 말투 말고는 거의 모릅니다.",
    ),
    "continue": (
        "GPT reads from left to right: no piece sees what comes after it, the grey half of the heatmap. After each "
        "piece it says which comes next; here the likeliest is always taken, so it may soon repeat itself. The model "
        "that comes with this Space has read one book, the Bible, and what it writes is not a quotation.",
        "GPT는 왼쪽에서 오른쪽으로 읽습니다. 어떤 조각도 자기 뒤의 조각은 보지 못하며, 히트맵의 회색 절반이 그 "
        "자리입니다. 조각마다 다음 조각의 확률을 계산하는데, 여기서는 늘 가장 그럴듯한 조각을 고르므로 곧 같은 말을 "
        "되풀이하기도 합니다. 이 Space의 모델은 성경 한 권만 읽었고, 모델이 쓰는 글은 성경 구절의 인용이 아닙니다.",
    ),
    "senses": (
        "In a table of vectors (Word2Vec) a word has one vector, whatever stands around it. In BERT the sentence "
        "changes it, layer by layer. In sentence 3 the word means what it means in 2, for comparison: only if the "
        "cosine of 1 and 2 falls well below that of 2 and 3 has the model told meanings apart, and not just "
        "neighbours. With Python it has not: a model that has read only the Bible knows neither the snake nor the "
        "language. It has met “bear” and “left” in both senses.",
        "Word2Vec처럼 단어마다 벡터가 하나로 정해져 있으면 문장이 달라도 벡터는 같습니다. BERT에서는 층을 지날수록 "
        "문장이 벡터를 바꿉니다. 문장 3의 단어는 문장 2와 같은 뜻으로, 비교를 위한 것입니다. 1과 2의 코사인이 2와 3의 "
        "코사인보다 뚜렷이 낮을 때에만, 모델이 주변 단어의 차이를 넘어 뜻을 구별했다고 할 수 있습니다. Python은 그렇지 "
        "않습니다. 성경만 읽은 모델은 뱀도 프로그래밍 언어도 모릅니다. bear(곰, 낳다)와 left(왼쪽, 떠났다)는 두 뜻을 "
        "모두 읽어 보았습니다.",
    ),
    "digit": (
        "Draw a digit, or pick one. A small ViT cuts it into patches, and each patch looks at all others: point at one "
        "to see at which, and with how much weight. The digit is read off the class token, which looks at patches in "
        "the same way. What you draw is enlarged to the height of the grid, as the digits that the model learned from "
        "were.",
        "숫자를 그리거나 하나 고르세요. 작은 ViT가 숫자를 patch로 자르고, 각 patch는 다른 모든 patch를 봅니다. patch를 "
        "가리키면 어디를 얼마나 보는지 나타납니다. 어떤 숫자인지는 같은 방식으로 patch들을 보는 class token에서 읽어 "
        "냅니다. 그린 숫자는 모델이 학습한 숫자들처럼 격자의 높이에 맞게 확대됩니다.",
    ),
    "caption": (
        "A ViT reads the picture, a GPT writes the caption, and each word looks at the patches by the same equation as "
        "in translation: point at a word to see where. In each of these pictures a colour and a shape come together "
        "that never did in training, so no caption can have been learned by heart.",
        "ViT가 그림을 읽고 GPT가 설명을 쓰며, 각 단어는 번역에서와 같은 식으로 patch를 봅니다. 단어를 가리키면 모델이 "
        "본 곳이 밝아집니다. 그림마다 학습할 때 함께 나온 적이 없는 색과 모양의 짝이 들어 있어서, 외운 설명으로는 "
        "맞힐 수 없습니다.",
    ),
}


def explanation(tab: str) -> str:
    """Give what a tab explains as HTML, in both languages; the style sheet shows one."""
    english, korean = EXPLANATIONS[tab]
    return f'<p class="explained" lang="en">{english}</p><p class="explained" lang="ko">{korean}</p>'
