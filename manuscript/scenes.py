"""Decodes whole scenes: the most probable speaker of each paragraph of speech, given the evidence of all of them.

A scene is a chain whose states are the last two speakers. Each paragraph's evidence and the turns of a conversation
give each candidate a cost; a forward and a backward pass over the chain add up to the probability of each candidate,
so one wrong guess cannot turn all lines after it. Deterministic, and linear in the text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from manuscript.characters import NARRATOR_SELF, Character, Gender

SCENE_GAP = 6  # paragraphs of narration after which a conversation no longer goes on
_STATES = 24  # the most probable ones are kept: with two to six people in a scene, hardly any that matters is dropped
_LOOK_AHEAD = 4  # paragraphs of speech whose certain speakers may speak here too

# Costs in natural logarithms, chosen on annotated novels: docs/log/cast.md.
_AGAIN = {1: 4.0, 2: 0.9, 3: 0.6}  # the same person speaks again after so many paragraphs; later 0.3
_LED = 0.38  # the part of this cost where the paragraph begins with narration
_THIRD = 2.0  # neither of the last two speakers
_ADDRESSED = 2.5  # the paragraph before addresses somebody else than this person
_ADDRESSES = 5.6  # the person is addressed in this very paragraph
_NAMES_SELF = 1.3  # the person is named in this paragraph's speech
_RANK = 0.12  # for each person named more recently
_PRONOUN_RANK = 1.1  # the same where a pronoun means the person
_NOT_ACTING = 2.5  # somebody else acts in the paragraph
_NO_GENDER = 2.2  # a pronoun, and the gender of the person is not known
_ANSWERED = 0.6  # the next paragraph addresses somebody else than this person
_CALLED = 1.0  # the paragraph before or after says "sir" to a woman or "madam" to a man
_SOMEBODY = 5.0  # a person who is not among the candidates
_NOBODY = -2  # the number of that person

State = tuple[int, int]  # the last speaker and the one before, by number; -1: nobody


@dataclass(slots=True)
class Evidence:
    """What the text says about the speaker of one paragraph."""

    index: int
    scene: int = 0  # how many breaks of the text, such as headings and rows of asterisks, come before
    speaker: Character | None = None  # the person whom a name or an action shows
    is_certain: bool = False  # by a name beside a verb of speech
    gender: Gender = ""  # of the pronoun beside the verb of speech
    is_continued: bool = False
    recent: tuple[Character, ...] = ()  # named or spoken last, the newest first
    addressed: list[Character] = field(default_factory=list)
    is_unnamed: bool = False  # a verb of speech with an unknown subject: "called a voice"
    calls: Gender = ""  # of the person whom the speech addresses: "sir", "madam"
    is_led: bool = False  # narration comes before the speech in its paragraph
    spoken_of: list[Character] = field(default_factory=list)


def scenes_of(evidence: Sequence[Evidence]) -> Iterator[list[Evidence]]:
    """The paragraphs of speech, divided at breaks of the text and where nobody speaks for SCENE_GAP paragraphs."""
    scene: list[Evidence] = []
    for each in evidence:
        if scene and (each.index - scene[-1].index > SCENE_GAP or each.scene != scene[-1].scene):
            yield scene
            scene = []
        scene.append(each)
    if scene:
        yield scene


def decode(scene: Sequence[Evidence]) -> list[tuple[Character | None, float]]:
    """The most probable speaker of each paragraph, and the probability."""
    candidates = [_candidates(scene, at) for at in range(len(scene))]
    numbers: dict[int, int] = {}
    people = [[(numbers.setdefault(id(person), len(numbers)), person) for person in each] for each in candidates]
    forward: list[dict[State, float]] = [{(-1, -1): 0.0}]
    steps: list[list[tuple[State, State, float]]] = []
    for at, each in enumerate(people):
        step = list[tuple[State, State, float]]()
        sums: dict[State, float] = {}
        fixed: list[tuple[int, Character | None, float]] = [
            (number, person, _cost(scene, at, person)) for number, person in each
        ]
        if not scene[at].is_certain:
            is_other = scene[at].is_unnamed or (len(each) < 2 and not scene[at].gender)
            fixed.append((_NOBODY, None, 0.0 if scene[at].is_continued else _SOMEBODY / (1 + is_other)))
        for state, weight in forward[-1].items():
            for number, person, cost in fixed:
                turn = cost + _turn_cost(scene, at, state, number, person)
                after = (number, state[0]) if number != state[0] else state
                step.append((state, after, -turn))
                sums[after] = _add(sums.get(after, -math.inf), weight - turn)
        kept = sorted(sums.items(), key=lambda item: (-item[1], item[0]))[:_STATES]
        forward.append(dict(kept))
        steps.append(step)
    return _posteriors(people, forward, steps)


def _posteriors(
    people: Sequence[Sequence[tuple[int, Character]]],
    forward: Sequence[dict[State, float]],
    steps: Sequence[list[tuple[State, State, float]]],
) -> list[tuple[Character | None, float]]:
    result = list[tuple[Character | None, float]]()
    backward = dict.fromkeys(forward[-1], 0.0)
    for at in range(len(people) - 1, -1, -1):
        weights: dict[int, float] = {}
        for state, weight in forward[at + 1].items():
            weights[state[0]] = _add(weights.get(state[0], -math.inf), weight + backward.get(state, -math.inf))
        total = -math.inf
        for weight in weights.values():
            total = _add(total, weight)
        number = max(weights, key=lambda each: (weights[each], -each))
        result.append((dict(people[at]).get(number), math.exp(weights[number] - total)))
        before: dict[State, float] = {}
        for state, after, gain in steps[at]:
            if after in backward and after in forward[at + 1]:
                before[state] = _add(before.get(state, -math.inf), gain + backward[after])
        backward = before
    return result[::-1]


def _candidates(scene: Sequence[Evidence], at: int) -> list[Character]:
    """The people who may speak in a paragraph, the likeliest first."""
    here = scene[at]
    if here.is_certain and here.speaker is not None:
        return [here.speaker]
    near = [*scene[max(0, at - 6) : at][::-1], *scene[at + 1 : at + 1 + _LOOK_AHEAD]]
    known = [each.speaker for each in near if each.speaker is not None]
    addressed = [person for each in (*scene[max(0, at - 1) : at], *scene[at + 1 : at + 2]) for person in each.addressed]
    people = [*([here.speaker] if here.speaker else []), *here.recent, *known, *addressed]
    unique = list({id(person): person for person in people}.values())
    if here.gender:
        fitting = [person for person in unique if person.gender in (here.gender, "") and person.name != NARRATOR_SELF]
        unique = fitting or unique
    return unique[:10]


def _cost(scene: Sequence[Evidence], at: int, person: Character) -> float:
    """The cost of a candidate by the evidence of the paragraph itself."""
    here = scene[at]
    if here.is_certain or here.is_continued:
        return 0.0
    cost = 0.0
    if here.speaker is not None and person is not here.speaker:
        cost += _NOT_ACTING
    rank = next((rank for rank, each in enumerate(here.recent) if each is person), len(here.recent))
    cost += (_PRONOUN_RANK if here.gender else _RANK) * rank
    cost += _ADDRESSES * _has(here.addressed, person) + _NAMES_SELF * _has(here.spoken_of, person)
    cost += _NO_GENDER * bool(here.gender and not person.gender)
    following = scene[at + 1] if at + 1 < len(scene) else None
    near = (scene[at - 1] if at else None, following)
    calls = {each.calls for each in near if each and abs(each.index - here.index) == 1} - {"", person.gender}
    cost += _CALLED * bool(calls and person.gender)
    if (
        following
        and following.index == here.index + 1
        and following.addressed
        and not _has(following.addressed, person)
    ):
        cost += _ANSWERED * (1 + here.is_unnamed)
    if at and (others := scene[at - 1].addressed) and not _has(others, person):
        cost += _ADDRESSED
    return cost


def _turn_cost(scene: Sequence[Evidence], at: int, state: State, number: int, person: Character | None) -> float:
    """The cost of a candidate after the last two speakers."""
    last, before = state
    if last == -1:
        return 0.0
    gap = scene[at].index - scene[at - 1].index
    if scene[at].is_continued:
        return 0.0 if number == last else 4.0
    if number == last:
        # Narration before the speech of a paragraph often goes on with the person who spoke last.
        return _AGAIN.get(gap, 0.3) * (_LED if scene[at].is_led else 1.0)
    return 0.0 if number == before or before < 0 else _THIRD


def _has(people: Sequence[Character], person: Character) -> bool:
    return any(each is person for each in people)


def _add(first: float, second: float) -> float:
    """The logarithm of the sum of two numbers that are given by their logarithms."""
    if first < second:
        first, second = second, first
    return first if second == -math.inf else first + math.log1p(math.exp(second - first))
