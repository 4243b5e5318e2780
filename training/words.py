"""The words that sentence templates draw from: everyday nouns, verbs, adjectives, names, places, dates."""

# Prose is easier to read and to add to than lists of quoted words.
# ruff: noqa: SIM905

from __future__ import annotations

NOUNS = """time year day man woman child world life hand part place week case company system program question
government number night point home water room mother area money story fact month lot right study book eye job word
business issue side kind head house service friend father power hour game line end member law car city community
name president team minute idea body information back parent face level office door health person art war history
party result change morning reason research girl guy moment air teacher force education foot boy age policy music
market sense table weather phone train flight doctor garden river window letter email message computer voice studio
sound song radio movie camera coffee tea bread cheese apple orange dinner lunch kitchen bottle paper picture street
bridge station airport hotel ticket shirt mountain forest island engine ship horse dog cat bird fish flower tree
island village farmer lawyer nurse singer winter summer""".split()

VERBS = """ask tell show find call help bring keep follow read change watch open close move paint carry send check
visit clean cook build buy sell choose finish start stop remember forget enjoy offer record play write draw repair
order answer explain describe measure count pick drop test print save share join leave need want love see
hear""".split()

ADJECTIVES = """new good old great small large young big high long little important different early late public bad
able strong possible whole free real best better sure clear recent certain easy hard quiet loud warm cold bright
dark red blue green yellow happy sad strange simple quick slow heavy light empty full clean dirty rich poor fresh
famous beautiful dangerous careful local modern ancient gentle honest clever brave perfect""".split()

NAMES = """James Mary Robert Patricia John Jennifer Michael Linda David Elizabeth William Barbara Richard Susan
Joseph Jessica Thomas Sarah Charles Karen Anna Daniel Nancy Matthew Lisa Anthony Betty Mark Helen Paul Sandra Steven
Ashley Andrew Emily Kevin Alice Brian Carol George Amanda Peter Rachel Henry Julia Oliver Sophia Jack Emma Noah Lucy
Smith Jones Brown Wilson Taylor Clark Walker Young King Green Baker Hall Adams""".split()

PLACES = """London Paris Berlin Chicago Tokyo Boston Madrid Toronto Sydney Rome Dublin Seattle Texas California
Oxford Vienna Moscow Cairo Lisbon Prague Denver Atlanta Houston Florida Canada Germany France Spain Japan China
India Brazil Norway Sweden Scotland Ireland Australia""".split()

DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()

MONTHS = "January February March April May June July August September October November December".split()

NUMBERS = """one two three four five six seven eight nine ten eleven twelve thirteen fifteen twenty thirty forty
fifty sixty seventy eighty ninety""".split()

SHORT = """Hello.|Yes.|No.|Thank you.|Good morning.|Good night.|Hi there.|Okay.|Goodbye.|Please wait.|Of course.|
Never mind.|Welcome.|See you soon.|I agree.|Why not?|Really?|How are you?|What time is it?|Not yet.|Come in.|
Excuse me.|I am sorry.|Let's go.|Well done.|Hello world.|Good evening.|Testing, one, two, three.|Hey!|Wait!|Stop.|
Sure.|Maybe.|Thanks a lot.|This is a test.|Can you hear me?|My name is Clara.|Nice to meet you.|Who is there?|
Good afternoon.|Happy birthday!|Congratulations!|Take care.|Be careful.|I love you.|Try again.|Ready?|
Hurry up!""".replace("\n", "").split("|")

TEMPLATES = """The {a} {n} is {a2}.
I would like to {v} the {n} before {d}.
Can you {v} me about the {a} {n}?
{N} went to {P} in {M} with a {a} {n}.
There are {k} {n}s in the {n2}.
There are {i} {n}s and {j} {n2}s.
Please {v} the {n}, and then {v2} the {n2}.
Why did {N} {v} that {a} {n}?
Hello {N}, how are you today?
Good morning, and welcome to the {n}.
Thank you for your {n}, {N}.
We will {v} the {n} at {h} o'clock on {d}.
It was a {a}, {a2} {n}, and nobody could {v} it.
She will {v} the {n} every {d}.
He did not {v} the {a} {n} in {P}.
The {n} of the {n2} was {a} and {a2}.
My {n} is {i} years old.
In {y}, {N} moved to {P}.
The train to {P} leaves at {h}:{m}.
If you {v} the {n}, I will {v2} the {n2}.
{N} and {N2} {v} a {a} {n} together.
This is the {a} {n} that I told you about.
I can't {v} the {n}, because the {n2} is too {a}.
Do you {v} {N}'s {n}, or should we {v2} it?
On {d}, {M} {i}, the {n} was {a}.
They don't {v} the {n}; they {v2} the {n2}.
What a {a} {n}!
{w}, {w2}, and {w3}.
The word is {w}.
{w} {w2}, {w3} {w4}.
First the {w}, then the {w2}, and finally the {w3}.
You should {v} {i} {n}s for the {w}.
It costs {k} dollars and {k2} cents.
The {n} costs ${i}.{c}, not ${j}.
{N} said the {w} was {a}, but {N2} called it {w2}.
Your {n} is ready.
Okay, let me {v} the {n} for you.
Yes, the {n} is in the {n2}.
No, I did not {v} it.
Dr. {N} will see you at {h}:{m}.
Mr. {N} and Mrs. {N2} live in {P}.
About {i} percent of the {n}s are {a}.
The meeting is on {M} {i}, {y}, at {h}:{m}.
Flight {f} to {P} is now boarding.
Call {N} at {h} or {h2} on {d}.
The answer is {f}.
{k}, {k2}, {k3}.
Welcome to the {n}.
Where is the {n}?
I think the {n} is {a}.
The {w}s {v} the {w2}.
We found {w} in the {n}.
How do you spell {w}?""".splitlines()
