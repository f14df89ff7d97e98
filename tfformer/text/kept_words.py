"""The pattern of words that no translation changes."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from tfformer.special_ids import PLACEHOLDER as SYMBOL

GROUP = r"\([^\s<>\"'()]*\)|\[[^\s<>\"'\[\]]*\]"  # brackets, as at the end of a page's address
STOPS = r"\u3001-\u3011\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f"  # of Chinese and Japanese
# Which no address without a scheme has either: dashes, quotes, and the writing of East Asia.
OTHERS = rf"{STOPS}–—…“”„‘’«»\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
# Up to a letter or a group: the full stop behind it, or the bracket around it, is the sentence's.
TAIL = rf"(?>{GROUP}|[^\s<>\"'{STOPS}])*(?:{GROUP}|[\w/=&#-])"
NEAR_TAIL = rf"(?>{GROUP}|[^\s<>\"'{OTHERS}])*(?:{GROUP}|(?![{OTHERS}])[\w/=&#-])"
SCHEME = r"(?<![A-Za-z\d+.-])[A-Za-z][A-Za-z\d+.-]{1,30}+"
PAGE = rf"/(?:{TAIL})?"
URL = rf"{SCHEME}://{TAIL}|\b[wW]{{3}}\.[\w-]+(?:\.[\w-]+)+(?:{PAGE})?"
PORT = r":\d{2,5}(?!\w)"
NEAR_PAGE = rf"/(?:{NEAR_TAIL})?"
HOST = rf"(?<!/)(?:localhost|(?:[\w-]+\.)+[a-z]{{2,24}})(?:{PORT}(?:{NEAR_PAGE})?|{NEAR_PAGE})"
IRISH = r"(?:'(?<=\b[oO]')[\w.+-]{1,64})?"  # as in o'neil@x.org; l' and d' are words of their own
REPOSITORY = r"(?::[\w.~-]*/[\w./~-]*\w)?"  # as of git@x.org:a/b.git
E_MAIL = rf"(?<!\+)[\w.+-]{{1,64}}+{IRISH}@[\w-]+(?:\.[\w-]+)+{REPOSITORY}"
NOTE = r"\[\^[\w-]{1,60}\]"  # the mark of a footnote in Markdown
# Of printf: "%1$s", "%-10.2f", "%@"; no space, lest "5 % of" be one.
CONVERSION = (
    r"(?:\d{1,3}\$)?[-+#0]{0,5}(?:\d{1,4}|\*)?(?:\.(?:\d{1,4}|\*))?"
    r"(?:(?:hh?|ll?|[qLjzt])?[sdifuxXeEgGcop]\b|@)"
)
# Of one or two words, before them up to three with commas.
BRACES = r"\{ ?(?:[^{}\s]{1,60}, ){0,3}[^{}\s]{1,60}(?: [^{}\s]{1,60})? ?\}"
PLACEHOLDER = (
    rf"\{{\{{[^{{}}\n]{{1,100}}\}}\}}|\{{%[^{{}}\n]{{1,100}}%\}}|[#$%]?{BRACES}"
    rf"|%\([\w.]{{1,60}}\)[sdif]|%{CONVERSION}"
)
FOLDER = r"/(?:\.{1,2}(?=/)|\.?[\w-]+(?:\.[\w-]+)*)"  # without a full stop behind it
ON_WINDOWS = rf"[A-Za-z]:(?:(?:\\[\w$~-]+(?:\.[\w$~-]+)*)+|(?:{FOLDER}){{2,}})"
USUAL = "pdf|docx?|xlsx?|pptx?|txt|csv|jpe?g|png|gif|svg|zip|mp[34]|html?|css|json|xml|py|js"
ENDING = rf"(?:[a-z]{{2}}[a-z\d]{{0,2}}|[chor]|{USUAL}|{USUAL.upper()})\b"
HIDDEN = (  # as .gitignore and .config/x; any other word behind a full stop is a word
    r"(?<![^\s(\[\"'„“«»])\.(?:(?:env|profile|git\w+|bash\w*|\w+rc|\w+ignore)\b|[a-z][\w-]*(?=[./]\w))"
    r"(?:[./-][\w-]+)*"
)
PATH = (
    rf"(?=[~./])(?:~?(?:\.{{1,2}})?(?:{FOLDER}){{2,}}|(?<![\w~.])(?:~|\.{{1,2}}){FOLDER}|{HIDDEN})"
)
NAME = (
    r"(?<!/)/?(?:[\w-]+/)*"
    rf"(?:(?:[\w-]\.)*[\w-]{{2,255}}(?:\.[\w-]+)*\.{ENDING}|\w\.(?:{USUAL})\b)"
)
MEASURE = (
    r"[kcmµ]?m[²³]?|ft|[kmµ]?g|lbs?|oz|[kmcd]?l|[kMGT]?B|[kMGT]?bit|[kMG]?Hz|[kMG]?Wh?|[kM]?V|m?Ah"
    r"|hp|min|ms|mph|px|pt|EUR|USD|GBP|CHF|(?:[ht]|(?<=\s)s)(?!-)"  # no 1990s, no 5 t-shirts
)
SHARE = r"/(?:h|s²?|min|k?m[²³]?|k?g|l)(?!\w)"  # of a compound unit, as km/h
CURRENCY = r"$¢-¥\u20a0-\u20cf"
SYMBOLS = rf"[%‰](?![({{]|{CONVERSION})|°[CF]?|[{CURRENCY}](?![\d{{])(?:{SHARE})?|x(?!\w)"
UNIT = rf"(?:{SYMBOLS}|(?:{MEASURE})(?:{SHARE})?(?![\w/]|['’]\w))"
GAP = r"\s?"  # before a unit, if there is one
SIGN = r"(?<![^\s(\[\"'„“«»])[-−+±#]"  # of a number, no dash between two words
FRACTIONS = r"¼-¾\u2150-\u215e"
THOUSAND = r"['’\xa0\u2009\u202f]\d{3}(?!\d)"
DIGITS = rf"\d+(?:[.,:/–-]\d+|{THOUSAND})*(?:[eE][-+−]?\d+)?"
TIMES = rf"{GAP}[x×]{GAP}\d+(?:[.,]\d+)*"
MOMENT = r"\d{4}-\d\d-\d\dT\d\d(?::\d\d){1,2}(?:[.,]\d+)?(?:Z|[-+−]\d\d:?\d\d)?"  # of ISO 8601
PRICE = rf"[{CURRENCY}]{GAP}{DIGITS}(?:(?:[kKmMB]|bn|tn)(?!\w))?(?:{SHARE})?"
AMOUNT = rf"(?:{DIGITS}(?:{GAP}[{FRACTIONS}]|(?:{TIMES})+)?|[{FRACTIONS}])(?:{GAP}{UNIT})?"
NUMBER = rf"{PRICE}|(?:{MOMENT}|{AMOUNT})(?!\w)"
VERSION = r"(?<![\w.])v\d+(?:\.\d+)+(?:[-+][\w.]*\w)?(?!\w)"
# Escaped markup, and signs that stand for a word: no punctuation, which is the translation's own.
ESCAPED = (
    r"</?[a-zA-Z][\w:.-]{0,60}(?:\s[^<>\n]{0,200})?/?>|<!--[^<>\n]{0,200}-->"
    r"|(?<!\S)(?:[<>&|=]|[<>=!]=|=>|->|<-|&&|\|\|)(?!\S)"
    r"|[©®§¶\u2190-\u21ff\u2200-\u2211\u2213-\u22ff]|−(?!\d)"
)
COMPANY = r"[A-Z]\w{0,20}&[A-Z]\w{0,20}(?!\w)"
PICTURES = (  # blocks of Unicode, and single characters
    "\u2300-\u23ff\u25a0-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
    "\u203c\u2049\u2139\u24c2\u3030\u303d\u3297\u3299"
)
EMOJI = (
    rf"(?:(?:[\d#*]\ufe0f?\u20e3|[^\s\w]\ufe0f|[{PICTURES}]|(?<!\w)\u2122)"
    "[\ufe0e\ufe0f\u200d\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*)+"
)


@functools.lru_cache(maxsize=16)
def kept_pattern(keep: Sequence[str] = ()) -> re.Pattern[str]:
    """Return the pattern of what stays as it is.

    Args:
        keep: Words and phrases that stay too; those that are blank are left out.

    Example:
        >>> kept_pattern(("Foo Inc",)).findall("Foo Inc pays $3.50 at https://x.org/a.")
        ['Foo Inc', '$3.50', 'https://x.org/a']
    """
    phrases = sorted((phrase.strip() for phrase in keep), key=len, reverse=True)
    own = [rf"(?<!\w){re.escape(phrase)}(?!\w)" for phrase in phrases if phrase]
    numbers = rf"(?<![.,])(?:{SIGN})?(?:{NUMBER})"
    signs = "|".join([SYMBOL.pattern, EMOJI, ESCAPED, PLACEHOLDER, NOTE, PATH])
    names = rf"(?<![.-])(?=[\w-]*[@:./'+])(?:{HOST}|{E_MAIL}|{NAME})"
    words = "|".join([names, ON_WINDOWS, COMPANY, VERSION, numbers])
    kinds = [rf"(?![A-Za-z\s])(?:{signs})", URL, rf"(?<!\w)(?:{words})"]  # most places fail early
    return re.compile("|".join([*own, *kinds]))
