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

SENTENCES = (
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
