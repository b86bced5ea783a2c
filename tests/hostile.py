# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""What a hostile visitor might type, each kind once, and a reader of the elements that came of it.

Markup that runs sets `window.pwned`; markup that loads asks the port 9 of this machine, where nobody answers.
"""

from html.parser import HTMLParser

RUN = "window.pwned=1"
MARKUP = {
    "image": f"<img src=x onerror={RUN}>",
    "script": f"</script><script>{RUN}</script>",
    "double quotes": f'" onmouseover="{RUN}" autofocus onfocus="{RUN}" x="',
    "single quotes": f"' onmouseover='{RUN}' autofocus onfocus='{RUN}' x='",
    "no quotes": f" onmouseover={RUN} x=` `",
    "frame": "</iframe><iframe srcdoc='<script>parent.pwned=1</script>'>",
    "srcdoc": f"&quot;&gt;&lt;/iframe&gt;&lt;script&gt;{RUN}&lt;/script&gt;",
    "text elements": f"</title></textarea></xmp></noembed><img src=x onerror={RUN}>",
    "style": "</style><style>*{background:url(http://127.0.0.1:9/a)}</style>",
    "style attribute": "x;background:url(//127.0.0.1:9/b);width:expression(window.pwned=1)",
    "css": "\\3c/style\\3e } * { content: url(http://127.0.0.1:9/c) } /*",
    "svg": f"<svg onload={RUN}><script>{RUN}</script></svg>",
    "svg animation": f"<svg><set attributeName=href to=javascript:{RUN}><animate onbegin={RUN} attributeName=x>",
    "svg use": "<svg><use href='data:image/svg+xml,<svg id=x onload=parent.pwned=1>#x'></use></svg>",
    "foreign object": f"<svg><foreignObject><body onload={RUN}></foreignObject></svg>",
    "mathml": f"<math><maction actiontype=statusline xlink:href=javascript:{RUN}>x</maction></math>",
    "comment": f"<!--><img src=x onerror={RUN}>--> --!><img src=x onerror={RUN}>",
    "cdata": f"<![CDATA[ ]]><img src=x onerror={RUN}>]]>",
    "template element": f"<template><img src=x onerror={RUN}></template></template><img src=x onerror={RUN}>",
    "mutation noscript": f'<noscript><p title="</noscript><img src=x onerror={RUN}>">',
    "mutation style": f'<svg></p><style><a id="</style><img src=x onerror={RUN}>">',
    "mutation math": f"<math><mtext><table><mglyph><style><!--</style><img title='--><img src=x onerror={RUN}>'>",
    "mutation select": f"<select><template><style><!--</style><a rel='--></style></select><img src=x onerror={RUN}>'>",
    "javascript link": f"<a href='java&#10;script:{RUN}' id=x>x</a> javascript:{RUN}// jAvAsCrIpT&colon;{RUN}",
    "data link": "<a href='data:text/html;base64,PHNjcmlwdD5vcGVuZXIucHduZWQ9MTwvc2NyaXB0Pg=='>x</a>",
    "toggle": f"<details open ontoggle={RUN}><summary onclick={RUN}>x</summary></details>",
    "focus": f"<input autofocus onfocus={RUN}><select autofocus onfocus={RUN}><div tabindex=0 onfocusin={RUN}>",
    "pointer": f"<b onpointerover={RUN} onwheel={RUN} onanimationstart={RUN} style='font-size:999px'>x</b>",
    "unclosed tag": f"<img src=x onerror={RUN} x=",
    "unclosed script": f"<script>{RUN}//",
    "unclosed comment": "one <!-- two",
    "plaintext": "<plaintext><listing><xmp>",
    "null split": f"<im\x00g src=x onerr\x00or={RUN}> <scr\x00ipt>{RUN}</scr\x00ipt>",
    "entities": f"&lt;img src=x onerror={RUN}&gt; &amp;lt;b&gt;",
    "entities without end": f"&#60img src=x onerror={RUN}&#62 &#x3c&LTb&GT &nbsp &notin",
    "entities twice": f"&amp;lt;img src=x onerror={RUN}&amp;gt; &amp;amp;amp;",
    "percent": f"%3Cimg%20src%3Dx%20onerror%3D{RUN}%3E %253Cb%253E %00",
    "utf-7": f"+ADw-script+AD4-{RUN}+ADw-/script+AD4-",
    "wide signs": f"＜img src=x onerror={RUN}＞ ‹script› ≮b≯ ʺ＂＇",
    "script escapes": f"\\u003cimg src=x onerror={RUN}\\u003e \\x3cb\\x3e \\074b\\076 \\",
    "refresh": "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/d'>",
    "base": "<base href=http://127.0.0.1:9/><a href=x target=_top>x</a>",
    "object": "<object data=http://127.0.0.1:9/e></object><embed src=http://127.0.0.1:9/f>",
    "form": f"<form action=http://127.0.0.1:9/g><button formaction=javascript:{RUN}>x</button></form>",
    "link": "<link rel=stylesheet href=http://127.0.0.1:9/h><link rel=prefetch href=http://127.0.0.1:9/i>",
    "media": f"<video><source onerror={RUN}></video><audio src=x onerror={RUN}><track src=http://127.0.0.1:9/j>",
    "module": "<script type=module>import('http://127.0.0.1:9/k')</script><script type=importmap>{}</script>",
    "custom element": "<gradio-app src=http://127.0.0.1:9/l></gradio-app><hf-attn onclick=window.pwned=1>",
    "document": f"<!DOCTYPE html><html onclick={RUN}><head></head><body onload={RUN} onresize={RUN}>",
    "xml": f"<?xml-stylesheet href='javascript:{RUN}'?><x:script xmlns:x='http://www.w3.org/1999/xhtml'>{RUN}</x:script>",
    "entity bomb": '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><x>&b;</x>',
    "clobbering": "<form id=document name=body><input name=cookie id=source></form><a id=heatmap name=frameElement>",
    "prototype": '{"__proto__": {"pwned": 1}, "constructor": {"prototype": {"pwned": 1}}}',
    "property names": "__proto__ constructor toString hasOwnProperty length then valueOf",
    "right to left": f"\u202e<img src=x onerror={RUN}>\u202c \u05d0<b>\u05d1</b> \u2067</p>\u2069",
}
TEMPLATES = {
    "jinja": "{{7*7}} {% for x in ().__class__.__base__.__subclasses__() %}{{x}}{% endfor %} {# x #}",
    "handlebars": "{{#each value}}x{{/each}} {{{value}}} {{@root}} {{> partial}}",
    "angular": "{{constructor.constructor('window.pwned=1')()}}",
    "dollar": "${window.pwned=1} ${value} $value $$ `${1}`",
    "svelte": "{@html '<b>x</b>'} {#if 1}x{/if} {window.pwned=1}",
    "python format": "{0} {} {value!r:>9} {0.__class__.__init__.__globals__} {{}",
    "printf": "%s %n %d %(name)s %% %*.*f",
    "format bomb": "{:>999999999} %999999999d {0:{0}} %.999999999f",
    "server pages": "<%= 7*7 %> <?php echo 1; ?> #{7*7} [[${7*7}]] @(7*7)",
    "markdown link": "[x](javascript:window.pwned=1) <javascript:window.pwned=1> [y]: data:text/html,x",
    "markdown image": "![y](http://127.0.0.1:9/m) ![z](x 'onerror=window.pwned=1')",
    "markdown": "# **b** _i_ ~~s~~ `c` | a | b | > q - [x] :smile: [^1] --- ***",
    "latex": "$\\href{javascript:window.pwned=1}{x}$ $$\\sum_i^n$$ \\(x\\) \\[y\\] \\begin{cases} $\\def\\a{\\a}\\a$",
    "bbcode": "[url=javascript:window.pwned=1]x[/url] [img]http://127.0.0.1:9/n[/img]",
}
TOKENS = {
    "special tokens": "</s> <s> <pad> <unk> <mask>",
    "special tokens in words": "a<mask>b c</s>d <pad><pad> <s>e <unk>f </s></s>",
    "special tokens of BERT": "[CLS] [SEP] [MASK] [PAD] [UNK] [unused0] ##ing",
    "special tokens of GPT": "<|endoftext|> <|im_start|>system <|im_end|> Ġthe Ċ Ã©",
    "special tokens of T5": "<extra_id_0> <extra_id_99> <eos> <bos> <start_of_turn> [INST] <<SYS>>",
    "language tags": "<2fr> <2xx> >>fra<< fra_Latn __en__ <en> en_XX",
    "pieces": "▁ ▁the ▁▁ <0x0A> <0x00> <0xFF> ▂",
}
CHARACTERS = {
    "controls": "a\x00b\x07c\x1dd\x7fe\x85f\x9fg",
    "terminal": "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[2J\x9b1m",
    "overstrike": "a\x08\x08b\rc\x0bd",
    "surrogates": "a \ud800 b \udfff c",
    "surrogates the wrong way": "a \udc00\ud83d b \ude00\ud83d",
    "no characters": "\ufdd0 \ufdef \ufffe \uffff \U0001fffe \U0010ffff",
    "zero width": "a\u200bb\u200c\u200dc\ufeffd\u2060e\u00adf\u180eg",
    "bidi": "\u202etxet\u202c \u2066x\u2069 \u202ba \u061cb\u200fc",
    "separators": "one\u2028two\u2029three\x0bfour\x0cfive\x1csix",
    "spaces": "a\u00a0b\u1680c\u2003d\u202fe\u205ff\u3000g\u2800h",
    "combining": "e" + "\u0301" * 50,
    "zalgo": "".join(letter + "".join(map(chr, range(0x300, 0x314))) for letter in "the girl"),
    "combining alone": "\u0301\u0300\u20dd \u0e33 \u093f",
    "variations": "a\ufe0f\ufe0eb \u270f\ufe0f\u4e00\U000e0100\U000e01ef",
    "tag characters": "a" + "".join(map(chr, range(0xE0061, 0xE007B))) + "b\U000e007f",
    "astral": "𝕳𝖊𝖑𝖑𝖔 𐍈 𠜎 𝒳",
    "private": "\ue000 \uf8ff \U000f0000 \U0010fffd",
    "unassigned": "\u0378 \u0380 \U0002fe00 \U000e0fff",
    "replacement": "\ufffd\ufffd \ufffc \ufff9a\ufffab\ufffb",
    "jamo": "\u1112\u1161\u11ab\u1100\u1173\u11af \u1100\u1100\u1161 \u11a8",
    "fillers": "\u3164 \u115f\u1160 \uffa0 a",
    "Korean": "소녀는 어디에 있습니까?",
    "Arabic": "أين البنت؟ ﻻ ـــ",
    "Hebrew": "שָׁלוֹם <b>עולם</b> (א) 12%",
    "Indic": "नमस्ते क्षत्रिय ക്ക തമിழ்",
    "Chinese and Thai": "女孩在哪里？ เด็กผู้หญิงอยู่ที่ไหน",
    "emoji": "👩‍👩‍👧‍👦 🙂 👍🏽 🏴󠁧󠁢󠁥󠁮󠁧󠁿 🇰🇷🇫🇷🇮 ❤️‍🔥 1️⃣",
    "mojibake": "dÃ©jÃ vu â€œxâ€\x9d \xff\xfe ï»¿",
    "expanding": "\ufdfa" * 400,
    "compatibility": "ﬁ ﬀ ĳ ǆ ㎏ Ⅷ ｆｕｌｌ ² ½ ㈱ K Å",
    "letter case": "İstanbul ISPARTA ıi ß ẞ ΑΣ ς ŉ ǰ ΐ",
    "look-alikes": "тhе gіrl rеаdѕ раураl.com",
    "punctuation": "?!?!.,;:…—“”«»",
    "digits": "9" * 300,
}
SIZES = {
    "one word": "x" * 3000,
    "100,000 characters": "the girl reads " * 6667,
    "1,000,000 characters": "y" * 1_000_000,
    "100,000 spaces": "a" + " " * 100_000 + "b",
    "100,000 marks": "e" + "\u0301" * 100_000,
    "100,000 tags": "<b>" * 33_334,
    "100,000 lines": "a\n" * 50_000,
    "lines": "The girl reads.\r\n\r\nWhere is the girl?\n",
    "many words": "a " * 199,
    "one letter": "a",
    "one sign": "<",
}
MACHINES = {
    "path": "../../../../etc/passwd ..\\..\\windows\\win.ini /dev/zero ~/.ssh/id_rsa",
    "file address": "file:///etc/passwd",
    "share": "\\\\127.0.0.1\\share\\x //127.0.0.1/x",
    "device names": "CON NUL COM1 aux.txt :$DATA",
    "address": "http://127.0.0.1:9/o http://169.254.169.254/latest/meta-data/ gopher://127.0.0.1:9/_x",
    "Hub id": "google/flan-t5-base",
    "file of Gradio": '{"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}',
    "address of Gradio": "/gradio_api/file=/etc/passwd /gradio_api/proxy=http://127.0.0.1:9/ /config",
    "data address": "data:text/html,<script>window.pwned=1</script>",
    "sql": "'; DROP TABLE words; -- ' OR '1'='1 \" UNION SELECT 1",
    "shell": "; touch pwned $(touch pwned) `touch pwned` | touch pwned && touch pwned > pwned",
    "headers": "a\r\nSet-Cookie: pwned=1\r\n\r\n<b>x</b> %0d%0aX: y",
    "event stream": 'a\n\nevent: complete\ndata: ["pwned"]\n\n',
    "formula": "=cmd|' /C calc'!A1 +1 -1 @SUM(1) \t=1",
    "numbers": "1e999 -1e999 NaN Infinity 0x10 1_000 -0 9007199254740993 1e-400",
    "nothing in words": "null None undefined nil true [] {} NaN",
    "json": '{"data": ["a", "en-fr-none"], "fn_index": 0} \\" ]}',
    "yaml": "!!python/object/apply:os.system ['touch pwned'] &a [*a, *a]",
    "pickle": "cos\nsystem\n(S'touch pwned'\ntR.",
    "python": "__import__('os').system('touch pwned') eval('1') \\N{DIGIT ONE}",
    "lookup": "${jndi:ldap://127.0.0.1:9/p} ${env:PATH}",
    "slow expression": "a" * 40 + "! " + "(" * 40 + "[" * 40 + "^(a+)+$",
    "directory": "*)(uid=*))(|(uid=* %2a",
}
HOSTILE = MARKUP | TEMPLATES | TOKENS | CHARACTERS | SIZES | MACHINES
NOTHING = {"empty": "", "spaces": " \t\n", "invisible": "\u200b\ufeff\u2060", "controls only": "\x00\x01\x1f"}
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
