"""Codes of languages."""

import functools

LONGEST = 35  # characters of a tag that programs must accept (RFC 5646, section 4.4.1)


def language_tag(code: str) -> str:
    """Return the shortest BCP 47 tag of a language, or `code` if it is not a language's code.

    Languages that CLDR treats as part of another get the tag of that language: `cmn` is `zh`.

    Args:
        code: A code such as "de-AT", "pt_BR", or NLLB's "deu_Latn".

    Example:
        >>> [language_tag(code) for code in ("deu_Latn", "zho_Hans", "pt_BR", "en")]
        ['de', 'zh-Hans', 'pt-BR', 'en']
    """
    return code if len(code) > LONGEST else _standard(code)


def base_language(code: str) -> str:
    """Return a language's tag without its script and region, in lower case.

    Example:
        >>> [base_language(code) for code in ("zho_Hans", "pt_BR", "en")]
        ['zh', 'pt', 'en']
    """
    return language_tag(code).partition("-")[0].lower()


@functools.lru_cache(1024)
def _standard(code: str) -> str:
    import langcodes
    from langcodes.tag_parser import LanguageTagError

    try:
        return langcodes.standardize_tag(code, macro=True)
    except LanguageTagError:
        return code
