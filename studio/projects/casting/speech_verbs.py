"""Verbs by which narrators introduce speech, and words that name people, in seven languages."""

from __future__ import annotations

_ENGLISH = (
    "said|says|say|asked|asks|replied|replies|answered|answers|cried|cries|called|calls|shouted|shouts|whispered|whispers|"
    "murmured|murmurs|muttered|mutters|exclaimed|announced|continued|went on|added|adds|began|begged|agreed|admitted|"
    "offered|suggested|declared|demanded|insisted|objected|observed|remarked|repeated|returned|retorted|snapped|sighed|"
    "laughed|groaned|growled|grumbled|hissed|yelled|screamed|roared|bellowed|breathed|gasped|sobbed|told|warned|"
    "promised|pleaded|protested|put in|cut in|broke in|interrupted|inquired|enquired|wondered|thought|mused|explained|"
    "finished|concluded|urged|ordered|commanded|stammered|mumbled|croaked|drawled|barked|chimed in|confessed|conceded|"
    "cautioned|corrected|countered|echoed|guessed|joked|teased|lied|noted|nodded|pressed|prompted|recited|reminded|"
    "responded|read|sang|shrieked|smiled|sneered|spat|swore|ventured|volunteered|vowed|wailed|whimpered|whined"
)
_GERMAN = (
    "sagte|sagt|fragte|fragt|antwortete|erwiderte|rief|schrie|flüsterte|murmelte|meinte|erklärte|entgegnete|bemerkte|"
    "fügte|begann|fuhr|wiederholte|seufzte|lachte|brummte|zischte|gab|protestierte|bat|befahl|versprach|gestand|stöhnte|"
    "stammelte|knurrte|brüllte|hauchte|wollte wissen|warf ein|versicherte|unterbrach"
)
INVERTED_FRENCH = (
    "dit|dis|demanda|demandai|répondit|répondis|reprit|cria|criai|murmura|murmurai|ajouta|ajoutai|s’écria|s'écria|"
    "fit|répliqua|répliquai|continua|souffla|soupira|lança|déclara|protesta|chuchota|hurla|interrogea|insista|rétorqua|"
    "admit|avoua|balbutia|grogna|expliqua|remarqua|observa|annonça|poursuivit|conclut|pensa"
)
INVERTED_SPANISH = (
    "dijo|dije|preguntó|pregunté|respondió|respondí|contestó|contesté|exclamó|gritó|grité|murmuró|susurró|añadió|"
    "replicó|continuó|repitió|suspiró|insistió|explicó|ordenó|pidió|admitió|protestó|comentó|observó|intervino"
)
_ITALIAN = "disse|chiese|rispose|esclamò|gridò|mormorò|sussurrò|aggiunse|replicò|continuò|ripeté|domandò|sospirò|ordinò"
_PORTUGUESE = (
    "disse|perguntou|respondeu|exclamou|gritou|murmurou|sussurrou|acrescentou|replicou|continuou|repetiu|suspirou"
)

INVERTED = "|".join((INVERTED_FRENCH, INVERTED_SPANISH, _ITALIAN, _PORTUGUESE))
"""Those that stand before their subject, without a mark between speech and narrator."""
VERBS = "|".join((_ENGLISH, _GERMAN, INVERTED))
"""As a pattern of alternatives."""

TITLES = {
    "mr": "m", "mister": "m", "sir": "m", "lord": "m", "king": "m", "prince": "m", "father": "m", "uncle": "m",
    "brother": "m", "don": "m", "monsieur": "m", "m.": "m", "herr": "m", "señor": "m", "signor": "m", "count": "m",
    "duke": "m", "grandpa": "m", "grandfather": "m", "mrs": "f", "miss": "f", "ms": "f", "lady": "f", "queen": "f",
    "princess": "f", "mother": "f", "aunt": "f", "sister": "f", "doña": "f", "madame": "f", "mme": "f",
    "mademoiselle": "f", "frau": "f", "fräulein": "f", "señora": "f", "señorita": "f", "signora": "f", "countess": "f",
    "duchess": "f", "grandma": "f", "grandmother": "f", "dr": "", "doctor": "", "professor": "", "captain": "",
    "colonel": "", "major": "", "general": "", "lieutenant": "", "sergeant": "", "inspector": "", "officer": "",
    "judge": "", "old": "", "young": "", "little": "", "saint": "",
}  # fmt: skip
"""Words before a name, folded, without a full stop; and the gender that they tell."""

ROLES = {
    "mother": "f", "father": "m", "aunt": "f", "uncle": "m", "sister": "f", "brother": "m", "wife": "f", "husband": "m",
    "grandmother": "f", "grandfather": "m", "daughter": "f", "son": "m", "king": "m", "queen": "f", "prince": "m",
    "princess": "f", "lady": "f", "gentleman": "m", "boy": "m", "girl": "f", "man": "m", "woman": "f", "captain": "",
    "colonel": "", "major": "", "general": "", "lieutenant": "", "sergeant": "", "inspector": "", "doctor": "",
    "professor": "", "nurse": "", "teacher": "", "judge": "", "driver": "", "guard": "", "waiter": "m", "waitress": "f",
    "innkeeper": "", "bartender": "", "clerk": "", "priest": "m", "maid": "f", "butler": "m", "cook": "",
    "stranger": "", "voice": "", "child": "", "officer": "", "soldier": "", "sailor": "", "wizard": "", "witch": "f",
    "dragon": "",
    "vater": "m", "mutter": "f", "großvater": "m", "großmutter": "f", "onkel": "m", "tante": "f", "bruder": "m",
    "schwester": "f", "mann": "m", "frau": "f",
}  # fmt: skip
"""Nouns that stand for a person after "the", "her", "der" …, and their gender."""

PRONOUNS = {
    "he": "m", "him": "m", "his": "m", "she": "f", "her": "f", "hers": "f", "er": "m", "ihm": "m", "ihn": "m",
    "sie": "f", "il": "m", "elle": "f", "él": "m", "ella": "f", "lui": "m", "lei": "f", "ele": "m", "ela": "f",
}  # fmt: skip
FIRST_PERSON = frozenset({"i", "ich", "je", "yo", "io", "eu"})
POSSESSIVES = frozenset("her his my their our ihr ihre sein seine mein meine son sa mon ma su mi".split())  # noqa: SIM905
ARTICLES = frozenset("the der die das le la l’ el il lo".split()) | POSSESSIVES  # noqa: SIM905
