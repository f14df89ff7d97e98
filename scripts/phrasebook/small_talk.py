"""Fixed phrases of small talk: greetings, thanks, apologies, questions.

The questions are those that one asks a stranger. No rule gives "Gern geschehen." for "You're
welcome.", so all of these are in the training text and none of them is tested. Strangers are
addressed as "Sie"; love is declared with "du".
"""

from __future__ import annotations

from collections.abc import Iterator

from phrasebook.rules import Sentence

# English, German and the word alignment, counted from 0; without one, word by word.
PHRASES: tuple[tuple[str, ...], ...] = (
    # Greetings
    ("Hello.", "Hallo."),
    ("Hi.", "Hallo."),
    ("Good morning.", "Guten Morgen."),
    ("Good afternoon.", "Guten Tag."),
    ("Good evening.", "Guten Abend."),
    ("Good night.", "Gute Nacht."),
    ("Welcome.", "Willkommen."),
    ("Nice to meet you.", "Freut mich, Sie kennenzulernen.", "0-0 0-1 1-3 2-3 3-2"),
    ("Pleased to meet you.", "Freut mich, Sie kennenzulernen.", "0-0 0-1 1-3 2-3 3-2"),
    # Farewells and wishes
    ("Goodbye.", "Auf Wiedersehen.", "0-0 0-1"),
    ("Bye.", "Tschüss."),
    ("See you soon.", "Bis bald.", "0-0 1-0 2-1"),
    ("See you later.", "Bis später.", "0-0 1-0 2-1"),
    ("See you tomorrow.", "Bis morgen.", "0-0 1-0 2-1"),
    ("Have a nice day.", "Einen schönen Tag noch.", "0-3 1-0 2-1 3-2"),
    ("Have a good trip.", "Gute Reise.", "2-0 3-1"),
    ("Good luck.", "Viel Glück."),
    ("Congratulations.", "Herzlichen Glückwunsch.", "0-0 0-1"),
    ("Happy birthday.", "Alles Gute zum Geburtstag.", "0-0 0-1 1-2 1-3"),
    ("Merry Christmas.", "Frohe Weihnachten."),
    ("Happy New Year.", "Frohes neues Jahr."),
    ("Get well soon.", "Gute Besserung.", "0-1 1-0 1-1 2-1"),
    ("Cheers.", "Prost."),
    ("Enjoy your meal.", "Guten Appetit.", "0-0 1-0 2-1"),
    # Thanks, requests, apologies
    ("Thank you.", "Danke.", "0-0 1-0"),
    ("Thanks.", "Danke."),
    ("Thank you very much.", "Vielen Dank.", "0-1 1-1 2-0 3-0"),
    ("Thanks a lot.", "Vielen Dank.", "0-1 1-0 2-0"),
    ("Thank you for your help.", "Danke für Ihre Hilfe.", "0-0 1-0 2-1 3-2 4-3"),
    ("You're welcome.", "Gern geschehen.", "0-0 0-1 1-0 1-1"),
    ("You are welcome.", "Gern geschehen.", "0-0 0-1 1-0 1-1 2-0 2-1"),
    ("Please.", "Bitte."),
    ("Yes, please.", "Ja, bitte."),
    ("No, thank you.", "Nein, danke.", "0-0 1-1 2-1"),
    ("No, thanks.", "Nein, danke."),
    ("Sorry.", "Entschuldigung."),
    ("Excuse me.", "Entschuldigung.", "0-0 1-0"),
    ("I'm sorry.", "Es tut mir leid.", "0-0 0-1 0-2 1-3"),
    ("I am sorry.", "Es tut mir leid.", "0-2 1-0 1-1 2-3"),
    ("I am very sorry.", "Es tut mir sehr leid.", "0-2 1-0 1-1 2-3 3-4"),
    ("No problem.", "Kein Problem."),
    ("Don't worry.", "Keine Sorge."),
    ("It doesn't matter.", "Das macht nichts.", "0-0 1-2 2-1"),
    ("One moment, please.", "Einen Moment, bitte."),
    ("Come in.", "Kommen Sie herein.", "0-0 0-1 1-2"),
    ("Please come in.", "Bitte kommen Sie herein.", "0-0 1-1 1-2 2-3"),
    ("Please sit down.", "Bitte setzen Sie sich.", "0-0 1-1 1-2 1-3 2-1"),
    ("Please wait.", "Bitte warten Sie.", "0-0 1-1 1-2"),
    ("Help me.", "Helfen Sie mir.", "0-0 0-1 1-2"),
    ("Help!", "Hilfe!"),
    ("Can you help me?", "Können Sie mir helfen?", "0-0 1-1 2-3 3-2"),
    ("Can you help me, please?", "Können Sie mir bitte helfen?", "0-0 1-1 2-4 3-2 4-3"),
    (
        "Could you repeat that, please?",
        "Könnten Sie das bitte wiederholen?",
        "0-0 1-1 2-4 3-2 4-3",
    ),
    (
        "Could you speak more slowly, please?",
        "Könnten Sie bitte langsamer sprechen?",
        "0-0 1-1 2-4 3-3 4-3 5-2",
    ),
    # Yes and no, knowing and understanding
    ("Yes.", "Ja."),
    ("No.", "Nein."),
    ("Of course.", "Natürlich.", "0-0 1-0"),
    ("Maybe.", "Vielleicht."),
    ("Really?", "Wirklich?"),
    ("All right.", "In Ordnung."),
    ("Okay.", "Okay."),
    ("I know.", "Ich weiß."),
    ("I don't know.", "Ich weiß es nicht.", "0-0 1-3 2-1 2-2"),
    ("I understand.", "Ich verstehe."),
    ("I don't understand.", "Ich verstehe nicht.", "0-0 1-2 2-1"),
    ("Do you understand?", "Verstehen Sie?", "0-0 1-1 2-0"),
    ("I think so.", "Ich glaube schon."),
    ("I don't think so.", "Ich glaube nicht.", "0-0 1-2 2-1 3-1"),
    ("I agree.", "Ich bin einverstanden.", "0-0 1-1 1-2"),
    ("You are right.", "Sie haben recht."),
    ("That's right.", "Das stimmt.", "0-0 0-1 1-1"),
    ("That is right.", "Das stimmt.", "0-0 1-1 2-1"),
    ("That is too expensive.", "Das ist zu teuer."),
    # How are you?
    ("How are you?", "Wie geht es Ihnen?", "0-0 1-1 1-2 2-3"),
    ("How are you doing?", "Wie geht es Ihnen?", "0-0 1-1 1-2 2-3 3-1"),
    ("I'm fine.", "Mir geht es gut.", "0-0 0-1 0-2 1-3"),
    ("I am fine.", "Mir geht es gut.", "0-0 1-1 1-2 2-3"),
    ("I'm fine, thank you.", "Mir geht es gut, danke.", "0-0 0-1 0-2 1-3 2-4 3-4"),
    ("I am fine, thank you.", "Mir geht es gut, danke.", "0-0 1-1 1-2 2-3 3-4 4-4"),
    ("Fine, thank you.", "Gut, danke.", "0-0 1-1 2-1"),
    ("Very well, thank you.", "Sehr gut, danke.", "0-0 1-1 2-2 3-2"),
    ("And you?", "Und Ihnen?"),
    ("Not bad.", "Nicht schlecht."),
    # Getting to know each other
    ("What is your name?", "Wie heißen Sie?", "0-0 1-1 2-2 3-1"),
    ("What's your name?", "Wie heißen Sie?", "0-0 0-1 1-2 2-1"),
    ("Where are you from?", "Woher kommen Sie?", "0-0 1-1 2-2 3-0"),
    ("Where do you come from?", "Woher kommen Sie?", "0-0 1-1 2-2 3-1 4-0"),
    ("Where do you live?", "Wo wohnen Sie?", "0-0 1-1 2-2 3-1"),
    ("How old are you?", "Wie alt sind Sie?"),
    ("What are you doing?", "Was machen Sie?", "0-0 1-1 2-2 3-1"),
    ("I like you.", "Ich mag dich."),
    ("I love you.", "Ich liebe dich."),
    ("I love you too.", "Ich liebe dich auch."),
    ("I miss you.", "Ich vermisse dich."),
    # Questions of a traveller
    ("Who?", "Wer?"),
    ("What?", "Was?"),
    ("When?", "Wann?"),
    ("Where?", "Wo?"),
    ("Why?", "Warum?"),
    ("Why not?", "Warum nicht?"),
    ("How much?", "Wie viel?"),
    ("What is this?", "Was ist das?"),
    ("What is that?", "Was ist das?"),
    ("Who is that?", "Wer ist das?"),
    ("What does that mean?", "Was bedeutet das?", "0-0 1-1 2-2 3-1"),
    ("What happened?", "Was ist passiert?", "0-0 1-1 1-2"),
    ("What time is it?", "Wie spät ist es?"),
    ("How much is it?", "Wie viel kostet es?"),
    ("How much is this?", "Wie viel kostet das?"),
    ("How much does it cost?", "Wie viel kostet es?", "0-0 1-1 2-2 3-3 4-2"),
    ("Where is the toilet?", "Wo ist die Toilette?"),
    ("Call a doctor!", "Rufen Sie einen Arzt!", "0-0 0-1 1-2 2-3"),
    ("The bill, please.", "Die Rechnung, bitte."),
    ("The menu, please.", "Die Speisekarte, bitte."),
    ("I would like to pay.", "Ich möchte zahlen.", "0-0 1-1 2-1 3-2 4-2"),
    ("I have a question.", "Ich habe eine Frage."),
    ("I need help.", "Ich brauche Hilfe."),
    ("I am lost.", "Ich habe mich verlaufen.", "0-0 1-1 1-2 2-3"),
    ("It is raining.", "Es regnet.", "0-0 1-1 2-1"),
    ("It is snowing.", "Es schneit.", "0-0 1-1 2-1"),
    ("The weather is nice.", "Das Wetter ist schön."),
    ("Let's go.", "Gehen wir.", "0-1 1-0"),
)


FAMILIAR = {  # phrases that address somebody as "Sie", without their mark, and as "du"
    "Freut mich, Sie kennenzulernen": "Freut mich, dich kennenzulernen",
    "Danke für Ihre Hilfe": "Danke für deine Hilfe",
    "Kommen Sie herein": "Komm herein",
    "Bitte kommen Sie herein": "Bitte komm herein",
    "Bitte setzen Sie sich": "Bitte setz dich",
    "Bitte warten Sie": "Bitte warte",
    "Helfen Sie mir": "Hilf mir",
    "Können Sie mir helfen": "Kannst du mir helfen",
    "Können Sie mir bitte helfen": "Kannst du mir bitte helfen",
    "Könnten Sie das bitte wiederholen": "Könntest du das bitte wiederholen",
    "Könnten Sie bitte langsamer sprechen": "Könntest du bitte langsamer sprechen",
    "Verstehen Sie": "Verstehst du",
    "Sie haben recht": "Du hast recht",
    "Wie geht es Ihnen": "Wie geht es dir",
    "Und Ihnen": "Und dir",
    "Wie heißen Sie": "Wie heißt du",
    "Woher kommen Sie": "Woher kommst du",
    "Wo wohnen Sie": "Wo wohnst du",
    "Wie alt sind Sie": "Wie alt bist du",
    "Was machen Sie": "Was machst du",
    "Rufen Sie einen Arzt": "Ruf einen Arzt",
}


def small_talk() -> Iterator[Sentence]:
    """Yield each fixed phrase, glossed, with and without its final mark.

    Example:
        >>> next(small_talk()).german
        'Hallo/0.'
    """
    for english, german, *links in PHRASES:
        for marks in final_marks(english):
            yield glossed_phrase(english[:-1] + marks, german[:-1] + marks, *links)


def final_marks(english: str) -> tuple[str, ...]:
    """The marks that people end a phrase with.

    They are its own or none, and "!" for a short statement.
    """
    mark = english[-1]
    is_exclaimed = mark == "." and len(english.split()) <= 3
    return (mark, "", "!") if is_exclaimed else (mark, "")


def glossed_phrase(english: str, german: str, links: str = "") -> Sentence:
    """Gloss each English word with its position.

    Each German word is glossed with the positions of its English words.
    """
    words = english.split()
    german_words = german.split()
    if not links and len(words) != len(german_words):
        raise ValueError(f"{english!r} and {german!r} differ in their word counts; pass `links`")
    pairs = [link.split("-") for link in links.split()]
    aligned = pairs or [[str(number)] * 2 for number in range(len(words))]

    def gloss_of(german_word: int) -> str:
        return "+".join(i for i, j in aligned if j == str(german_word))

    return Sentence(
        " ".join(with_gloss(word, str(number)) for number, word in enumerate(words)),
        " ".join(with_gloss(word, gloss_of(number)) for number, word in enumerate(german_words)),
    )


def with_gloss(word: str, gloss: str) -> str:
    """`Hallo.` with the gloss 0 is `Hallo/0.`: the mark stays behind the gloss."""
    bare = word.rstrip(".,?!")
    return f"{bare}/{gloss}{word[len(bare) :]}"
