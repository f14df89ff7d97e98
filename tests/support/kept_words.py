"""Words that stay, sentences with them, and the programs of export/ that keep them."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

ON_DEVICE = Path(__file__).parents[2] / "export" / "on_device"


def program(name: str) -> ModuleType:
    spec = spec_from_file_location(f"on_device_{name}", ON_DEVICE / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


sentences, copies = program("sentences"), program("copies")

KEPT = (
    "https://a.de/x?b=1", "www.x.org/a", "a@b.de", "3.50 €", "$12", "5 kg", "80 km/h", "2024-05-01",
    "-3 °C", "a_b.tar.gz", "%1$s", "12:30", "50%", "{name}", "${HOME}", "%s", "%(n)s", "a_b.txt",
    "/usr/bin/env", "[^note]", "😀",
)  # fmt: skip

# Each of them stays as a whole.
WHOLE = (
    "⏰", "⌚", "⏳", "⌛", "⏩", "▶️", "◼️", "▪️", "ℹ️", "‼️", "⁉️", "™", "⌘", "Ⓜ️", "〰️", "㊗️", "↔️", "©️",
    "1️⃣", "*️⃣", "#⃣", "🇩🇪", "👩‍🚀",
    "IMG_1234.JPG", "REPORT.DOCX", "2024.PDF", "main.c", "test.h", "x.py", "src/x.py",
    ".gitignore", ".env", ".env.local", ".github/workflows/ci.yml",
    "HTTPS://EXAMPLE.COM/A", "Http://example.com", "WWW.X.ORG", "sub.example.co.uk/path", "x.org/a",
    "x.org/", "ssh://a@b.org:22/c", "file:///etc/x", "s3://bucket/key", "localhost:8080",
    "localhost:8080/a?b=1", "x.org:443/", "git@github.com:a/b.git",
    "jane.o'neil@example.com", "o'neil@example.com",
    "{ name }", "{first name}", "{count, number}", "{when, date, short}",
    "5 min", "2 h", "10 s", "30 ms", "24h", "20 mph", "3 lb", "6 oz", "5 ft", "100 Mbit/s",
    "500 mAh", "120 hp", "12 pt", "5 px", "5 t", "5 €/kg", "$5/h", "9.81 m/s²",
    "$1.5M", "£10bn", "₹500", "#12", "−5 °C", "½", "½ kg", "2½ kg", "2 ½ kg", "10–20 kg", "1e10 Hz",
    "1'000'000", "1’000", "1\xa0000", "1\u202f000\xa0kg",
    "2024-03-01T10:00:00Z", "2024-03-01T10:00:00.5+01:00",
)  # fmt: skip

# Of ordinary sentences no more stays than these numbers and this address.
ORDINARY = (
    ("I am 5 in total, he has 2 homes and 3 hats.", ["5", "2", "3"]),
    ("In the 1990s and the '90s we had two 747s.", []),
    ("We saw 5 t-shirts, 5 s'il vous plaît, 5 l'autre.", ["5", "5", "5"]),
    ("10 minutes, 2 hours, 3 tons, 5 feet, 10 o'clock.", ["10", "2", "3", "5", "10"]),
    ("5 am, 5 a 5 I 5 p.m. and 5pm", ["5", "5", "5", "5"]),
    ("He left .She stayed ... so ...what? .", []),
    ("It is e.g./i.e. his/hers and/or Mr./Mrs. X, d.h. z.B. u.dgl. mehr.", []),
    ("He slept .she ate. Acme™ makes it. So it is at 5:3.", ["5:3"]),
    (
        "请见 example.org/a，然后。 example.org/aをご覧 x.org/b—it is.",
        ["example.org/a"] * 2 + ["x.org/b"],
    ),
    ("Note:12 of Kap. 3:5, the ratio is 3:4.", ["12", "3:5", "3:4"]),
    ("{so ist es} and { so ist es auch }", []),
    ("L'adresse d'anna@x.org; it's rock'n'roll, he said 'no'.", ["anna@x.org"]),
    ("In 2024 500 people wrote 12 000 times #hashtag, C# and # so.", ["2024", "500", "12", "000"]),
    (
        "Then 5’11, 5'11, 12'3456 and 10 – 20 – so.",
        ["5", "11", "5", "11", "12", "3456", "10", "20"],
    ),
)

SENTENCES = (
    *(f"The dog is {word} tired, {word}." for word in WHOLE),
    *(sentence for sentence, _ in ORDINARY),
    "See https://a.de/x?b=1 today, or http://x.org/a#b/ and ftp://x.org.",
    "Write to a.b+c@mail.example.co.uk, a@b.de or @nobody.",
    "It costs 3.50 €, $12.99, £ 5 or 1,000 EUR.",
    "5 kg, 80 km/h, 20 °C, 50%, 3 m², 100 kWh and 5kg of 2 things.",
    "On 2024-05-01 at 12:30 in room 5a, A4 and 3rd.",
    "Hello {name}, {{user}}, at 12:30 ${HOME}, for 5 $4, %s, %(count)d and 100%.",
    "Open /usr/bin/env, ~/.bashrc/x, ../a/b, report.pdf, a_b.txt and song.mp3.",
    "and/or e.g. this. That is it.No more...",
    "Smile 😀 👍🏽 👨‍👩‍👧 ☀️.",
    "Note[^1] and [^long-note] of ⟦1⟧ and ⟦12⟧.",
    "On https://en.wikipedia.org/wiki/A_(b). (See http://x.org/a[1], www.x.org/.)",
    "At -3 °C, +5 kg and ±2 of 3 x 4 cm, 1920×1080, 2x and -- no.",
    "%1$s, %-10.2f, %@, #{a}, {{ user.name }}, {% if a %} and 5 % of 50%s.",
    "Take a_b.tar.gz, C:\\Users\\a.txt, src/main.py, ./run, ~/a, v1.2.3-rc.1 and U.S.A. too.",
    "Größe www.größe.de/ä und ändern@größe.de",
)
