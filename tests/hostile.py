# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""What a hostile visitor might type, and a reader of the elements that came of it."""

from html.parser import HTMLParser

HOSTILE = {
    "image": "<img src=x onerror=alert(1)>",
    "script": "</script><script>alert(1)</script>",
    "attribute": "\"' onmouseover='alert(1)' x=\"",
    "frame": "</iframe><iframe srcdoc='<script>alert(1)</script>'>",
    "comment": "<!-- --> <![CDATA[ ]]>",
    "entity": "&lt;b&gt; &amp;amp; &#60;",
    "templates": "{{7*7}} ${alert(1)} {style} %s {0} <%= 1 %>",
    "handlebars": "{{#each value}}x{{/each}} {{constructor.constructor 'alert(1)'}}",
    "markdown": "[x](javascript:alert(1)) ![y](http://localhost/z) **b**",
    "special": "</s> <s> <pad> <unk> ▁ <0x0A>",
    "controls": "a\x00b\x1b[31mc\x07d\x7fe\x85f",
    "surrogate": "a \ud800 b \udfff",
    "zero-width": "a\u200bb\u200c\u200dc\ufeffd",
    "bidi": "\u202etxet\u202c \u2066x\u2069",
    "separators": "one\u2028two\u2029three\x0bfour\x0cfive",
    "combining": "e" + "\u0301" * 50,
    "emoji": "👩‍👩‍👧‍👦 🙂 \U0001f3f4\U000e0067\U000e0062",
    "astral": "𝕳𝖊𝖑𝖑𝖔 \U0010ffff",
    "private": "\ue000 \ufdd0 \uffff",
    "korean": "소녀는 어디에 있습니까?",
    "arabic": "أين البنت؟",
    "digits": "9" * 300,
    "one word": "x" * 3000,
    "long": "the girl reads " * 7000,
    "lines": "The girl reads.\r\n\r\nWhere is the girl?\n",
    "path": "../../../../etc/passwd file:///etc/passwd",
    "hub id": "google/flan-t5-base",
    "json": '{"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}',
    "sql": "'; DROP TABLE words; --",
    "punctuation": "?!?!.,;:…—“”«»",
}
NOTHING = {"empty": "", "spaces": " \t\n", "invisible": "\u200b\ufeff\u2060", "controls": "\x00\x01\x1f"}
ALLOWED = set("p div section h3 ul li em iframe".split())


class Tags(HTMLParser):
    """The elements of a piece of HTML, with the documents inside its frames."""

    def __init__(self, document):
        super().__init__(convert_charrefs=True)
        self.names, self.attributes, self.frames = [], [], []
        self.feed(document)

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.attributes += [name for name, _ in attrs]
        self.frames += [value for name, value in attrs if name == "srcdoc"]
