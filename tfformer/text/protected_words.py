r"""Find the words that no translation changes: addresses, file names, identifiers, emoji.

Quantities, dates, times and prices are not protected, because languages write them differently; ISO
timestamps such as 2024-01-01T00:00Z are protected.

In most rules, a Chinese, Japanese, Korean, Tibetan or South-East Asian character (`UNSPACED`) ends
a protected word: 请发到a@b.org吧 contains the protected word a@b.org.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

from tfformer.special_ids import PLACEHOLDER as SYMBOL

# Scripts without spaces between words: South-East Asian, Tibetan, Chinese, Japanese.
NO_SPACES = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u312f\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
# The same and Korean, which attaches particles to a word without a space.
UNSPACED = NO_SPACES + "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
STOPS = "\u3000-\u303f\uff01-\uff0f\uff1a-\uff1f"  # Chinese and Japanese punctuation
LETTER = rf"[^\W{UNSPACED}]"  # a letter, a digit or _ of a script with spaces
NAME = rf"[^\W{UNSPACED}]|-"
BEGIN = rf"(?<!{LETTER})"
END = rf"(?!{LETTER})"

GROUP = r"\([^\s<>\"'()]*\)|\[[^\s<>\"'\[\]]*\]"  # brackets, as at the end of a URL
QUOTES = "—…“”„‘’«»"
# The rest of a URL. It ends with a letter, a group or one of / = & # -, so it excludes a full stop
# after the URL and a bracket around it. At its end, UNSPACED characters belong to it if they follow
# a slash and precede a space, a slash or the end of the text: https://zh.wikipedia.org/wiki/北京.
TAIL = (
    rf"(?:(?>{GROUP}|[^\s<>\"'{STOPS}{UNSPACED}{QUOTES}])*"
    rf"(?:{GROUP}|(?={LETTER}|[/=&#-])[^{UNSPACED}])(?:(?<=/)[{UNSPACED}]+(?=[\s/]|\Z))?)"
)
PORT = rf":\d{{2,5}}{END}"
DOTTED = rf"(?:{NAME})+(?:\.(?:{NAME})+)"
FOLDER = rf"/(?:\.{{1,2}}(?=/)|\.?(?:{NAME})+(?:\.(?:{NAME})+)*)"  # without a full stop after it
PART = rf"(?:{NAME}|[$~])+"  # a part of a Windows path
USUAL = "pdf|docx?|xlsx?|pptx?|txt|csv|jpe?g|png|gif|svg|zip|mp[34]|html?|css|json|xml|py|js"
ENDING = rf"(?:[a-z]{{2}}[a-z\d]{{0,2}}|[chor]|{USUAL}|{USUAL.upper()}){END}"
PICTURES = (  # blocks of Unicode, and single characters
    "\u2300-\u23ff\u25a0-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
    "\u203c\u2049\u2139\u24c2\u3030\u303d\u3297\u3299"
)
BEFORE_WORD = rf"(?<![^\s(\[\"'„“«»{UNSPACED}])"


class Rule(NamedTuple):
    """A kind of protected word."""

    name: str  # the kind
    pattern: str  # a regular expression
    examples: Sequence[str]  # words that are protected as a whole in any sentence
    not_in: Sequence[str] = ()  # texts without protected words


SIGNS = (  # words that do not begin with a letter
    Rule("model placeholder", SYMBOL.pattern, ["⟦1⟧", "⟦12⟧"]),
    Rule(
        "emoji",
        rf"(?:(?:[\d#*]\ufe0f?\u20e3|[^\s\w]\ufe0f|[{PICTURES}]|(?<!\w)\u2122)"
        "[\ufe0e\ufe0f\u200d\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*)+",
        ["😀👍🏽", "⏰", "▶️", "ℹ️", "‼️", "™", "⌘", "〰️", "㊗️", "©️", "1️⃣", "#⃣", "🇩🇪", "👩‍🚀"],
        ["Acme™ makes it."],
    ),
    Rule(
        "template",
        r"\{?\{\{[^{}\n]{1,100}\}\}\}?|\{%[^{}\n]{1,100}%\}|<%(?:(?!%>)[^\n]){0,200}%>"
        r"|<\?(?:(?!\?>)[^\n]){0,200}\?>",
        ["{{x}}", "{{ x|y }}", "{{{x}}}", "{% if x %}", "<%= user.name %>", "<?= x ?>"],
    ),
    Rule(
        "ICU plural or select",
        r"\{ ?[a-zA-Z\d_]{1,60}, ?(?:plural|select|selectordinal),"
        r"(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*+\})*+\}",
        ["{n, plural, one {# item} other {# of {m} items}}"],
    ),
    Rule(
        "placeholder in braces",  # one or two words, after up to three that end in commas
        r"[#$%]?\{ ?(?:[^{}\s]{1,60}, ){0,3}[^{}\s]{1,60}(?: [^{}\s]{1,60})? ?\}|\{\}",
        ["{}", "{ name }", "{first name}", "{count, number}", "${HOME}", "#{x}", "%{name}"],
        ["{so ist es} and { so ist es auch }"],
    ),
    Rule(
        "printf",  # no space after the %: "5 % of" is ordinary text
        r"%(?:\([\w.]{1,60}\)[sdif]|(?:\d{1,3}\$)?[-+#0]{0,5}(?:\d{1,4}|\*)?(?:\.(?:\d{1,4}|\*))?"
        rf"(?:(?:hh?|ll?|[qLjzt])?[sdifuxXeEgGcopn]{END}|[@%]))"
        rf"|(?<![\w%])%(?:L?\d{{1,2}}(?![\d.,%])|[A-Z_]{{2,60}}%){END}",
        ["%s", "%%", "%n", "%1", "%PATH%", "%1$s", "%-10.2f", "%@", "%(count)s", "%lld"],
        ["50 and % or 5 % of them, 12% of it"],
    ),
    Rule(
        "markup as text",
        r"</?(?:[a-zA-Z][\w:.-]{0,60}|\d{1,3})(?:\s[^<>\n]{0,200})?/?>|<!--[^<>\n]{0,200}-->",
        ["<b>", "</my-tag>", "<0>", '<a href="x">', "<!-- x -->"],
    ),
    Rule(
        "sign",
        r"(?<!\S)(?:[<>|=]|[<>=!]=|=>|->|<-|&&|\|\|)(?!\S)"
        r"|[©®§¶\u2190-\u21ff\u2200-\u2211\u2213-\u22ff]",
        ["©", "→", "≠"],
        ["Tom & Jerry"],
    ),
    Rule("variable", rf"{BEGIN}\$[a-zA-Z_][a-zA-Z\d_]*", ["$HOME", "$x"], ["US$ 5 and $5"]),
    Rule("footnote mark", r"\[\^[\w-]{1,60}\]", ["[^1]", "[^a-note]"]),
    Rule(
        "hidden file",
        rf"{BEFORE_WORD}\.(?:(?:env|profile|git{LETTER}+|bash{LETTER}*|{LETTER}+rc|{LETTER}+ignore){END}"
        rf"|[a-z](?:{NAME})*(?=[./]{LETTER}))(?:[./-](?:{NAME})+)*",
        [".gitignore", ".env.local", ".github/workflows/ci.yml"],
        ["He left .She stayed ... so ...what? .", "He slept .she ate."],
    ),
    Rule(
        "path",
        rf"{BEGIN}(?=[~./])(?:~?(?:\.{{1,2}})?(?:{FOLDER}){{2,}}|(?<![~.])(?:~|\.{{1,2}}){FOLDER})",
        ["/usr/share/doc", "~/a.py", "./run.sh", "../../a.b/c"],
        ["his/hers and/or/if 3/14/2026", "/home is one word"],
    ),
)
# Words that begin with a letter, a digit or _. No LETTER, full stop or hyphen precedes them.
WORDS = (
    Rule(
        "host and page",
        rf"(?:[wW]{{3}}\.{DOTTED}+|(?<!/)(?:localhost|(?:(?:{NAME})+\.)+[a-z]{{2,24}})(?={PORT}|/))"
        rf"(?:{PORT})?(?:/{TAIL}?)?",
        ["www.x.org", "WWW.X.ORG/a", "a.co.uk/path", "x.org/", "localhost:80", "x.org:443/a?b=1"],
    ),
    Rule(
        "e-mail",
        rf"(?<!\+)(?:{LETTER}|[.+-]){{1,64}}+(?:'(?<=\b[oO]')(?:{LETTER}|[.+-]){{1,64}})?"
        rf"@{DOTTED}+(?::(?:{NAME}|[.~])*/(?:{NAME}|[./~])*{LETTER})?",
        ["a.b+c@mail.example.co.uk", "jane.o'neil@example.com", "git@github.com:a/b.git"],
        ["or @nobody", "a@ b"],
    ),
    Rule("call", r"[a-zA-Z_][a-zA-Z\d_]*+(?:\.[a-zA-Z_][a-zA-Z\d_]*+)+\(\)", ["os.path.join()"]),
    Rule(
        "file",
        rf"(?<!/)/?(?:(?:{NAME})+/)*(?:(?:(?:{NAME})\.)*(?:{NAME}){{2,255}}(?:\.(?:{NAME})+)*"
        rf"\.{ENDING}|{LETTER}\.(?:{USUAL}){END})",
        ["report-final.v2.docx", "src/x.py", "REPORT.DOCX", "2024.PDF", "main.c", "x.py"],
        ["So it is e.g./i.e. that, d.h. z.B. u.dgl. mehr.", "Mr./Mrs. X"],
    ),
    Rule(
        "Windows path",
        rf"[A-Za-z]:(?:(?:\\{PART}(?:\.{PART})*)+|(?:{FOLDER}){{2,}})",
        [r"C:\Users\x\file.txt", "C:/a/b"],
    ),
    Rule(
        "version or IP address",
        rf"v\d+(?:\.\d+)+(?:[-+](?:{LETTER}|\.)*{LETTER})?{END}"
        rf"|\d+\.\d+\.\d(?:-?(?:a|b|rc|alpha|beta)\d*)?(?![.,]?{LETTER})"
        rf"|\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?:/\d\d?)?{END}",
        ["v1.2.3", "v1.2.3-rc.1", "2.0.1", "3.11.2", "192.168.0.1"],
        ["Am 14.03.2026 sind es 1.234.567.", "Vega, versions, v. Bismarck"],
    ),
    Rule(
        "identifier",
        r"(?=[a-zA-Z\d]*(?:_|\(\)|::|[a-z][A-Z]))(?:__[a-zA-Z\d]+(?:_[a-zA-Z\d]+)*__"
        r"|[a-zA-Z][a-zA-Z\d]*(?:::[a-zA-Z][a-zA-Z\d_]*)+"
        r"|[a-zA-Z\d]+(?:_[a-zA-Z\d]+)+|[a-z]+\d*(?:[A-Z][a-z\d]+){2,}|[a-zA-Z][a-zA-Z\d]*(?=\(\)))"
        rf"(?:\(\))?{END}",
        ["user_name", "__init__", "MAX_SIZE", "getElementById", "std::vector", "run_all()"],
        ["the iPhone of McDonald on YouTube", "and_ or so"],
    ),
    Rule(
        "code",  # of a product, standard or commit; also ISO timestamps and hexadecimal numbers
        rf"\d{{4}}-\d\d-\d\dT[\d:.]*\d(?:Z|[+-]\d\d:\d\d)?{END}"
        rf"|(?=[A-Z\d-]*\d)(?=[\d-]*[A-Z])[A-Z\d]+(?:-[A-Z\d]+)+{END}"
        rf"|(?=[a-f]*\d)(?=\d*[a-f])[\da-f]{{8,64}}(?:-[\da-f]{{4,12}})*{END}"
        rf"|0x[\da-fA-F]+{END}",
        ["AB-1234-X", "0x1F", "2024-01-01T00:00Z", "f441d89a", "123e4567-e89b-12d3-a456-42661417"],
        ["A-B and X-ray, 1990-2000, 12-3", "an 8-bit E-Mail"],
    ),
)
URL = Rule(
    "address",
    rf"(?<![A-Za-z\d+.-])[A-Za-z][A-Za-z\d+.-]{{1,30}}+://{TAIL}",
    [
        "https://a.de/x?b=1",
        "http://[::1]:80/x",
        "s3://bucket/key",
        "https://en.wikipedia.org/a_(b)",
    ],
)
RULES = (*SIGNS, URL, *WORDS)
LINE_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)  # written in a text that is not HTML


def _any(rules: Sequence[Rule]) -> str:
    return "|".join(f"(?:{rule.pattern})" for rule in rules)


@functools.lru_cache(maxsize=16)
def protected_words(keep: Sequence[str] = ()) -> re.Pattern[str]:
    """Return the pattern of protected words, including the words and phrases in `keep`.

    A space in a phrase matches one or more white-space characters other than a line feed.

    Example:
        >>> protected_words(("Foo Inc",)).findall("Foo Inc pays $3.50 at https://x.org/a.")
        ['Foo Inc', 'https://x.org/a']
    """
    phrases = dict.fromkeys(" ".join(phrase.split()) for phrase in keep)
    longest_first = sorted(filter(None, phrases), key=len, reverse=True)
    chosen = [_phrase(phrase.split()) for phrase in longest_first]
    signs = rf"(?![A-Za-z\s])(?:{_any(SIGNS)})"  # most positions fail early
    words = rf"{BEGIN}(?<![.-])(?=\w)(?:{_any(WORDS)})"
    return re.compile("|".join([*chosen, signs, URL.pattern, words]))


def _phrase(words: Sequence[str]) -> str:
    """Return a pattern that matches the phrase, but not inside a longer word."""
    pattern = r"[^\S\n]+".join(map(re.escape, words))
    begin = "" if re.match(f"[{UNSPACED}]", words[0]) else BEGIN
    end = "" if re.match(f"[{UNSPACED}]", words[-1][-1]) else END
    return f"{begin}{pattern}{end}"
