"""Inputs from bug reports and real pages, with the translations that readers expect."""

import re

import pytest
from support.whole_texts import heard, heard_and_said, shout, translate_text

from tfformer.text import TextTranslator, segments
from tfformer.text.protected_words import protected_words


def cues(*texts):
    return "".join(
        f"{number}\n00:00:0{number},000 --> 00:00:0{number},900\n{text}\n\n"
        for number, text in enumerate(texts, 1)
    )


UNCHANGED = {
    "html": [
        "<dt>diff(<em>f</em>, <em>n<span>=</span><span>1</span></em>)</dt>",
        "<p>a<i>=</i><i>1</i> <em>color</em><em>N-1</em></p>",
        "<i>def</i> <b>f</b>(<i>a</i>, <i>b</i><span>=</span><span>None</span>, *<i>args</i>)",
        "<p>(no implicit `<b>*</b>' is added). Use (<b>*</b>) here.</p>",
        '<p>The list “<span>*</span>”means all: "<i>Go</i>!"—<b>and</b>—went…</p>',
        "<p>Text<sup><a>1</a>,<a>2</a></sup> more<sup>1</sup><sup>,</sup><sup>2</sup>.</p>",
        "<p>Text<sup>1</sup>,<sup>2</sup> more<sup>3</sup>–<sup>5</sup>.</p>",
        "<p>10<sup>th</sup> day, XIX<sup>e</sup> siècle, M<sup>me</sup> Acme<sup>TM</sup></p>",
        "<p><span class=dropcap>O</span>nce un<b>believ</b>able, Alt-F<em>n</em>, co<wbr>op</p>",
        "<p>me<span>@</span>x<span>.</span>org <u>foo</u>.bar<i>::</i>baz()<b>!</b></p>",
        "<p>a dash <em>-</em>) and <b>--</b>. Use '<b>@</b>' or «<b>|</b>».</p>",
        "<p>I <a href=1>love</a><a href=2>you</a> all, <a>a</a><a>b</a><a>c</a> d.</p>",
        "<dt><b>[-+]O [</b><i>opt</i>] <em>X</em><code>+really</code><em>Y</em></dt>",
        "<p>我在<a href=x>北京</a>工作，他在<a href=y>上海</a>工作。</p>",
        "<p>彼は<b>東京</b>に行く。ผมชอบ<b>แมว</b>มาก 나는 <b>학교</b>에 <i>갔</i>다</p>",
        "<p>東京<ruby>都<rt>と</rt></ruby>に<ruby>行<rt>い</ruby>く。</p>",
        "<p>See <a href=x>https://x.org/faq</a>first, <b>a.txt</b>s and 1<b>1</b>1,<i>2</i>3.</p>",
        "<iframe src=a><p>Hi &amp; bye</p></iframe><xmp>a &amp; b\nc</xmp>",
        "<p>a <noembed>b &amp; c</noembed> <textarea>a\n  b &amp; c</textarea></p>",
        '<iframe .../><path fill="a&b"/> more text.',
        "<plaintext>a &amp; b\n <b>c",
        "<p>Hi <%= user.name %>, you have <% if x %>dogs<% end %>.</p>",
        "<p>One <img> <img>, two <img> <img> three <wbr><img> four.</p>",
        "<p><a title='Building ports\n  in MS-Windows'>x</a> <img alt='\n A\n\n dog. So\n'></p>",
        "<p><img alt='A  dog'> <img title=\"Say &quot;go&quot;\"> here.</p>",
    ],
    "xml": [
        "<d>x<a><b><img/></b><c><img/></c><img/></a></d>",
        "<para>He<emphasis>llo</emphasis> there, a<x>b</x><y>c</y>d (<q>*</q>).</para>",
        '<a xml:space="preserve">  Hello   <b>there\n  you</b>  </a>',
    ],
    "markdown": [
        "$$ a\n$$ a\n" * 2,
        r"(**\[RFC5322]**). See the [API](x)s and **N**eural **N**etworks.",
        "彼は**東京**に行く。我在[北京](x)工作。",
        "Type a ` ` here, ` ` and `  ` so.",
        "See [https://x.org/a](y)and more, **a**b*c*d `e`f ~~g~~h.",
        "One\n\u00a0\ntwo\u00a0\n\u2003\nthree",
        "- one two\n\u00a0\nBug Fixes\n---------\n",
    ],
    "srt": [
        "1\r00:00:01,000 --> 00:00:02,000\rA dog.\r\r2\r00:00:03,000 --> 00:00:04,000\rTwo?\r",
        cues("The dog is\n{\\an8}\ntired.", "It is so", "{\\an8}\nthere it is."),
        cues("-Hello there, it's\n{\\an8}<i>–So it is</i>", "-5 of us"),
        cues("彼は<b>東京</b>に行く。", "un<b>believ</b>able, a<i>=</i><i>1</i>"),
    ],
}


@pytest.mark.parametrize(
    ("format", "text"), [(f, t) for f, texts in UNCHANGED.items() for t in texts]
)
def test_the_same_translation_changes_nothing(format, text):
    assert TextTranslator(list).translate(text, format) == text
    assert translate_text(text, shout, format).casefold() == text.casefold()


ANSWER = "Mein Bruder arbeitet heute nicht."


@pytest.mark.parametrize(
    ("format", "text", "answer", "expected"),
    [
        ("text", "My brother<br />doesn't work today.", ANSWER,
         "Mein Bruder<br />arbeitet heute nicht."),
        ("text", "Hello there!<br />How are you?", ANSWER, f"{ANSWER}<br />{ANSWER}"),
        ("html", "My brother&lt;br&gt;doesn't work today.", ANSWER,
         "Mein Bruder&lt;br&gt;arbeitet heute nicht."),
        ("text", "My brother[^1] works today.", ANSWER, "Mein Bruder[^1] arbeitet heute nicht."),
        ("text", "My brother😀 works today.", ANSWER, "Mein Bruder😀 arbeitet heute nicht."),
        ("text", "My dog©works today", ANSWER, "Mein Bruder© arbeitet heute nicht."),
        ("text", "Use a_b now or n.", "Nein, nun a_b.", "Nein, nun a_b."),
        ("html", "Use <code>n</code> now.", "Nein, nun.", "Nein <code>n</code>, nun."),
        ("html", "Let <var>x</var><sub><var>i</var></sub> be.", "Sei w1x so.",
         "Sei <var>x</var><sub><var>i</var></sub> w1x so."),
        ("html", "Go <b>to</b> the market now", "ទៅផ្សារឥឡូវនេះ", "ទៅ<b>ផ្សារ</b>ឥឡូវនេះ"),
        ("srt", cues("My brother<br />doesn't work today."), ANSWER,
         cues("Mein Bruder<br />arbeitet heute nicht.")),
        ("html", "The dog<sup>1</sup><sup>,</sup><sup>2</sup> ran.", "Es lief der dog.",
         "Es lief der dog<sup>1</sup><sup>,</sup><sup>2</sup>."),
        ("html", "<b>x</b>: the <i>size</i>", "die Größe: x", "die <i>Größe</i>: <b>x</b>"),
        ("html", "Pay <b>3.5</b> or <i>35</i> now", "Zahle 35 oder 3,5 jetzt",
         "Zahle <i>35</i> oder <b>3,5</b> jetzt"),
        ("html", "Go now <kbd>A</kbd> → <kbd>B</kbd>.", "→ Geh jetzt.",
         "<kbd>A</kbd> → <kbd>B</kbd> Geh jetzt."),
        ("srt", cues("Open the file a.txt", "now please my friend"),
         "Öffne die Datei jetzt bitte mein Freund",
         cues("Öffne die Datei a.txt", "jetzt bitte mein Freund")),
        ("html", "A <b>big red</b><i>dog</i> ran.", "Hunde.", "<b>Hunde</b><i></i>."),
        ("html", "<b>&lt; big &gt;</b> <i>&lt; red &gt;</i>", "< > < > Nimm groß",
         "<b>&lt; &gt; &lt; &gt; Nimm</b> <i>groß</i>"),
        ("html", "See <b>{x}</b> and {y} <i>now</i>.", "Siehe {y} und {x}.",
         "Siehe {y} <i>und</i> <b>{x}</b>."),
    ],
)  # fmt: skip
def test_a_protected_word_and_a_tag_stand_beside_whole_words(format, text, answer, expected):
    assert heard_and_said(text, answer, format)[1] == expected


def test_an_outlier_of_the_alignment_does_not_widen_an_element():
    def align(sources, targets):
        return [[(1, 1), (2, 2), (2, 9)] for _ in sources]

    def translate(sentences):
        return ["eins zwei drei vier fünf sechs sieben acht neun zehn" for _ in sentences]

    found = TextTranslator(translate, align).translate("a <b>b c</b> d e f g h i j", "html")
    assert "<b>zwei drei</b>" in found


def test_a_protected_word_that_is_linked_to_another_word_is_not_lost():
    links = [[(1, 1)]]
    text = "See <i>{x}</i> now"
    found = heard_and_said(text, "Sieh jetzt", "html", align=lambda *_: links)[1]
    assert found == "Sieh <i>{x}</i> jetzt"


@pytest.mark.parametrize(
    ("format", "text", "expected"),
    [
        ("html", "See <a>https://x.org/Faq</a>first.", "SEE <a>https://x.org/Faq</a>FIRST."),
        ("html", "Use <b>a.txt</b>s, <i>v1.2.3</i>rc.", "USE <b>a.txt</b>S, <i>v1.2.3</i>RC."),
        ("markdown", "The `model.npz`/intgemm files.", "THE `model.npz`/INTGEMM FILES."),
        ("html", "<p translate=no>No <b translate=yes>yes</b></p>",
         "<p translate=no>No <b translate=yes>YES</b></p>"),
        ("html", "<nav translate=no>x<p translate>y</p></nav>z",
         "<nav translate=no>x<p translate>Y</p></nav>Z"),
        ("markdown", "Run <code>foo bar</code>, press <kbd>Ctrl</kbd>.",
         "RUN <code>foo bar</code>, PRESS <kbd>Ctrl</kbd>."),
        ("markdown", 'The <span translate="no">Acme</span> and <b class="notranslate">Other</b>.',
         'THE <span translate="no">Acme</span> AND <b class="notranslate">Other</b>.'),
        ("markdown", "A <script>var a</script> b <style>p { a }</style> <svg><g>c</g></svg> d.",
         "A <script>var a</script> B <style>p { a }</style> <svg><g>c</g></svg> D."),
        ("markdown", "- <samp>a b</samp> x\n\n| <pre>a *b*</pre> |\n|---|\n| <var>y z</var> c |\n",
         "- <samp>a b</samp> X\n\n| <pre>a *b*</pre> |\n|---|\n| <var>y z</var> C |\n"),
        ("markdown", "Get <code>Promise<Response></code> now.",
         "GET <code>Promise<Response></code> NOW."),
        ("markdown", "A <span translate=no>no <b translate=yes>yes</b></span> end.",
         "A <span translate=no>no <b translate=yes>YES</b></span> END."),
        ("xml", '<r><s translatable="false">No</s><p its:translate="no">No</p><s>Yes</s></r>',
         '<r><s translatable="false">No</s><p its:translate="no">No</p><s>YES</s></r>'),
    ],
)  # fmt: skip
def test_code_and_elements_that_stay_end_where_their_element_ends(format, text, expected):
    assert translate_text(text, shout, format) == expected


@pytest.mark.parametrize(
    ("format", "text", "expected"),
    [
        ("html", "<img translate=no alt='A dog'><b title='Go on'>x</b>",
         "<img translate=no alt='A dog'><b title='GO ON'>X</b>"),
        ("html", "<p translate=no>x <img alt='A dog'> <i translate=yes title='Go on'>y</i></p>",
         "<p translate=no>x <img alt='A dog'> <i translate=yes title='GO ON'>Y</i></p>"),
        ("html", "<textarea placeholder='Your name'>a b</textarea> <code title='Go on'>x</code> y",
         "<textarea placeholder='YOUR NAME'>a b</textarea> <code title='GO ON'>x</code> Y"),
        ("html", "<html lang=en translate=no><p>No", "<html lang=en translate=no><p>No"),
        ("markdown", '![A dog](x.png "Its title") [go](y "The link") ![*a*](z) ![b][] ![c d][1]',
         '![A DOG](x.png "ITS TITLE") [GO](y "THE LINK") ![*a*](z) ![b][] ![C D][1]'),
    ],
)  # fmt: skip
def test_what_a_reader_sees_of_a_tag_is_translated(format, text, expected):
    if "][1]" in text:
        text, expected = (f"{one}\n\n[1]: w\n[b]: v\n" for one in (text, expected))
    assert translate_text(text, shout, format, target_language="de") == expected


@pytest.mark.parametrize(
    ("code", "tag"),
    [("deu_Latn", "de"), ("zho_Hant", "zh-Hant"), ("pt_BR", "pt-BR"), ("xx@y", "xx@y")],
)
def test_the_language_of_a_page_is_a_tag_that_browsers_know(code, tag):
    said = translate_text("<html lang=en><p>A", shout, "html", target_language=code)
    assert said == f"<html lang={tag}><p>A"


def test_a_long_attribute_is_divided_within_its_tag():
    def count_tokens(texts):
        return [len(text.split()) for text in texts]

    text = "<p>a b <img alt='one two three, four five'> c d <i title='x y, z u'>e</i></p>"
    found = translate_text(text, shout, "html", count_tokens=count_tokens, max_tokens=3)
    assert found == re.sub("'[^']*'|(?<=>)[^<>]+", lambda match: match[0].upper(), text)


INLINE = [
    "<svg width=1><path d=''/></svg>", "<picture><source srcset=a><img src=b></picture>",
    "<script>x</script>", "<style>y</style>", "<template><p>a</p></template>", "<link rel=x>",
    "<meta name=a content=b>", "<noscript><p>no</p></noscript>", "<canvas>c</canvas>",
    "<embed src=x>", "<object data=x><param name=a>o</object>", "<audio>a</audio>",
    "<video><track src=a>v</video>", "<map name=m><area></map>",
]  # fmt: skip


@pytest.mark.parametrize("inline", INLINE)
def test_an_element_within_a_line_does_not_end_the_sentence(inline):
    text = f"<p>Click the {inline} icon to go.</p>"
    assert heard(text, "html") == ["Click the icon to go."]
    assert TextTranslator(list).translate(text, "html") == text


XHTML = (
    '<html xmlns="http://www.w3.org/1999/xhtml"><head><style>p { a }</style><script>var a</script>'
    "</head><body><pre>x y</pre><p>Run <code>foo bar</code> now.</p></body></html>"
)
SVG = '<svg xmlns="http://www.w3.org/2000/svg"><style>p { a }</style><text>Go on</text></svg>'


@pytest.mark.parametrize(
    ("format", "text", "sentences"),
    [
        ("html", "The <ruby>dog<rp>(</rp><rt>Hund</rt></ruby> is tired.", ["The dog is tired."]),
        ("html", "The <ruby>d<rt>H<rb>og<rtc>und</ruby> is tired.", ["The dog is tired."]),
        ("html", "<p>The <ruby>dog<rt>Hund</p><p>Yes it is.", ["The dog", "Yes it is."]),
        ("html", "<p>A <ruby>漢<rt translate=no>かん</ruby> is.<p>So.", ["A 漢 is.", "So."]),
        ("markdown", "The <ruby>dog<rt>Hund</ruby> is tired.", ["The dog is tired."]),
        ("html", "<div translate=no>No <p translate=yes>Yes please</p></div>", ["Yes please"]),
        ("html", "<ul translate=no><li>a<li translate=yes>bee<li>c</ul>dee", ["bee", "dee"]),
        ("html", "Run <code translate=yes>the thing</code> now.", ["Run the thing now."]),
        ("markdown", '+++\ntitle = "My page"\n+++\n\nHello there.', ["Hello there."]),
        ("markdown", "---\ntitle: My page\n...\n\nHello there.", ["Hello there."]),
        ("markdown", '{\n"title": "My page"\n}\n\nHello there.', ["Hello there."]),
        ("markdown", "---\n\nHello there.\n\n---\n\nMore.", ["Hello there.", "More."]),
        ("markdown", "---\n- a\n- b\n---\nHello there.", ["a", "b", "Hello there."]),
        ("srt", cues("- Hello there\n<i>- Yes it is</i>"), ["Hello there", "Yes it is"]),
        ("srt", cues("-Hello there\n<i>-Yes it is</i>"), ["Hello there", "Yes it is"]),
        ("srt", cues("\u2010 a b\n\u2212 b c\n{\\an8}- d e"), ["a b", "b c", "d e"]),
        ("xml", XHTML, ["Run foo bar now."]),
        ("xml", SVG, ["Go on"]),
    ],
)
def test_the_model_gets_the_sentences_that_a_reader_sees(format, text, sentences):
    assert heard(text, format) == sentences


@pytest.mark.parametrize(
    "aside",
    [
        "[Music playing]",
        "(DOOR OPENS)",
        "♪ La la ♪",
        "♪",
        "<i>[a]</i>",
        "【音楽】",
        "- [b]",
        "♬ la la ♬",
        "*sighs*",
    ],
)
def test_a_sound_or_a_song_is_no_part_of_a_sentence(aside):
    first, *_, last = heard(cues("He is here", aside, "and there"), "srt")
    assert (first, last) == ("He is here", "and there")


@pytest.mark.parametrize(
    ("texts", "sentences"),
    [
        (["♪ Oh yes ♪\n♪ so it is ♪"], ["♪ Oh yes ♪", "♪ so it is ♪"]),
        (["[door slams]\n(man\nshouts)", "and so"], ["[door slams]", "(man shouts)", "and so"]),
        (["<i>♪ I love</i>", "<i>you ♪</i>", "bye now"], ["♪ I love you ♪", "bye now"]),
        (["♪", "La la", "♪ lu lu"], ["La la", "♪ lu lu"]),
        (["[a] He is [b]", "here (so", "long)"], ["[a] He is [b] here (so long)"]),
    ],
)
def test_sounds_and_songs_may_span_lines_and_cues(texts, sentences):
    assert heard(cues(*texts), "srt") == sentences


@pytest.mark.parametrize(
    "answer", ["Eins zwei drei vier fünf.", "Drei Wörter reichen.", "Eins, zwei, drei, vier."]
)
def test_each_cue_that_had_words_has_words_and_its_tag(answer):
    text = cues("<i>Ba ba</i>", "<i>I think of that day</i>", "<i>I left him there</i>")
    found = heard_and_said(text, answer, "srt")[1]
    lines = [cue.split("\n")[2] for cue in found.strip().split("\n\n")]
    assert all(re.fullmatch(r"<i>\w[^<>]*</i>", line) for line in lines)


def test_a_cue_gets_a_word_for_each_of_its_elements():
    text = cues("Ba", "<i>ba</i> <b>I</b> <u>think</u>", "of it")
    found = heard_and_said(text, "Eins zwei drei vier fünf", "srt")[1]
    assert found == cues("Eins", "<i>zwei</i> <b>drei</b> <u>vier</u>", "fünf")


def test_cues_for_which_there_are_no_words_keep_their_order():
    text = cues("One two", "three four", "five six", "seven eight")
    found = heard_and_said(text, "Eins zwei", "srt")[1]
    assert re.findall("^.*-->.*$", found, re.M) == re.findall("^.*-->.*$", text, re.M)


@pytest.mark.parametrize(
    ("language", "marked"),
    [
        ("en", "Use .NET now.|All .TXT files.|Use .docx and ASP.NET.|Rename .HTM to .HTML files."),
        ("en", "(Mr. A is here.)|So.|[Is it, then?]|Never.|(Mr.) B (as he says.) Is here."),
        ("en", "See vol. 3 and fig. 4.|See Fig. 3, Eq. 4 and Thm. 5.|About approx. 5 people."),
        ("ja", "5時です。|3時です。|「はい。」、と言った。|「はい。」|3時です。"),
        ("ja", "「もう3時だ。」と言った。|『いや！』って？|「はい。」|時間です。"),
        ("zh", "2019年。|2020年。|他说：“来吧。”，然后走了。|好！|3个？"),
        ("km", "ខ្ញុំទៅ។|គាត់មក។"),
        ("bo", "བོད་ཡིག།|ང་འགྲོ།"),
        ("fr", "J'ai vu M. Martin hier.|Mme. Dupont et MM. Durand sont là."),
        ("de", "Die 2. Auflage ist da.|Im 19. Jahrhundert war es.|Der 1. FC Köln spielt."),
        ("de", "Die Fa. Meier kam.|Hr. Schmidt auch.|Siehe Bd. II und Abb. 3."),
        ("de", "Unser 10. Jubiläum war am 3. Mai.|Ich bin 12.|Sie ist 13."),
        ("pl", "W 19. wieku tak.|W 2020 r. było dobrze."),
        ("fr", "Avant J.-C. est né un homme.|Le voici."),
        ("nl", "Dhr. Jansen en mevr. Vries zijn hier.|Ja."),
        ("it", "Vedi pag. 5 e cap. IV.|Sì."),
        ("ru", "См. рис. 3 и табл. 4."),
    ],
)
def test_a_sentence_ends_where_a_reader_of_its_language_ends_it(language, marked):
    expected = marked.split("|")
    text = "".join(expected) if language in ("ja", "zh") else " ".join(expected)
    found = [one.text for one in segments(text, language) if one.is_sentence]
    assert found == expected


BESIDE_CHINESE = (
    "a@b.org https://x.org/a /etc/hosts C:\\a\\b.txt %s report.pdf www.x.org v1.2.3 main() "
    "user_name 192.168.0.1 {name} std::vector ISO-8859-1 src/x.py 👍 %(count)s getElementById "
    "~/a.py .gitignore ./run.sh localhost:8080 x.org/a f441d89a %1$s %@ [^1] 2.0.1"
)


@pytest.mark.parametrize("word", BESIDE_CHINESE.split())
@pytest.mark.parametrize("around", ["请看{}吧。", "ดู{}นะ", "これは{}です。"])
def test_writing_without_spaces_ends_a_protected_word(word, around):
    text = around.replace("{}", word)
    assert protected_words().findall(text) == [word]
    found = heard_and_said(text, "呵呵呵呵呵呵。")[1]
    assert found.count(word) == 1
    assert found.count("呵") == 6


def localised():
    """Return sentences with numbers, prices, times and dates, and their German translations."""
    yield "The car costs 12,500 euros.", "Das Auto kostet 12.500 Euro."
    yield "He arrives at 5:30 pm.", "Er kommt um 17:30 Uhr an."
    yield "On 3/14/2026 it rains.", "Am 14.03.2026 regnet es."
    yield "It costs 2.50 euros.", "Es kostet 2,50 Euro."
    yield "I have 3 cats & 1/2 a dog.", "Ich habe drei Katzen und einen halben Hund."
    numbers = [
        (12_500, "12,500", "12.500"),
        (3, "3", "drei"),
        (7_250_000, "7,250,000", "7.250.000"),
    ]
    for _, english, german in numbers:
        yield f"They sold {english} cars.", f"Sie verkauften {german} Autos."
        yield f"It costs {english} euros.", f"Es kostet {german} Euro."
    for euros in range(3, 23):
        yield f"It costs {euros}.50 euros.", f"Es kostet {euros},50 Euro."
        yield f"It is €{euros}.99 today.", f"Es ist heute {euros},99 €."
    for hour in range(1, 12):
        yield f"He arrives at {hour}:30 pm.", f"Er kommt um {hour + 12}:30 Uhr an."
        yield f"It is {hour}:05 a.m. now.", f"Es ist jetzt {hour:02}.05 Uhr."
    for month in range(1, 13):
        yield f"On {month}/14/2026 it rains.", f"Am 14.{month:02}.2026 regnet es."
        yield f"It was 2026-{month:02}-05 then.", f"Es war da der 5.{month}.2026."
    for part in range(5, 50, 5):
        yield f"About {part}.5% of 1,000 km/h.", f"Etwa {part},5 % von 1.000 km/h."


@pytest.mark.parametrize("format", ["text", "html", "markdown"])
def test_numbers_dates_times_and_prices_stay_as_the_model_writes_them(format):
    answers = dict(localised())
    assert len(answers) > 100
    translator = TextTranslator(lambda batch: [answers[sentence] for sentence in batch])
    gap = "\n<p>" if format == "html" else "\n\n"
    assert translator.translate(gap.join(answers), format) == gap.join(answers.values())


@pytest.mark.parametrize(
    ("format", "text", "answer", "expected"),
    [
        (
            "html",
            "He said “<b>Stop</b>!” and left.",
            "Er sagte „Halt!“ und ging.",
            "Er sagte „<b>Halt</b>!“ und ging.",
        ),
        ("html", "“<i>Quote</i>,” he said.", "„Zitat“, sagte er.", "„<i>Zitat</i>“, sagte er."),
        ("html", "The “<b>red</b>” dog", "Der „rote“ Hund", "Der „<b>rote</b>“ Hund"),
        ("html", "<b>« oui »</b>", "»ja«", "<b>»ja«</b>"),
        ("html", "He <b>“goes”</b> now", "Er “geht” jetzt", "Er <b>“geht”</b> jetzt"),
        ("markdown", "The `a` and `b` now.", "Das `a` und `b`.", r"Das \``a`\` und \``b`\`."),
        ("markdown", "A **b** c_d.", "A *b* c_d _e.", r"A \***b**\* c_d _e."),
        ("markdown", "May 3 is free.", "3. Mai ist frei.", r"3\. Mai ist frei."),
        ("markdown", "- The Second", "2) Der Zweite", r"- 2\) Der Zweite"),
        ("markdown", "World War II\n===", "2. Weltkrieg", "2\\. Weltkrieg\n==="),
        ("markdown", "Really?", "- Wirklich?", r"\- Wirklich?"),
        ("markdown", "Number 1", "# 1", r"\# 1"),
        ("markdown", "> Hi.\n> Ho. He.", "+ da", "> \\+ da\n> \\+ da + da"),
        ("markdown", "A day", "1.5 Tage #1 -a", "1.5 Tage #1 -a"),
    ],
)
def test_quotation_marks_and_signs_of_markup_in_a_translation(format, text, answer, expected):
    assert heard_and_said(text, answer, format)[1] == expected
