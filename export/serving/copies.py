"""Keeps words as they are, around any function that translates sentences, with Python alone.

Addresses, numbers with their units, placeholders, file names, emoji and the user's phrases stay. A
model that was trained with placeholders (⟦1⟧) gets one in place of each of these words. One that
does not come back is put at its share of the translation, which never has a placeholder that the
sentence has not.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

PLACEHOLDERS = ("⟦1⟧", "⟦2⟧", "⟦3⟧", "⟦4⟧")  # that a model may have learned to copy
SYMBOL = r"⟦\d+⟧"
GROUP = r"\([^\s<>\"'()]*\)|\[[^\s<>\"'\[\]]*\]"  # brackets, as at the end of a page's address
STOPS = r"\u3001-\u3011\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f"  # of Chinese and Japanese
# Which no address without a scheme has either: dashes, quotes, and the writing of East Asia.
OTHERS = rf"{STOPS}–—…“”„‘’«»\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
# Up to a letter or a group: the full stop behind it, or the bracket around it, is the sentence's.
TAIL = rf"(?:{GROUP}|(?!{GROUP})[^\s<>\"'{STOPS}])*(?:{GROUP}|[\w/=&#-])"
NEAR_TAIL = rf"(?:{GROUP}|(?!{GROUP})[^\s<>\"'{OTHERS}])*(?:{GROUP}|(?![{OTHERS}])[\w/=&#-])"
SCHEME = r"(?<![A-Za-z\d+.-])[A-Za-z][A-Za-z\d+.-]{1,30}+"
PAGE = rf"/(?:{TAIL})?"
URL = rf"{SCHEME}://{TAIL}|\b[wW]{{3}}\.[\w-]+(?:\.[\w-]+)+(?:{PAGE})?"
PORT = r":\d{2,5}(?!\w)"
NEAR_PAGE = rf"/(?:{NEAR_TAIL})?"
HOST = rf"(?<!/)(?:localhost|(?:[\w-]+\.)+[a-z]{{2,24}})(?:{PORT}(?:{NEAR_PAGE})?|{NEAR_PAGE})"
IRISH = r"(?:'(?<=\b[oO]')[\w.+-]{1,64})?"  # as in o'neil@x.org; l' and d' are words of their own
REPOSITORY = r"(?::[\w.~-]*/[\w./~-]*\w)?"  # as of git@x.org:a/b.git
E_MAIL = rf"(?<!\+)[\w.+-]{{1,64}}+{IRISH}@[\w-]+(?:\.[\w-]+)+{REPOSITORY}"
NOTE = r"\[\^[\w-]{1,60}\]"  # the mark of a footnote
# Of printf: "%1$s", "%-10.2f", "%@"; no space, lest "5 % of" be one.
CONVERSION = (
    r"(?:\d{1,3}\$)?[-+#0]{0,5}(?:\d{1,4}|\*)?(?:\.(?:\d{1,4}|\*))?"
    r"(?:(?:hh?|ll?|[qLjzt])?[sdifuxXeEgGcop]\b|@)"
)
# Of one or two words, before them up to three with commas.
BRACES = r"\{ ?(?:[^{}\s]{1,60}, ){0,3}[^{}\s]{1,60}(?: [^{}\s]{1,60})? ?\}"
VARIABLE = (
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
GAP = "[ \xa0\u202f]?"  # before a unit
SIGN = r"(?<![^\s(\[\"'„“«»])[-−+±#]"  # of a number, no dash between two words
FRACTIONS = r"¼-¾\u2150-\u215e"
THOUSAND = r"['’\xa0\u2009\u202f]\d{3}(?!\d)"
DIGITS = rf"\d+(?:[.,:/–-]\d+|{THOUSAND})*(?:[eE][-+−]?\d+)?"
TIMES = rf"{GAP}[x×]{GAP}\d+(?:[.,]\d+)*"
MOMENT = r"\d{4}-\d\d-\d\dT\d\d(?::\d\d){1,2}(?:[.,]\d+)?(?:Z|[-+−]\d\d:?\d\d)?"  # of ISO 8601
PRICE = rf"[{CURRENCY}]{GAP}{DIGITS}(?:(?:[kKmMB]|bn|tn)(?!\w))?(?:{SHARE})?"
AMOUNT = rf"(?:{DIGITS}(?:{GAP}[{FRACTIONS}]|(?:{TIMES})+)?|[{FRACTIONS}])(?:{GAP}{UNIT})?"
NUMBER = rf"(?<![\w.,])(?:{SIGN})?(?:{PRICE}|(?:{MOMENT}|{AMOUNT})(?!\w))"
VERSION = r"(?<![\w.])v\d+(?:\.\d+)+(?:[-+][\w.]*\w)?(?!\w)"
PICTURES = (  # blocks of Unicode, and single characters
    "\u2300-\u23ff\u25a0-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
    "\u203c\u2049\u2139\u24c2\u3030\u303d\u3297\u3299"
)
EMOJI = (
    rf"(?:(?:[\d#*]\ufe0f?\u20e3|[^\s\w]\ufe0f|[{PICTURES}]|(?<!\w)\u2122)"
    "[\ufe0e\ufe0f\u200d\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]*)+"
)
SIGNS = "|".join([SYMBOL, EMOJI, VARIABLE, NOTE, PATH])
NAMES = rf"(?<![.-])(?=[\w-]*[@:./'+])(?:{HOST}|{E_MAIL}|{NAME})"
WORDS = "|".join([NAMES, ON_WINDOWS, VERSION, NUMBER])  # only where a word begins
KINDS = (rf"(?![A-Za-z\s])(?:{SIGNS})", URL, rf"(?<!\w)(?:{WORDS})")  # most places fail early

LETTER = re.compile(r"[^\W\d_]")
GLUE = r"[\dA-Za-zÀ-ӿ]"  # of scripts that write spaces between words
ALONE = rf"(?<!{GLUE})(?<!\d[.,:/-])(?:{{}})(?!{GLUE}|[.,:/-]\d)"
COVER = "~"  # no letter, no space, and no stop
LAST_STOP = re.compile(r"[.!?…:;]*$")

Translate = Callable[[list[str]], list[str]]


def read_phrases(path: str) -> list[str]:
    """Return the words and phrases of a file, one a line; blank lines are none.

    Raises:
        ValueError: The file cannot be read, or is not UTF-8.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}); give a text file") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8; convert it first") from None
    return [line.strip() for line in lines if line.strip()]


def without_strays(translation: str, sentence: str) -> str:
    """Return a translation without placeholders that its sentence has not.

    Where nothing else is left, the sentence stays.

    Example:
        >>> without_strays("Um ⟦2⟧ in ⟦1⟧.", "In ⟦1⟧."), without_strays("⟦2⟧", "x")
        ('Um in ⟦1⟧.', 'x')
    """
    own = re.findall(SYMBOL, sentence)

    def kept(match: re.Match[str]) -> str:
        if match[2] in own:
            own.remove(match[2])
            return match[0]
        return _gap(match)

    text = re.sub(f"( ?)({SYMBOL})", kept, translation)
    if text == translation:
        return text
    return text.strip(" ") if re.search(r"[^\W_]", text) else sentence


class Keeper:
    """Knows the words that stay.

    Args:
        phrases: Words and phrases that stay, besides addresses, numbers and the like.
        placeholders: Those of the model's vocabulary; if it is not known, those that it may have.

    Example:
        >>> shout = Keeper(["Foo Inc"]).keeping(lambda texts: [text.upper() for text in texts])
        >>> shout(["The dog of Foo Inc costs 5 kg."])
        ['THE DOG OF Foo Inc COSTS 5 kg.']
    """

    def __init__(
        self, phrases: Iterable[str] = (), placeholders: Sequence[str] = PLACEHOLDERS
    ) -> None:
        longest_first = sorted(phrases, key=len, reverse=True)
        own = [rf"(?<!\w){re.escape(phrase)}(?!\w)" for phrase in longest_first]
        self.pattern = re.compile("|".join([*own, *KINDS]))
        self._placeholders = placeholders

    def masked(self, text: str) -> str:
        """Return a text of the same length, with ~ in place of words that stay.

        So it has no stops and no spaces within them. Plain numbers stay as they are.
        """

        def covered(match: re.Match[str]) -> str:
            return match[0] if match[0].isdecimal() else COVER * len(match[0])

        return self.pattern.sub(covered, text)

    def marked(self, sentence: str) -> "Marked":
        """Return a sentence with placeholders for its first words, as many as there are."""
        words = list(self.pattern.finditer(sentence))
        free = [symbol for symbol in self._placeholders if symbol not in sentence]
        parts, end = [], 0
        for word, symbol in zip(words, free, strict=False):
            parts += [sentence[end : word.start()], symbol]
            end = word.end()
        return Marked(sentence, "".join([*parts, sentence[end:]]), words, free[: len(words)])

    def keeping(self, translate: Translate) -> Translate:
        """Return a function that translates sentences and keeps their words."""

        def translate_and_keep(sentences: list[str]) -> list[str]:
            marked = [self.marked(sentence) for sentence in sentences]
            asked = [one for one in marked if one.has_text]
            first = translate([one.text for one in asked]) if asked else []
            pairs = zip(asked, first, strict=True)
            lost = [one.sentence for one, translation in pairs if one.lacks(translation)]
            filled = iter(with_words(asked, first, translate(lost) if lost else []))
            return [next(filled) if one.has_text else one.sentence for one in marked]

        return translate_and_keep


class Marked(NamedTuple):
    """A sentence with placeholders.

    Attributes:
        sentence: The sentence as it is.
        text: The sentence with placeholders for its first words that stay.
        words: All words that stay.
        symbols: The placeholders, of the first words.
    """

    sentence: str
    text: str
    words: list[re.Match[str]]
    symbols: list[str]

    @property
    def has_text(self) -> bool:
        """Whether there is a letter beside the words that stay."""
        ends = [0, *(place for word in self.words for place in word.span()), len(self.sentence)]
        gaps = zip(ends[::2], ends[1::2], strict=True)
        return any(LETTER.search(self.sentence, start, end) for start, end in gaps)

    def lacks(self, translation: str) -> bool:
        """Return whether a translation of the text lacks a placeholder.

        Then that of the sentence as it is may be better.
        """
        return any(symbol not in translation for symbol in self.symbols)

    def filled(self, translation: str, of_sentence: str | None = None) -> str:
        """Return a translation with all words that stay.

        Args:
            translation: That of the text.
            of_sentence: That of the sentence as it is, which counts if it has more of the words.
        """
        text, numbers = self._numbered(translation, self.symbols)
        if of_sentence is not None:
            plain, found = self._numbered(of_sentence, [])
            if len(found) > len(numbers):
                translation, text, numbers = of_sentence, plain, found
        if re.search(SYMBOL, translation) and not re.search(r"[^\W_]", text):
            return self.sentence
        text = text if translation.startswith(" ") else text.lstrip(" ")
        for number, word in enumerate(self.words):
            if number not in numbers:
                text = self._with_symbol(text, number, word)
        return self._with_words(text)

    def _numbered(self, translation: str, symbols: Sequence[str]) -> tuple[str, set[int]]:
        """A translation with ⟦n⟧ for the word n, without other placeholders; and the numbers n.

        A number that is written otherwise, such as 1.000 for 1,000, is the word too.
        """
        names = [*symbols, *(word[0] for word in self.words[len(symbols) :])]
        places: dict[str, list[int]] = {}  # of a name -> numbers, the last one first
        for number in reversed(range(len(names))):
            places.setdefault(names[number], []).append(number)
        of_digits = {_digits(name): name for name in names if re.fullmatch(NUMBER, name)}
        numbers: set[int] = set()

        def numbered(match: re.Match[str]) -> str:
            name = match[2] if match[2] in places else of_digits.get(_digits(match[2]), match[2])
            if places.get(name):
                numbers.add(places[name][-1])
                return f"{match[1]}⟦{places[name].pop()}⟧"
            return _gap(match) if re.fullmatch(SYMBOL, match[2]) else match[0]

        words = sorted(places.keys() - {*symbols}, key=len, reverse=True)
        alone = [ALONE.format("|".join(map(re.escape, words)))] if words else []
        kinds = "|".join([SYMBOL, *alone, *([NUMBER] if of_digits else [])])
        return re.sub(f"( ?)({kinds})", numbered, translation), numbers

    def _with_symbol(self, text: str, number: int, word: re.Match[str]) -> str:
        """Put a word at its share of the translation; a full stop stays behind it."""
        is_before_stop = word.end() < len(self.sentence) and LAST_STOP.fullmatch(
            self.sentence, word.end()
        )
        stop = LAST_STOP.search(text)[0] if is_before_stop else ""
        words = text.removesuffix(stop).split(" ")
        place = int(word.start() / len(self.sentence) * len(words) + 0.5)
        return " ".join([*words[:place], f"⟦{number}⟧", *words[place:]]).strip(" ") + stop

    def _with_words(self, text: str) -> str:
        """Put the words in place; none touches another word that it does not touch before."""
        before, *parts = re.split(r"⟦(\d+)⟧", text)
        result, last = [before], -1  # the number of the word before
        for number, behind in zip(map(int, parts[::2]), parts[1::2], strict=True):
            start, end = self.words[number].span()
            if before or last < 0:
                is_apart = _is_glue(before[-1:]) and not _is_glue(self.sentence[start - 1 : start])
            else:
                is_apart = self.words[last].end() != start
            result += [" " * is_apart, self.words[number][0]]
            result.append(
                " " * (_is_glue(behind[:1]) and not _is_glue(self.sentence[end : end + 1]))
            )
            result.append(behind)
            before, last = behind, number
        return "".join(result)


def with_words(sentences: list[Marked], first: list[str], again: list[str]) -> list[str]:
    """Return the translations of sentences with all words that stay.

    Args:
        sentences: The sentences.
        first: The translations of their texts.
        again: Those of the sentences as they are, of those that lack a placeholder.
    """
    others = iter(again)
    return [
        one.filled(translation, next(others) if one.lacks(translation) else None)
        for one, translation in zip(sentences, first, strict=True)
    ]


def _gap(stray: re.Match[str]) -> str:
    """What is in the place of a placeholder, which takes the space before it along."""
    return stray[1] if stray.string[stray.end() : stray.end() + 1].isalnum() else ""


def _is_glue(character: str) -> bool:
    return re.match(GLUE, character) is not None


def _digits(text: str) -> str:
    return re.sub(rf"[^\d{FRACTIONS}]", "", text)
