"""The words of the phrasebook, and which of them make sense together.

`inflection.py` defines nouns and verbs, `grammar.py` and `everyday.py` make sentences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import ceil

from phrasebook.inflection import (
    FAMILIAR,
    FIRST,
    HER,
    HIS,
    MY,
    OUR,
    PLURAL,
    THEIR,
    THIRD,
    YOUR,
    A,
    Action,
    Adjective,
    Determiner,
    Nominal,
    Noun,
    NounPhrase,
    Pronoun,
    described,
    future,
    modal,
    the,
    verb,
)

# --- Pronouns -------------------------------------------------------------------------------------

ME = Pronoun(FIRST, "I", "me", "ich", "mich", "mir")
YOU = Pronoun(PLURAL, "you", "you", "Sie", "Sie", "Ihnen")
YOU_FAMILIAR = Pronoun(FAMILIAR, "you", "you", "du", "dich", "dir")
HE = Pronoun(THIRD, "he", "him", "er", "ihn", "ihm")
SHE = Pronoun(THIRD, "she", "her", "sie", "sie", "ihr")
IT = Pronoun(THIRD, "it", "it", "es", "es", "ihm")
WE = Pronoun(PLURAL, "we", "us", "wir", "uns", "uns")
THEY = Pronoun(PLURAL, "they", "them", "sie", "sie", "ihnen")

# --- Nouns ----------------------------------------------------------------------------------------

MOTHER = Noun("mother", "die Mutter", "Mütter")
FATHER = Noun("father", "der Vater", "Väter")
SISTER = Noun("sister", "die Schwester", "Schwestern")
BROTHER = Noun("brother", "der Bruder", "Brüder")
DAUGHTER = Noun("daughter", "die Tochter", "Töchter")
SON = Noun("son", "der Sohn", "Söhne")
AUNT = Noun("aunt", "die Tante", "Tanten")
UNCLE = Noun("uncle", "der Onkel", "Onkel")
GRANDMOTHER = Noun("grandmother", "die Großmutter", "Großmütter")
GRANDFATHER = Noun("grandfather", "der Großvater", "Großväter")
CHILD = Noun("child", "das Kind", "Kinder", "children")
ADULTS = (MOTHER, FATHER, SISTER, BROTHER, AUNT, UNCLE)
CHILDREN = (DAUGHTER, SON, CHILD)

WOMAN = Noun("woman", "die Frau", "Frauen", "women")
MAN = Noun("man", "der Mann", "Männer", "men")
BOY = Noun("boy", "der Junge", "Jungen", oblique="Jungen")
GIRL = Noun("girl", "das Mädchen", "Mädchen")
TEACHER = Noun("teacher", "der Lehrer", "Lehrer")
DOCTOR = Noun("doctor", "der Arzt", "Ärzte")
NEIGHBOR = Noun("neighbor", "der Nachbar", "Nachbarn", oblique="Nachbarn")
FRIEND = Noun("friend", "der Freund", "Freunde")
STUDENT = Noun("student", "der Student", "Studenten", oblique="Studenten")

ANIMAL = Noun("animal", "das Tier", "Tiere")
DOG = Noun("dog", "der Hund", "Hunde")
CAT = Noun("cat", "die Katze", "Katzen")
HORSE = Noun("horse", "das Pferd", "Pferde")
COW = Noun("cow", "die Kuh", "Kühe")
PIG = Noun("pig", "das Schwein", "Schweine")
SHEEP = Noun("sheep", "das Schaf", "Schafe", "sheep")
GOAT = Noun("goat", "die Ziege", "Ziegen")
DONKEY = Noun("donkey", "der Esel", "Esel")
RABBIT = Noun("rabbit", "das Kaninchen", "Kaninchen")
MOUSE = Noun("mouse", "die Maus", "Mäuse", "mice")
DUCK = Noun("duck", "die Ente", "Enten")
CHICKEN = Noun("chicken", "das Huhn", "Hühner")
FOX = Noun("fox", "der Fuchs", "Füchse")
BEAR = Noun("bear", "der Bär", "Bären", oblique="Bären")
SQUIRREL = Noun("squirrel", "das Eichhörnchen", "Eichhörnchen")
MONKEY = Noun("monkey", "der Affe", "Affen", oblique="Affen")
WALKERS = (
    ANIMAL,
    DOG,
    CAT,
    HORSE,
    COW,
    PIG,
    SHEEP,
    GOAT,
    DONKEY,
    RABBIT,
    MOUSE,
    DUCK,
    CHICKEN,
    FOX,
    BEAR,
)
JUMPERS = (ANIMAL, DOG, CAT, HORSE, COW, SHEEP, GOAT, DONKEY, RABBIT, FOX)
CLIMBERS = (ANIMAL, CAT, GOAT, MOUSE, BEAR, SQUIRREL, MONKEY)

STREET = Noun("street", "die Straße", "Straßen")
BRIDGE = Noun("bridge", "die Brücke", "Brücken")
SQUARE = Noun("square", "der Platz", "Plätze")
RIVER = Noun("river", "der Fluss", "Flüsse")
STREAM = Noun("stream", "der Bach", "Bäche")
VALLEY = Noun("valley", "das Tal", "Täler")
FIELD = Noun("field", "das Feld", "Felder")
ICE = Noun("ice", "das Eis", countable=False)
MEADOW = Noun("meadow", "die Wiese", "Wiesen")
MOUNTAIN = Noun("mountain", "der Berg", "Berge")
HILL = Noun("hill", "der Hügel", "Hügel")
TREE = Noun("tree", "der Baum", "Bäume")
WALL = Noun("wall", "die Mauer", "Mauern")
ROOF = Noun("roof", "das Dach", "Dächer")
FENCE = Noun("fence", "der Zaun", "Zäune")
HEDGE = Noun("hedge", "die Hecke", "Hecken")
GATE = Noun("gate", "das Tor", "Tore")
DITCH = Noun("ditch", "der Graben", "Gräben")
HOLE = Noun("hole", "das Loch", "Löcher")
CAVE = Noun("cave", "die Höhle", "Höhlen")
BARN = Noun("barn", "die Scheune", "Scheunen")
STABLE = Noun("stable", "der Stall", "Ställe")
FOREST = Noun("forest", "der Wald", "Wälder")
TUNNEL = Noun("tunnel", "der Tunnel", "Tunnel")

ROOM = Noun("room", "das Zimmer", "Zimmer")
HOUSE = Noun("house", "das Haus", "Häuser")
KITCHEN = Noun("kitchen", "die Küche", "Küchen")
DOOR = Noun("door", "die Tür", "Türen")
WINDOW = Noun("window", "das Fenster", "Fenster")

HOTEL = Noun("hotel", "das Hotel", "Hotels")
STATION = Noun("station", "der Bahnhof", "Bahnhöfe")
AIRPORT = Noun("airport", "der Flughafen", "Flughäfen")
RESTAURANT = Noun("restaurant", "das Restaurant", "Restaurants")
MUSEUM = Noun("museum", "das Museum", "Museen")
CHURCH = Noun("church", "die Kirche", "Kirchen")
SCHOOL = Noun("school", "die Schule", "Schulen")
HOSPITAL = Noun("hospital", "das Krankenhaus", "Krankenhäuser")
PHARMACY = Noun("pharmacy", "die Apotheke", "Apotheken")
BAKERY = Noun("bakery", "die Bäckerei", "Bäckereien")
LIBRARY = Noun("library", "die Bibliothek", "Bibliotheken")
MARKET = Noun("market", "der Markt", "Märkte")
PARK = Noun("park", "der Park", "Parks")
BEACH = Noun("beach", "der Strand", "Strände")
CASTLE = Noun("castle", "das Schloss", "Schlösser")
CITY = Noun("city", "die Stadt", "Städte")
VILLAGE = Noun("village", "das Dorf", "Dörfer")
BUILDINGS = (
    HOTEL, STATION, RESTAURANT, MUSEUM, CHURCH, SCHOOL, HOSPITAL, PHARMACY, BAKERY, LIBRARY, MARKET,
    PARK, CASTLE
)  # fmt: skip
DESTINATIONS = (*BUILDINGS, AIRPORT, BEACH)

CAR = Noun("car", "das Auto", "Autos")
BUS = Noun("bus", "der Bus", "Busse")
TRAIN = Noun("train", "der Zug", "Züge")
TAXI = Noun("taxi", "das Taxi", "Taxis")
BICYCLE = Noun("bicycle", "das Fahrrad", "Fahrräder")
TRUCK = Noun("truck", "der Lastwagen", "Lastwagen")
TRACTOR = Noun("tractor", "der Traktor", "Traktoren")
CARRIAGE = Noun("carriage", "die Kutsche", "Kutschen")

SHIRT = Noun("shirt", "das Hemd", "Hemden")
DRESS = Noun("dress", "das Kleid", "Kleider")
COAT = Noun("coat", "der Mantel", "Mäntel")
SKIRT = Noun("skirt", "der Rock", "Röcke")
SWEATER = Noun("sweater", "der Pullover", "Pullover")
JACKET = Noun("jacket", "die Jacke", "Jacken")
SHOE = Noun("shoe", "der Schuh", "Schuhe")
TABLE = Noun("table", "der Tisch", "Tische")
CHAIR = Noun("chair", "der Stuhl", "Stühle")
BED = Noun("bed", "das Bett", "Betten")
SOFA = Noun("sofa", "das Sofa", "Sofas")
LAMP = Noun("lamp", "die Lampe", "Lampen")
CUPBOARD = Noun("cupboard", "der Schrank", "Schränke")
SHELF = Noun("shelf", "das Regal", "Regale", "shelves")
DRAWER = Noun("drawer", "die Schublade", "Schubladen")
MIRROR = Noun("mirror", "der Spiegel", "Spiegel")
PICTURE = Noun("picture", "das Bild", "Bilder")
CLOCK = Noun("clock", "die Uhr", "Uhren")
RADIO = Noun("radio", "das Radio", "Radios")

BOOK = Noun("book", "das Buch", "Bücher")
NEWSPAPER = Noun("newspaper", "die Zeitung", "Zeitungen")
LETTER = Noun("letter", "der Brief", "Briefe")
POSTCARD = Noun("postcard", "die Postkarte", "Postkarten")
TICKET = Noun("ticket", "die Fahrkarte", "Fahrkarten")
KEY = Noun("key", "der Schlüssel", "Schlüssel")
UMBRELLA = Noun("umbrella", "der Regenschirm", "Regenschirme")
CAMERA = Noun("camera", "die Kamera", "Kameras")
SUITCASE = Noun("suitcase", "der Koffer", "Koffer")
BAG = Noun("bag", "die Tasche", "Taschen")
BOX = Noun("box", "die Kiste", "Kisten")
BACKPACK = Noun("backpack", "der Rucksack", "Rucksäcke")
BALL = Noun("ball", "der Ball", "Bälle")
GUITAR = Noun("guitar", "die Gitarre", "Gitarren")
TROPHY = Noun("trophy", "der Pokal", "Pokale")
KNIFE = Noun("knife", "das Messer", "Messer", "knives")
FORK = Noun("fork", "die Gabel", "Gabeln")
SPOON = Noun("spoon", "der Löffel", "Löffel")
GLASS = Noun("glass", "das Glas", "Gläser")
CUP = Noun("cup", "die Tasse", "Tassen")
BOTTLE = Noun("bottle", "die Flasche", "Flaschen")
PIECE = Noun("piece", "das Stück", "Stücke")

APPLE = Noun("apple", "der Apfel", "Äpfel")
PEAR = Noun("pear", "die Birne", "Birnen")
ORANGE = Noun("orange", "die Orange", "Orangen")
CARROT = Noun("carrot", "die Karotte", "Karotten")
POTATO = Noun("potato", "die Kartoffel", "Kartoffeln")
EGG = Noun("egg", "das Ei", "Eier")
SOUP = Noun("soup", "die Suppe", "Suppen")
SALAD = Noun("salad", "der Salat", "Salate")
CAKE = Noun("cake", "der Kuchen", "Kuchen")
SAUSAGE = Noun("sausage", "die Wurst", "Würste")
BREAD = Noun("bread", "das Brot", countable=False)
CHEESE = Noun("cheese", "der Käse", countable=False)
MEAT = Noun("meat", "das Fleisch", countable=False)
COFFEE = Noun("coffee", "der Kaffee", countable=False)
TEA = Noun("tea", "der Tee", countable=False)
MILK = Noun("milk", "die Milch", countable=False)
WATER = Noun("water", "das Wasser", countable=False)
JUICE = Noun("juice", "der Saft", countable=False)
BEER = Noun("beer", "das Bier", countable=False)
WINE = Noun("wine", "der Wein", countable=False)

BALCONY = Noun("balcony", "der Balkon", "Balkone")
SHOWER = Noun("shower", "die Dusche", "Duschen")
BATHROOM = Noun("bathroom", "das Bad", "Bäder")
TELEVISION = Noun("television", "der Fernseher", "Fernseher")
NIGHT = Noun("night", "die Nacht", "Nächte")
PERSON = Noun("person", "die Person", "Personen", "people")

HEAD = Noun("head", "der Kopf", "Köpfe")
BACK = Noun("back", "der Rücken", "Rücken")
KNEE = Noun("knee", "das Knie", "Knie")
HAND = Noun("hand", "die Hand", "Hände")
ARM = Noun("arm", "der Arm", "Arme")
LEG = Noun("leg", "das Bein", "Beine")
FOOT = Noun("foot", "der Fuß", "Füße", "feet")
SHOULDER = Noun("shoulder", "die Schulter", "Schultern")
EYE = Noun("eye", "das Auge", "Augen")
EAR = Noun("ear", "das Ohr", "Ohren")
FINGER = Noun("finger", "der Finger", "Finger")

# --- Adjectives -----------------------------------------------------------------------------------

NEW = Adjective("new", "neu", comparative=("newer", "neuer"))
OLD = Adjective("old", "alt", comparative=("older", "älter"))
BIG = Adjective("big", "groß", comparative=("bigger", "größer"))
SMALL = Adjective("small", "klein", comparative=("smaller", "kleiner"))
LONG = Adjective("long", "lang", comparative=("longer", "länger"))
CHEAP = Adjective("cheap", "billig", comparative=("cheaper", "billiger"))
EXPENSIVE = Adjective("expensive", "teuer", "teur", ("more expensive", "teurer"))
BEAUTIFUL = Adjective("beautiful", "schön", comparative=("more beautiful", "schöner"))
HEAVY = Adjective("heavy", "schwer", comparative=("heavier", "schwerer"))
RED = Adjective("red", "rot")
BLUE = Adjective("blue", "blau")
GREEN = Adjective("green", "grün")
WHITE = Adjective("white", "weiß")
BLACK = Adjective("black", "schwarz")
COLORS = (RED, BLUE, GREEN, WHITE, BLACK)
WARM = Adjective("warm", "warm")
COLD = Adjective("cold", "kalt")
HOT = Adjective("hot", "heiß")
FRESH = Adjective("fresh", "frisch")
GOOD = Adjective("good", "gut")
CLEAN = Adjective("clean", "sauber")
DIRTY = Adjective("dirty", "schmutzig")
QUIET = Adjective("quiet", "ruhig")
INTERESTING = Adjective("interesting", "interessant")
FULL = Adjective("full", "voll")

TIRED = Adjective("tired", "müde")
HUNGRY = Adjective("hungry", "hungrig")
SCARED = Adjective("scared", "ängstlich")
WEAK = Adjective("weak", "schwach")
SLOW = Adjective("slow", "langsam")
SICK = Adjective("sick", "krank")
LAZY = Adjective("lazy", "faul")
NERVOUS = Adjective("nervous", "nervös")
YOUNG = Adjective("young", "jung", comparative=("younger", "jünger"))
SIDES = (Adjective("left", "link"), Adjective("right", "recht"))  # only ever with an ending
FIRST_ONE = Adjective("first", "erst")
LAST_ONE = Adjective("last", "letzt")
NEXT_ONE = Adjective("next", "nächst")
NEAREST = Adjective("nearest", "nächst")
THIRSTY = Adjective("thirsty", "durstig")
ANGRY = Adjective("angry", "wütend")
READY = Adjective("ready", "bereit")
HEALTHY = Adjective("healthy", "gesund")
WINDY = Adjective("windy", "windig")
FOGGY = Adjective("foggy", "neblig")
HAPPY = Adjective("happy", "glücklich")
SAD = Adjective("sad", "traurig")

WIDE = Adjective("wide", "breit")
DEEP = Adjective("deep", "tief")
STEEP = Adjective("steep", "steil")
HIGH = Adjective("high", "hoch", "hoh")
NARROW = Adjective("narrow", "eng")
BUSY = Adjective("busy", "belebt")
SLIPPERY = Adjective("slippery", "rutschig")
MUDDY = Adjective("muddy", "matschig")
DARK = Adjective("dark", "dunkel", "dunkl")
DENSE = Adjective("dense", "dicht")
SOUR = Adjective("sour", "sauer", "saur")
HARD = Adjective("hard", "hart")
DRY = Adjective("dry", "trocken")
TOUGH = Adjective("tough", "zäh")
SALTY = Adjective("salty", "salzig")

# --- Verbs ----------------------------------------------------------------------------------------

CROSS = verb("cross crossed crossed", "überqueren überquert überquerte hat überquert")
CLIMB = verb("climb climbed climbed", "klettern klettert kletterte ist geklettert")
JUMP = verb("jump jumped jumped", "springen springt sprang ist gesprungen")
ENTER = verb("enter entered entered", "betreten betritt betrat hat betreten")
DEVOUR = verb("eat ate eaten", "fressen frisst fraß hat gefressen")  # of animals
FIT = verb("fit fit fit", "passen passt passte hat gepasst")

BUY = verb("buy bought bought", "kaufen kauft kaufte hat gekauft")
SELL = verb("sell sold sold", "verkaufen verkauft verkaufte hat verkauft")
WRITE = verb("write wrote written", "schreiben schreibt schrieb hat geschrieben")
EAT = verb("eat ate eaten", "essen isst aß hat gegessen")
DRINK = verb("drink drank drunk", "trinken trinkt trank hat getrunken")
ORDER = verb("order ordered ordered", "bestellen bestellt bestellte hat bestellt")
FIND = verb("find found found", "finden findet fand hat gefunden")
LOOK_FOR = verb("look looked looked", "suchen sucht suchte hat gesucht", particle="for")
NEED = verb("need needed needed", "brauchen braucht brauchte hat gebraucht")
LOSE = verb("lose lost lost", "verlieren verliert verlor hat verloren")
FORGET = verb("forget forgot forgotten", "vergessen vergisst vergaß hat vergessen")
CLEAN_UP = verb("clean cleaned cleaned", "putzen putzt putzte hat geputzt")
REPAIR = verb("repair repaired repaired", "reparieren repariert reparierte hat repariert")
WEAR = verb("wear wore worn", "tragen trägt trug hat getragen")
TAKE = verb("take took taken", "nehmen nimmt nahm hat genommen")
VISIT = verb("visit visited visited", "besuchen besucht besuchte hat besucht")
MEET = verb("meet met met", "treffen trifft traf hat getroffen")
HELP = verb("help helped helped", "helfen hilft half hat geholfen")
THANK = verb("thank thanked thanked", "danken dankt dankte hat gedankt")
WAIT = verb("wait waited waited", "warten wartet wartete hat gewartet")

OPEN = verb("open opened opened", "auf|machen macht machte hat aufgemacht")
CLOSE = verb("close closed closed", "zu|machen macht machte hat zugemacht")
TURN_ON = verb("turn turned turned", "an|machen macht machte hat angemacht", particle="on")
TURN_OFF = verb("turn turned turned", "aus|machen macht machte hat ausgemacht", particle="off")
PUT_ON = verb("put put put", "an|ziehen zieht zog hat angezogen", particle="on")
TAKE_OFF = verb("take took taken", "aus|ziehen zieht zog hat ausgezogen", particle="off")
BRING_ALONG = verb(
    "bring brought brought", "mit|bringen bringt brachte hat mitgebracht", particle="along"
)
CALL = verb("call called called", "an|rufen ruft rief hat angerufen")
PICK_UP = verb("pick picked picked", "ab|holen holt holte hat abgeholt", particle="up")
INVITE = verb("invite invited invited", "ein|laden lädt lud hat eingeladen")
ARRIVE = verb("arrive arrived arrived", "an|kommen kommt kam ist angekommen")
LEAVE = verb("leave left left", "ab|fahren fährt fuhr ist abgefahren")
GET_UP = verb("get got got", "auf|stehen steht stand ist aufgestanden", particle="up")

GIVE = verb("give gave given", "geben gibt gab hat gegeben")
SHOW = verb("show showed shown", "zeigen zeigt zeigte hat gezeigt")
SEND = verb("send sent sent", "schicken schickt schickte hat geschickt")
BRING = verb("bring brought brought", "bringen bringt brachte hat gebracht")
PUT = verb("put put put", "legen legt legte hat gelegt")
GO = verb("go went gone", "gehen geht ging ist gegangen")
DRIVE = verb("drive drove driven", "fahren fährt fuhr ist gefahren")
WORK = verb("work worked worked", "arbeiten arbeitet arbeitete hat gearbeitet")
LIVE = verb("live lived lived", "wohnen wohnt wohnte hat gewohnt")
COST = verb("cost cost cost", "kosten kostet kostete hat gekostet")
LIKE = verb("like liked liked", "gefallen gefällt gefiel hat gefallen")
HURT = verb("hurt hurt hurt", "weh|tun tut tat hat wehgetan")
GET_TO = verb("get got got", "kommen kommt kam ist gekommen")
MOVE = verb("move moved moved", "bewegen bewegt bewegte hat bewegt")
RAIN = verb("rain rained rained", "regnen regnet regnete hat geregnet")
SNOW = verb("snow snowed snowed", "schneien schneit schneite hat geschneit")
READ = verb("read read read", "lesen liest las hat gelesen")
SEE = verb("see saw seen", "sehen sieht sah hat gesehen")
HEAR = verb("hear heard heard", "hören hört hörte hat gehört")
ASK = verb("ask asked asked", "fragen fragt fragte hat gefragt")
LOVE = verb("love loved loved", "lieben liebt liebte hat geliebt")
UNDERSTAND = verb("understand understood understood", "verstehen versteht verstand hat verstanden")
KNOW_SOMEONE = verb("know knew known", "kennen kennt kannte hat gekannt")
HAVE = verb("have had had", "haben hat hatte hat gehabt", present=("have", "has", "have"))
SPEAK = verb("speak spoke spoken", "sprechen spricht sprach hat gesprochen")
COME = verb("come came come", "kommen kommt kam ist gekommen")
BE_CALLED = verb("be was been", "heißen heißt hieß hat geheißen", present=("am", "is", "are"))
LIKE_EATING = verb(
    "like liked liked", "mögen mag mochte hat gemocht", Präsens=("mag", "mag", "mögen")
)
SLEEP = verb("sleep slept slept", "schlafen schläft schlief hat geschlafen")
SWIM = verb("swim swam swum", "schwimmen schwimmt schwamm ist geschwommen")
DANCE = verb("dance danced danced", "tanzen tanzt tanzte hat getanzt")
SING = verb("sing sang sung", "singen singt sang hat gesungen")
COOK = verb("cook cooked cooked", "kochen kocht kochte hat gekocht")
LEARN = verb("learn learned learned", "lernen lernt lernte hat gelernt")
LAUGH = verb("laugh laughed laughed", "lachen lacht lachte hat gelacht")
PLAY = verb("play played played", "spielen spielt spielte hat gespielt")
TURN = verb("turn turned turned", "ab|biegen biegt bog ist abgebogen")
STAY = verb("stay stayed stayed", "bleiben bleibt blieb ist geblieben")
TRAVEL = verb("travel traveled traveled", "reisen reist reiste ist gereist")
BE = verb(
    "be was been",
    "sein ist war ist gewesen",
    present=("am", "is", "are"),
    past=("was", "was", "were"),
    Präsens=("bin", "ist", "sind"),
)

KNOW = verb("know knew known", "wissen weiß wusste hat gewusst", Präsens=("weiß", "weiß", "wissen"))
BELIEVE = verb("believe believed believed", "glauben glaubt glaubte hat geglaubt")
SAY = verb("say said said", "sagen sagt sagte hat gesagt")
HOPE = verb("hope hoped hoped", "hoffen hofft hoffte hat gehofft")
TRY = verb("try tried tried", "versuchen versucht versuchte hat versucht")
PROMISE = verb("promise promised promised", "versprechen verspricht versprach hat versprochen")


WILL = future()
CAN = modal("can", "kann können")
MUST = modal("must", "muss müssen")
COULD = modal("could", "könnte könnten")
SHOULD = modal("should", "sollte sollten")
WANT_TO = modal("want to", "will wollen", third="wants to")
WOULD_LIKE_TO = modal("would like to", "möchte möchten")
WOULD_LIKE = modal("would like", "möchte möchten")

# --- Subjects, actions and their objects ----------------------------------------------------------


SUBJECTS: tuple[Nominal, ...] = (
    ME, HE, SHE, WE, THEY,
    NounPhrase(MOTHER, determiner=MY), NounPhrase(FATHER, determiner=HIS),
    NounPhrase(SISTER, determiner=HER), NounPhrase(BROTHER, determiner=MY),
    NounPhrase(DAUGHTER, determiner=THEIR), NounPhrase(UNCLE, determiner=OUR),
    NounPhrase(NEIGHBOR, determiner=OUR), NounPhrase(FRIEND, determiner=HER, plural=True),
    the(GIRL), the(TEACHER), the(STUDENT, plural=True), the(WOMAN, OLD), the(MAN, YOUNG),
)  # fmt: skip
ASKED_ABOUT: tuple[Nominal, ...] = (
    YOU, HE, SHE, THEY,
    NounPhrase(MOTHER, determiner=YOUR), NounPhrase(BROTHER, determiner=YOUR),
    NounPhrase(SISTER, determiner=HIS), NounPhrase(UNCLE, determiner=HER),
    NounPhrase(CHILD, determiner=YOUR, plural=True), the(TEACHER), the(GIRL), the(WOMAN, YOUNG),
    the(STUDENT, plural=True),
)  # fmt: skip
GIVERS: tuple[Nominal, ...] = (
    ME, HE, SHE, WE, THEY, NounPhrase(MOTHER, determiner=HER), NounPhrase(UNCLE, determiner=MY),
    the(TEACHER), NounPhrase(FRIEND, determiner=OUR, plural=True),
)  # fmt: skip
RECEIVERS: tuple[Nominal, ...] = (
    ME, HE, SHE, WE, THEY, YOU,
    NounPhrase(FATHER, determiner=MY), NounPhrase(AUNT, determiner=MY),
    NounPhrase(BROTHER, determiner=HIS), NounPhrase(DAUGHTER, determiner=HER),
    NounPhrase(SON, determiner=OUR), NounPhrase(CHILD, determiner=THEIR),
    NounPhrase(FRIEND, determiner=MY), NounPhrase(NEIGHBOR, determiner=HIS), the(DOCTOR), the(BOY),
    the(GIRL), the(TEACHER, OLD), the(WOMAN, YOUNG), the(STUDENT, plural=True),
)  # fmt: skip
DINERS = tuple(
    person for person in RECEIVERS if getattr(person, "noun", None) not in (CHILD, BOY, GIRL)
)
PEOPLE = (
    *RECEIVERS,
    NounPhrase(FRIEND, OLD, A),
    NounPhrase(WOMAN, YOUNG, A),
    NounPhrase(CHILD, SICK, A),
)

WORN_BY_ALL = described((SHIRT, COAT, JACKET, SWEATER), (NEW, WARM, *COLORS))
WORN_BY_ALL += described((SHOE,), (NEW, *COLORS), plural=True)
CLOTHES = WORN_BY_ALL + described((DRESS, SKIRT), (NEW, WARM, *COLORS))
FURNITURE = described(
    (TABLE, CHAIR, BED, SOFA, LAMP, CUPBOARD, MIRROR, CLOCK), (NEW, OLD, SMALL, EXPENSIVE)
)
LUGGAGE = described((SUITCASE, BAG, BACKPACK, UMBRELLA, CAMERA, KEY), (NEW, OLD, SMALL, BLACK))
PRINTED = described((BOOK, NEWSPAPER), (NEW, OLD, GOOD, INTERESTING)) + described(
    (TICKET,), (NEW, CHEAP)
)
MAIL = described((LETTER, POSTCARD), (LONG, BEAUTIFUL))
GROCERIES = described((BREAD, CHEESE, CAKE, SALAD), (FRESH, GOOD)) + described(
    (SOUP,), (WARM, GOOD)
)
GROCERIES += described((APPLE, PEAR, ORANGE, CARROT, POTATO, EGG), (BIG, FRESH), plural=True)
DRINKS = (
    described((COFFEE, TEA), (HOT, COLD, GOOD))
    + described((MILK, WATER), (WARM, COLD))
    + described((JUICE,), (COLD, FRESH))
)
VEHICLES = described((CAR, BICYCLE), (NEW, OLD, RED, EXPENSIVE))
SIGHTS = described((MUSEUM, CASTLE, CHURCH, MARKET, CITY, VILLAGE), (OLD, BEAUTIFUL, SMALL))
ROOMS = described((ROOM, KITCHEN), (DIRTY, BIG, SMALL))
OPENINGS = described((DOOR, WINDOW), (BIG, SMALL)) + described((SUITCASE, BAG, BOX), (BIG, HEAVY))
DEVICES = described((LAMP, RADIO, TELEVISION), (NEW, OLD, SMALL))

BUYING = Action(BUY, CLOTHES + FURNITURE + LUGGAGE + PRINTED + GROCERIES + VEHICLES)
ORDERING = Action(ORDER, GROCERIES + DRINKS)
FINDING = Action(FIND, LUGGAGE + PRINTED)
LOSING = Action(LOSE, LUGGAGE + described((TICKET,), (NEW,)))
FORGETTING = Action(FORGET, LUGGAGE + PRINTED)
SELLING = Action(SELL, FURNITURE + VEHICLES)
REPAIRING = Action(REPAIR, VEHICLES + DEVICES + described((CLOCK, CHAIR, CAMERA), (OLD,)))
CLEANING = Action(
    CLEAN_UP, ROOMS + described((WINDOW,), (DIRTY,)) + described((SHOE,), (DIRTY,), plural=True)
)
SEEING_SIGHTS = Action(VISIT, SIGHTS)
BRINGING_ALONG = Action(BRING_ALONG, GROCERIES + PRINTED + described((UMBRELLA, CAMERA), (OLD,)))
NEEDING = Action(NEED, LUGGAGE + FURNITURE + CLOTHES)
WEARING = Action(WEAR, WORN_BY_ALL)
WAITING = Action(WAIT, described((BUS, TRAIN, TAXI), ()), "Akkusativ", "for", "auf")
TAKING = Action(TAKE, described((BUS, TRAIN, TAXI), ()))
PUTTING_ON = Action(PUT_ON, WORN_BY_ALL)  # apart, because its past tense looks like its present
SWITCHING = (
    Action(OPEN, OPENINGS),
    Action(CLOSE, OPENINGS),
    Action(TURN_ON, DEVICES),
    Action(TURN_OFF, DEVICES),
)
THING_ACTIONS = (
    BUYING, ORDERING, FINDING, LOSING, FORGETTING, SELLING, REPAIRING, CLEANING, SEEING_SIGHTS,
    BRINGING_ALONG, WAITING, NEEDING, WEARING,
    Action(LOOK_FOR, LUGGAGE + PRINTED),
    Action(WRITE, MAIL + described((BOOK,), (NEW, GOOD))),
    Action(EAT, GROCERIES),
    Action(DRINK, DRINKS),
    TAKING,
    *SWITCHING,
    Action(TAKE_OFF, WORN_BY_ALL),
)  # fmt: skip
CALLING = Action(CALL, PEOPLE)
HELPING = Action(HELP, PEOPLE, "Dativ")
INVITING = Action(INVITE, PEOPLE)
COLLECTING = Action(
    PICK_UP, tuple(person for person in PEOPLE if isinstance(person, NounPhrase))
)  # not "pick up him"
PERSON_ACTIONS = (
    CALLING, HELPING, INVITING, COLLECTING,
    Action(VISIT, PEOPLE),
    Action(MEET, PEOPLE),
    Action(THANK, PEOPLE, "Dativ"),
    Action(WAIT, PEOPLE, "Akkusativ", "for", "auf"),
    Action(LOOK_FOR, PEOPLE),
)  # fmt: skip
ACCOMPLISHMENTS = (*(action for action in THING_ACTIONS if action is not NEEDING), PUTTING_ON)
DELIBERATE = tuple(action for action in ACCOMPLISHMENTS if action not in (LOSING, FORGETTING))
PLANS = (
    SEEING_SIGHTS, CLEANING, REPAIRING, BRINGING_ALONG, WAITING, TAKING, WEARING, PUTTING_ON,
    *SWITCHING
)  # fmt: skip
GOOD_NEWS = (BUYING, FINDING, REPAIRING, CLEANING, SEEING_SIGHTS, BRINGING_ALONG)
BAD_NEWS = (LOSING, FORGETTING, SELLING)
INTENTIONS = (BUYING, SELLING, REPAIRING, CLEANING, SEEING_SIGHTS, BRINGING_ALONG, *SWITCHING)
PRESENTS = described((BOOK, BAG, BALL, LAMP, CAMERA, UMBRELLA, CLOCK), (NEW,)) + described(
    (LETTER, POSTCARD), (LONG,)
)
GIVING = tuple(Action(verb, PRESENTS) for verb in (GIVE, SHOW, SEND, BRING))


@dataclass(frozen=True, eq=False)
class Scene:
    """An action that actors did not do, for one of two reasons.

    A quality fits one noun only.
    """

    action: Action
    actors: tuple[Noun, ...]
    actor_qualities: tuple[Adjective, ...]
    obstacles: dict[Noun, tuple[Adjective, ...]]


CROSSING = Action(CROSS, ())
CLIMBING = Action(CLIMB, (), "Akkusativ", "", "auf")
JUMPING = Action(JUMP, (), "Akkusativ", "over", "über")
ENTERING = Action(ENTER, ())
DEVOURING = Action(DEVOUR, ())
FITTING = Action(FIT, (), "Akkusativ", "into", "in")

SCENES = (
    Scene(CROSSING, WALKERS, (TIRED, SCARED, WEAK, SLOW, HUNGRY, SICK, NERVOUS, YOUNG), {
        STREET: (WIDE, BUSY, SLIPPERY), BRIDGE: (NARROW, LONG, HIGH, SLIPPERY),
        SQUARE: (BUSY, SLIPPERY), RIVER: (WIDE, DEEP), STREAM: (WIDE, DEEP), VALLEY: (WIDE, DEEP),
        FIELD: (WIDE, MUDDY), MEADOW: (STEEP, MUDDY), ICE: (SLIPPERY,),
    }),
    Scene(CLIMBING, CLIMBERS, (TIRED, SCARED, WEAK, SICK, LAZY, YOUNG), {
        MOUNTAIN: (STEEP, HIGH), HILL: (STEEP,), TREE: (HIGH,), WALL: (HIGH, SLIPPERY),
        ROOF: (STEEP, HIGH, SLIPPERY), GATE: (HIGH,),
    }),
    Scene(JUMPING, JUMPERS, (TIRED, SCARED, WEAK, SICK, LAZY, YOUNG), {
        FENCE: (HIGH,), WALL: (HIGH, WIDE), HEDGE: (HIGH, DENSE), GATE: (HIGH,),
        DITCH: (WIDE, DEEP), HOLE: (WIDE, DEEP), STREAM: (WIDE,),
    }),
    Scene(ENTERING, WALKERS, (SCARED, NERVOUS, TIRED), {
        CAVE: (DARK, DEEP, NARROW), BARN: (DARK, NARROW), STABLE: (DARK, NARROW),
        FOREST: (DARK, DENSE), ROOM: (DARK, NARROW), HOUSE: (DARK,), TUNNEL: (DARK, NARROW, LONG),
    }),
    Scene(DEVOURING, (ANIMAL, HORSE, GOAT, DONKEY, PIG, RABBIT, MOUSE, BEAR, MONKEY), (
        TIRED, SICK, NERVOUS, SCARED,
    ), {
        APPLE: (SOUR, HARD), PEAR: (SOUR, HARD), CARROT: (HARD,), BREAD: (HARD, DRY),
        CHEESE: (HARD, SALTY),
    }),
    Scene(DEVOURING, (ANIMAL, DOG, CAT, FOX, BEAR), (TIRED, SICK, NERVOUS, SCARED), {
        MEAT: (TOUGH, SALTY), SAUSAGE: (DRY, SALTY), EGG: (SALTY,), SOUP: (SALTY,),
    }),
    Scene(CROSSING, (CAR, BUS, TRUCK, TRACTOR, CARRIAGE), (HEAVY, SLOW), {
        BRIDGE: (NARROW, STEEP), STREAM: (DEEP, WIDE), FIELD: (MUDDY,), MEADOW: (MUDDY,),
        RIVER: (DEEP,), ICE: (SLIPPERY,),
    }),
    Scene(FITTING, (SUITCASE, BOX, BICYCLE, GUITAR, PICTURE, LAMP, MIRROR, TABLE, SOFA), (
        BIG, WIDE, HIGH,
    ), {
        CAR: (SMALL,), KITCHEN: (SMALL, NARROW), CUPBOARD: (SMALL, NARROW), ROOM: (SMALL, NARROW),
    }),
    Scene(FITTING, (BOOK, TROPHY, BALL, RADIO, CAMERA, UMBRELLA, NEWSPAPER, PICTURE), (BIG, WIDE), {
        BAG: (SMALL, NARROW, FULL), SUITCASE: (SMALL, FULL), BACKPACK: (SMALL, FULL),
        DRAWER: (SMALL, NARROW, FULL), BOX: (SMALL, NARROW, FULL),
    }),
)  # fmt: skip


def scenes(fitting: bool) -> Iterator[tuple[Noun, Action, Noun, Adjective, Noun]]:
    """Yield actor, action, obstacle, quality and the noun that has the quality.

    The two nouns differ in German gender.
    """
    for scene in SCENES:
        if (scene.action is FITTING) != fitting:
            continue
        for actor, obstacle in product(scene.actors, scene.obstacles):
            if actor.gender != obstacle.gender:
                yield from (
                    (actor, scene.action, obstacle, quality, actor)
                    for quality in scene.actor_qualities
                )
                yield from (
                    (actor, scene.action, obstacle, quality, obstacle)
                    for quality in scene.obstacles[obstacle]
                )


def properties() -> Iterator[tuple[Noun, Adjective]]:
    """Each noun of the scenes with each adjective that can be true of it."""
    yield from dict.fromkeys(
        (bearer, quality) for fitting in (False, True) for *_, quality, bearer in scenes(fitting)
    )


def transitive(
    subjects: tuple[Nominal, ...],
    actions: tuple[Action, ...],
    adjectives: bool = True,
    at_most: int = 30,
) -> Iterator[tuple[Nominal, Action, Nominal]]:
    """Yield subjects, actions and objects that make sense together.

    No subject acts on itself. Each verb has `at_most` objects, so that none crowds out another.
    """
    for subject, action in product(subjects, actions):
        things = [
            thing for thing in action.objects if adjectives or not getattr(thing, "adjective", None)
        ]
        for thing in things[:: ceil(len(things) / at_most)]:
            if not same_person(subject, thing):
                yield subject, action, thing


def same_person(first: Nominal, second: Nominal) -> bool:
    """Whether a verb between the two would be reflexive.

    Examples are "I call us" and "the boy helps the boy".
    """
    if isinstance(first, NounPhrase) and isinstance(second, NounPhrase):
        return first.noun is second.noun
    return first is second or {first, second} == {ME, WE}


# --- Tenses, moods and the surroundings of a clause -----------------------------------------------

IS_AND_WAS = (("is", "ist"), ("was", "war"))
TOO_AND_VERY = (("too", "zu"), ("very", "sehr"))
NOT_DONE = ((("didn't", "Präteritum"), ("was", "war")), (("don't", "Präsens"), ("is", "ist")))
UNABLE = (("couldn't", "konnte", ("was", "war")), ("can't", "kann", ("is", "ist")))
PRESENT = ("present", "Präsens")
PAST = ("past", "Präteritum")
PROGRESSIVE = ("progressive", "Präsens")
NEGATED = (("don't", "Präsens"), ("didn't", "Präteritum"))
WHEN = (
    ("every day", "jeden Tag", PRESENT),
    ("yesterday", "gestern", PAST),
    ("last week", "letzte Woche", PAST),
    ("on Sunday", "am Sonntag", PAST),
    ("today", "heute", PRESENT),
)
MODALS = (CAN, MUST, SHOULD, WANT_TO, WOULD_LIKE_TO, WILL)
TO_DO = ((TRY, PAST), (PROMISE, PRESENT), (PROMISE, PAST), (HOPE, PRESENT), (FORGET, PAST))
KNOWING = ((ME, KNOW), (HE, KNOW), (SHE, SAY), (WE, BELIEVE))
OTHERS = (ME, WE, NounPhrase(GRANDMOTHER, determiner=MY), NounPhrase(GRANDFATHER, determiner=THEIR))
GLAD_OR_SORRY = ((HAPPY, "because", "weil"), (SAD, "although", "obwohl"))
SORRY_OR_GLAD = ((SAD, "because", "weil"), (HAPPY, "although", "obwohl"))
CONDITIONS = (
    ("if/if it/rain rains/rain", "wenn/if es/rain regnet/rain"),
    ("if/if it/snow snows/snow", "wenn/if es/snow schneit/snow"),
    (
        "if/if the/the:weather weather is good",
        "wenn/if das/the:weather Wetter/weather gut/good ist/is",
    ),
    (
        "if/if the/the:weather weather is bad",
        "wenn/if das/the:weather Wetter/weather schlecht/bad ist/is",
    ),
    (
        "when/when the/the:guests guests arrive",
        "wenn/when die/the:guests Gäste/guests ankommen/arrive",
    ),
)

# --- Places, numbers, times and the topics of a phrasebook ----------------------------------------

SMALL_THINGS = (
    KEY,
    BOOK,
    NEWSPAPER,
    LETTER,
    TICKET,
    CAMERA,
    KNIFE,
    FORK,
    SPOON,
    POSTCARD,
    UMBRELLA,
    SHIRT,
)
SPOTS = (
    *product((("in", "in", "into"),), (BAG, BOX, DRAWER, SUITCASE, CUPBOARD, BACKPACK, CAR)),
    *product((("on", "auf", "on"),), (TABLE, CHAIR, BED, SOFA, SHELF)),
    *product((("under", "unter", "under"),), (TABLE, CHAIR, BED, SOFA)),
    *product(
        (("next to", "neben", "next to"),),
        (LAMP, CLOCK, BED, MIRROR, GLASS, CUP, RADIO, TELEVISION),
    ),
    *product((("behind", "hinter", "behind"),), (DOOR, SOFA, MIRROR, CUPBOARD, TELEVISION)),
)
SITES = tuple(
    product((("next to", "neben"), ("behind", "hinter"), ("in front of", "vor")), BUILDINGS)
)

ENGLISH_NUMBERS = (
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
GERMAN_NUMBERS = (
    "ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf",
    "zwölf", "dreizehn", "vierzehn", "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn",
)  # fmt: skip
ENGLISH_TENS = (
    "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
)  # fmt: skip
GERMAN_TENS = (
    "zwanzig", "dreißig", "vierzig", "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig",
)  # fmt: skip


def numeral(number: int) -> Determiner:
    """A number below a hundred as a determiner: twenty-five, fünfundzwanzig."""
    if number < 20:
        return Determiner(ENGLISH_NUMBERS[number - 1], GERMAN_NUMBERS[number - 1], "bare")
    tens, ones = divmod(number, 10)
    english, german = ENGLISH_TENS[tens - 2], GERMAN_TENS[tens - 2]
    if ones:
        english = f"{english}-{ENGLISH_NUMBERS[ones - 1]}"
        german = f"{GERMAN_NUMBERS[ones - 1]}und{german}"
    return Determiner(english, german, "bare")


SMALL_NUMBERS = tuple(numeral(number) for number in range(2, 13))
AGES_OF_CHILDREN = tuple(numeral(number) for number in range(2, 20))
AGES_OF_ADULTS = tuple(numeral(number) for number in range(25, 100, 5))
PRICES = tuple(numeral(number) for number in (*range(10, 21), *range(25, 100, 5)))
HOUSEHOLD = (*CLOTHES, *FURNITURE, *LUGGAGE, *VEHICLES)
GOODS = described(
    (SHIRT, DRESS, CHAIR, LAMP, BOOK, TICKET, GLASS, CUP, BOTTLE), (NEW, CHEAP), plural=True
)
COUNTED = GOODS + described((APPLE, PEAR, ORANGE, CARROT, POTATO, EGG), (BIG, FRESH), plural=True)


def clock_times() -> Iterator[tuple[str, str, str]]:
    """Yield the name, the English and the German of each quarter of an hour.

    German names the half hour by the hour to come.
    """
    for hour in range(1, 13):
        english, german = ENGLISH_NUMBERS[hour - 1], GERMAN_NUMBERS[hour - 1]
        spoken = "eins" if hour == 1 else german
        following = "eins" if hour == 12 else GERMAN_NUMBERS[hour]
        yield f"{english} o'clock", f"{english} o'clock", f"{german}/{english} Uhr/o'clock"
        yield (
            f"half past {english}",
            f"half past {english}",
            f"halb/half+past {following}/{english}",
        )
        for relation, beziehung in (("past", "nach"), ("to", "vor")):
            yield (
                f"quarter {relation} {english}",
                f"quarter {relation}/quarter_{relation} {english}",
                f"Viertel/quarter {beziehung}/quarter_{relation} {spoken}/{english}",
            )


CLOCK_TIMES = tuple(clock_times())
EVENTS = (
    *product(
        (the(noun, which) for noun in (TRAIN, BUS) for which in (None, FIRST_ONE, LAST_ONE)),
        (ARRIVE, LEAVE),
    ),
    *product(
        (the(noun) for noun in (MUSEUM, CASTLE, LIBRARY, BAKERY, PHARMACY, RESTAURANT, MARKET)),
        (OPEN, CLOSE),
    ),
    *product(SUBJECTS, (GET_UP, ARRIVE)),
)

COMPARABLE = tuple(
    (adjective, first, second)
    for nouns, adjectives in (
        ((SHIRT, DRESS, COAT, SKIRT, JACKET), (NEW, OLD, LONG, CHEAP, EXPENSIVE, BEAUTIFUL)),
        (
            (TABLE, CHAIR, BED, SOFA, LAMP, CUPBOARD, MIRROR),
            (NEW, OLD, BIG, SMALL, CHEAP, EXPENSIVE, BEAUTIFUL, HEAVY),
        ),
        (BUILDINGS, (NEW, OLD, BIG, SMALL, BEAUTIFUL)),
        ((CAR, BUS, TRAIN, BICYCLE, TAXI), (NEW, OLD, BIG, SMALL, CHEAP, EXPENSIVE)),
    )
    for adjective, first, second in product(adjectives, nouns, nouns)
    if first is not second
)
PEERS = tuple(
    (adjective, first, second)
    for generation in ((MOTHER, FATHER, AUNT, UNCLE), (SISTER, BROTHER, FRIEND, NEIGHBOR), CHILDREN)
    for adjective, first, second in product((OLD, YOUNG), generation, generation)
    if first is not second
)
CITIES = (
    ("Berlin", "Berlin"), ("Hamburg", "Hamburg"), ("Dresden", "Dresden"), ("Bremen", "Bremen"),
    ("Leipzig", "Leipzig"), ("Zurich", "Zürich"), ("Munich", "München"), ("Vienna", "Wien"),
    ("Cologne", "Köln"),
)  # fmt: skip
SERVINGS = (
    *product((CUP,), (COFFEE, TEA, MILK)), *product((GLASS,), (WATER, MILK, JUICE, WINE, BEER)),
    *product((BOTTLE,), (WATER, JUICE, WINE, BEER, MILK)),
    *product((PIECE,), (CAKE, BREAD, CHEESE, MEAT)),
)  # fmt: skip
DISHES = (
    *product((SOUP, TEA, COFFEE, MEAT), (COLD, HOT)),
    *product((SOUP, SALAD, MEAT, SAUSAGE, CHEESE), (SALTY,)),
    *product((MEAT, SAUSAGE, CAKE, BREAD), (DRY,)),
    *product((SOUP, SALAD, CAKE, WINE, BEER, COFFEE), (EXPENSIVE,)),
)  # fmt: skip
DAYS = (
    ("Monday", "Montag"), ("Tuesday", "Dienstag"), ("Wednesday", "Mittwoch"),
    ("Thursday", "Donnerstag"), ("Friday", "Freitag"), ("Saturday", "Samstag"),
    ("Sunday", "Sonntag"),
)  # fmt: skip
WEATHER_DAYS = (
    ("is", "today", "ist", "heute"), ("was", "yesterday", "war", "gestern"),
)  # fmt: skip
LIMBS = described((KNEE, HAND, ARM, LEG, FOOT, SHOULDER), SIDES)
LIMBS += described((KNEE, HAND, ARM, LEG, FOOT, SHOULDER, FINGER), (), plural=True)
BODY = (
    *LIMBS,
    *described((HEAD, BACK), ()),
    *described((EYE, EAR), SIDES),
    *described((EYE, EAR), (), plural=True),
)

# --- Everyday life --------------------------------------------------------------------------------

THINGS_TO_HAVE = (
    *LUGGAGE, *PRINTED, *VEHICLES,
    *described((DOG, CAT, HORSE), (OLD, YOUNG, BIG, SMALL, BLACK, WHITE)),
    *described((SISTER, BROTHER, DAUGHTER, SON), ()),
    *described((APPLE, PEAR, ORANGE), (BIG, FRESH), plural=True),
)  # fmt: skip
HAVING = Action(HAVE, THINGS_TO_HAVE)
LOVED = tuple(person for person in PEOPLE if person is not YOU)  # a stranger is not told so
READING = Action(READ, PRINTED + MAIL)
SEEING_THINGS = (Action(SEE, SIGHTS), Action(KNOW_SOMEONE, SIGHTS))
SEEING_PEOPLE = (
    *(Action(verb, PEOPLE) for verb in (SEE, KNOW_SOMEONE, HEAR, ASK, UNDERSTAND)),
    Action(LOVE, LOVED),
)
IN_PROGRESS = (*(action for action in DELIBERATE if action is not FINDING), READING)
REQUESTS = (
    BUYING, REPAIRING, CLEANING, BRINGING_ALONG, WAITING, TAKING, *SWITCHING, READING
)  # fmt: skip
PEOPLE_REQUESTS = (CALLING, HELPING, INVITING, COLLECTING)
EATING = Action(LIKE_EATING, GROCERIES + DRINKS)

Adverb = tuple[str, str, bool]  # English, German, and whether "nicht" stands before it
NO_ADVERB = ("", "", True)
HERE = ("here", "hier", True)
AT_HOME = ("at home", "zu Hause", True)
ALONE = ("alone", "allein", True)
WELL = ("well", "gut", True)
A_LOT = ("a lot", "viel", True)
TODAY = ("today", "heute", False)
EVERY_DAY = ("every day", "jeden Tag", True)
IN_THE_EVENING = ("in the evening", "am Abend", False)
HABITS = (
    *product((WORK, LEARN), (NO_ADVERB, AT_HOME, A_LOT, TODAY, IN_THE_EVENING)),
    *product((COOK, PLAY), (NO_ADVERB, AT_HOME, WELL, TODAY)),
    *product((DANCE, SING), (NO_ADVERB, WELL, A_LOT, IN_THE_EVENING)),
    *product((SWIM, SLEEP), (NO_ADVERB, WELL, A_LOT, TODAY)),
    *product((TRAVEL, LAUGH), (NO_ADVERB, A_LOT, TODAY)),
    *product((WORK, LEARN, COOK, PLAY, DANCE, SING, SWIM, LAUGH, TRAVEL), (ALONE, EVERY_DAY)),
    *product((WORK, LEARN, COOK, PLAY, DANCE, SING, SWIM, LAUGH), (HERE,)),
    *product((SLEEP, STAY, LIVE), (HERE, AT_HOME, ALONE)),
    *product((STAY,), (NO_ADVERB, TODAY)),
)
ASKED_WITH_WHY = (WORK, LEARN, COOK, DANCE, SING, SWIM, SLEEP, PLAY, LAUGH, READ)
QUESTION_WORDS = (("where", "wo"), ("when", "wann"), ("why", "warum"))
STATES = (
    TIRED, HUNGRY, THIRSTY, SICK, HEALTHY, HAPPY, SAD, ANGRY, NERVOUS, READY
)  # fmt: skip
NATIVES = (
    ME, HE, SHE, WE, THEY, the(TEACHER), the(WOMAN, OLD), the(MAN, YOUNG), the(GIRL), the(DOCTOR),
)  # fmt: skip
TOWNS = (
    *CITIES, ("Frankfurt", "Frankfurt"), ("Stuttgart", "Stuttgart"), ("Salzburg", "Salzburg"),
    ("Rome", "Rom"), ("Paris", "Paris"), ("London", "London"),
)  # fmt: skip
HOMES = (
    *TOWNS, ("Germany", "Deutschland"), ("Austria", "Österreich"), ("England", "England"),
    ("France", "Frankreich"), ("Italy", "Italien"), ("Spain", "Spanien"), ("Poland", "Polen"),
)  # fmt: skip
TONGUES = (
    ("English", "Englisch"), ("German", "Deutsch"), ("French", "Französisch"),
    ("Italian", "Italienisch"), ("Spanish", "Spanisch"), ("Polish", "Polnisch"),
    ("Turkish", "Türkisch"), ("Russian", "Russisch"),
)  # fmt: skip
LINES = described((TRAIN, BUS), (FIRST_ONE, NEXT_ONE, LAST_ONE))
MEN = ("Peter", "Paul", "Thomas", "Martin", "Max", "Felix", "Jonas", "David")
WOMEN = ("Anna", "Maria", "Julia", "Laura", "Sarah", "Eva", "Lisa", "Clara")
SURNAMES = (
    "Weber", "Wagner", "Becker", "Schulz", "Hoffmann", "Koch", "Richter", "Klein", "Wolf", "Neumann"
)  # fmt: skip
INTRODUCED = (
    *product(((ME, MY),), MEN + WOMEN),
    *product(((ME, MY),), map(" ".join, product(MEN + WOMEN, SURNAMES))),
    *product(((HE, HIS),), MEN), *product(((SHE, HER),), WOMEN)
)  # fmt: skip
CALLED = (
    *((name, name) for name in MEN + WOMEN),
    *((f"Mr. {name}", f"Herr/Mr {name}/{name}") for name in SURNAMES),
    *((f"Mrs. {name}", f"Frau/Mrs {name}/{name}") for name in SURNAMES),
)
GREETINGS = (
    ("hello", "hallo/hello"), ("good morning", "guten/good Morgen/morning"),
    ("good evening", "guten/good Abend/evening"),
    ("good night", "gute/good Nacht/night"), ("goodbye", "auf/goodbye Wiedersehen/goodbye"),
    ("thank/thank you/thank", "danke/thank"),
)  # fmt: skip
RELATIVES = (*ADULTS, GRANDMOTHER, GRANDFATHER, *CHILDREN, FRIEND, NEIGHBOR)
FEW = tuple(numeral(number) for number in range(2, 6))
NEARBY = (None, NEAREST)
DEGREES = (("", ""), ("very", "sehr"), ("too", "zu"), ("not", "nicht"))
SOON = (("tomorrow", "morgen"), ("this evening", "heute Abend"), ("next week", "nächste Woche"))
ASKING_THE_TIME = (("when", "wann"), ("what time", "um wie viel Uhr"))
