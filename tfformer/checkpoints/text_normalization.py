r"""OPUS-MT's text normalisation before SentencePiece.

The rules are those of the `preprocess.sh` distributed with its models: East Asian punctuation and
curly quotes become plain, invisible characters become spaces, and repeated spaces are merged. The
full-width digit 1 becomes a quotation mark: a bug in that file, with which the models were trained.

A rule is a regular expression and its replacement. The expressions mean the same in Python, in RE2
(TensorFlow) and in JavaScript. The class `\\p{C}` is therefore written out: the control characters,
and the format and private-use characters below U+10000.
"""

Rewrites = tuple[tuple[str, str], ...]

PLAIN = {  # full-width or curly characters -> their replacement
    **{"，、": ",", "”“《》１」「": '"', "∶：": ":", "？": "?", "）": ")", "！": "!", "（": "("},
    **{"；": ";", "０": "0", "２": "2", "３": "3", "４": "4", "５": "5", "６": "6", "７": "7"},
    **{"８": "8", "９": "9", "～": "~", "’": "'", "…": "...", "━": "-", "〈": "<", "〉": ">"},
    **{"【": "[", "】": "]", "％": "%"},
}
INVISIBLE = (
    r"[\x00-\x1f\x7f-\x9f\xad"
    "\u0600-\u0605\u061c\u06dd\u070f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ue000-\uf8ff\ufeff\ufff9-\ufffb]"
)
OPUS_MT: Rewrites = (
    ("[。．] *", ". "),
    *((f"[{characters}]", text) for characters, text in PLAIN.items()),
    (INVISIBLE, " "),
    ("  +", " "),
    ("^ | $", ""),
)
REWRITES: dict[str, Rewrites] = {"none": (), "opus-mt": OPUS_MT}
