"""The cast of a project for the API: characters and their voices, lines to decide, directions for many parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from longform.chat_endpoint import (
    SCENE_LEAD,
    SCENE_PARTS,
    ChatEndpoint,
    Person,
    Proposal,
    Scene,
    SceneLine,
    messages,
    scene_of,
)
from longform.library.cast_repository import CastMember, CharacterChanges, Speaker, SpokenLine
from longform.library.project_records import Part, PartChanges, PartRange, ReplacedValues, ReplacedVoice
from longform.library.project_repository import PartFilter, ProjectLibrary
from longform.voice_proposals import ProjectVoices, proposed_voices, roles_of
from manuscript import NewCharacter, Passage, decide_again
from manuscript.cast import WINDOW, most_mended
from manuscript.passages import SURE
from speechtext.script import with_tags
from studio.api.queued import look_up
from studio.errors import REFUSALS, InvalidRequest, NotFound
from studio.library.names import split_revision
from studio.speech.speech_service import SpeechService

MOST_PROPOSED = 100  # maximum voices of the library from which characters' voices are chosen
MAX_CONTEXT = 600
"""Characters before and after a line that are shown with it, of CONTEXT_PARTS parts at most."""
CONTEXT_PARTS = 6  # parts to each side; MAX_CONTEXT ends earlier, except in dialogue of very short lines
NEARBY = 8  # lines of speech before and after a line whose characters are its scene's people
MAX_PEOPLE = 9  # each has a key
MAX_DELIVERY_TAGS = 8
BYTES_PER_TOKEN = 4  # of English text; other languages have up to twice as many tokens


@dataclass(frozen=True, slots=True)
class LineInContext:
    """A line with the text around it, which shows the speaker; each paragraph begins on a new line."""

    part: Part
    before: str
    after: str
    people: tuple[str, ...]
    """The ids of the characters who speak nearby, those with the most lines first."""


class CastService:
    """Calls block for milliseconds, on any thread; ``owner_filter`` is as for Projects."""

    def __init__(
        self, library: ProjectLibrary, speech: SpeechService, voices: ProjectVoices, chat: ChatEndpoint | None = None
    ) -> None:
        self._library = library
        self._chat = chat
        self._cast = library.cast
        self._speech = speech
        self._voices = voices

    def add(self, project_id: str, owner_filter: str | None, character: NewCharacter) -> CastMember:
        """Raises NotFound, InvalidRequest, UnknownVoice, NotAllowed."""
        character = replace(character, voice=self._voices.check(project_id, owner_filter, character.voice))
        return self._cast.add(project_id, owner_filter, character)

    def edit(
        self, project_id: str, owner_filter: str | None, character_id: str, changes: CharacterChanges
    ) -> tuple[CastMember, dict[str, ReplacedVoice]]:
        """As `Cast.edit`. Raises NotFound, InvalidRequest, EditConflict, UnknownVoice, NotAllowed."""
        changes = replace(changes, voice=self._voices.check(project_id, owner_filter, changes.voice))
        return self._cast.edit(project_id, owner_filter, character_id, changes)

    def recast(self, project_id: str, owner_filter: str | None, only_missing: bool) -> dict[str, ReplacedVoice]:
        """Give all characters their proposed voices; ``only_missing``: only those without a voice. Returns the voices
        that changed by characters' ids.

        Raises NotFound.
        """
        project = self._library.projects.get(project_id, owner_filter)
        members = [member for member in self._cast.members(project_id, owner_filter) if member.id]
        narrator = self._voices.voices.seen_by(project.owner).find(project.settings.voice)
        voices = self._library.seen_by(owner_filter).voices.page(limit=MOST_PROPOSED)
        if project.right != "own":  # voices that its owner can use too
            voices = [voice for voice in voices if voice.sharing != "private"]
        characters = (
            NewCharacter(member.name, member.aliases, member.gender, member.voice, member.is_narrator, str(member.id))
            for member in members
        )
        roles = roles_of(characters, self._cast.speakers(project_id, owner_filter))
        proposals = proposed_voices(roles, voices, narrator.slug if narrator else None, only_missing)
        chosen = {role.character.id: role.character.voice for role in proposals if not role.character.is_narrator}
        changed = self._cast.recast(project_id, owner_filter, chosen)
        self._library.part_edits.remember_voices(project_id, *(one.before for one in changed.values()))
        return changed

    def lines(
        self, project_id: str, owner_filter: str | None, part_filter: PartFilter, offset: int, limit: int
    ) -> tuple[list[LineInContext], int]:
        """A page of lines, and their total number; unsure ones in the order in which a decision mends most.

        Raises NotFound.
        """
        projects = self._library.projects
        total = projects.count_parts(project_id, owner_filter, part_filter)
        speech = self._cast.speech(project_id, owner_filter)
        numbers = {line.id: number for number, line in enumerate(speech)}
        if part_filter.is_unsure:
            quoted = (line for line in speech if line.confidence is not None)
            order = most_mended([(line.position, line.confidence or 0.0, line.continues) for line in quoted])
            ids = {line.position: line.id for line in speech}
            page = [ids[position] for position in order]
            if part_filter.character is not None:
                wanted = part_filter.character
                page = [each for each in page if (speech[numbers[each]].character or "") == wanted]
            page = page[offset : offset + limit]
            found = projects.parts(project_id, owner_filter, 0, limit, PartFilter(ids=page), only_chosen=True)
            parts = sorted(found, key=lambda part: page.index(part.id))
        else:
            parts = projects.parts(project_id, owner_filter, offset, limit, part_filter, only_chosen=True)
        texts = self._cast.neighbours([part.id for part in parts], CONTEXT_PARTS)
        lines = []
        for part in parts:
            before, after = texts.get(part.id, ("", ""))
            before = before.lstrip() and before.lstrip() + (" " if part.continues else "\n")
            before = before if len(before) <= MAX_CONTEXT else f"…{before[-MAX_CONTEXT:]}"
            after = after if len(after) <= MAX_CONTEXT else f"{after[:MAX_CONTEXT]}…"
            lines.append(LineInContext(part, before, after, _people_near(speech, numbers.get(part.id))))
        return lines, total

    @property
    def assistant(self) -> str | None:
        """The model that `propose` asks; None if no chat endpoint is set."""
        return self._chat.model if self._chat else None

    async def propose(
        self, project_id: str, owner_filter: str | None, part_ids: Sequence[str]
    ) -> list[tuple[str, str | None, Proposal]]:
        """Part, character (None: the narrator, or not in the cast) and proposal, for the lines that have one. Needs the
        right to edit.

        Raises NotFound, InvalidRequest, ChatFailed.
        """
        if self._chat is None:
            await look_up(self._library.projects.check, project_id, owner_filter, "edit")
            message = "no chat endpoint is set up: set STUDIO_CHAT, and restart the studio"
            raise InvalidRequest(message, "ids")
        people, scenes = await look_up(self._scenes, project_id, owner_filter, part_ids)
        by_name = {name.casefold(): part_id for part_id, one in people.items() for name in (one.name, *one.aliases)}
        proposals = await self._chat.propose(scenes, list(people.values()), self.known_tags)
        return [
            (part_id, by_name.get(proposals[part_id].speaker.casefold()), proposals[part_id])
            for part_id in dict.fromkeys(part_ids)
            if part_id in proposals
        ]

    def cost(self, project_id: str, owner_filter: str | None, part_ids: Sequence[str]) -> tuple[int, int]:
        """The number of questions that `propose` would ask, and about how many tokens they have. Raises NotFound."""
        people, scenes = self._scenes(project_id, owner_filter, part_ids)
        texts = (messages(scene, list(people.values()), self.known_tags) for scene in scenes)
        letters = sum(len(message["content"].encode()) for each in texts for message in each)
        return len(scenes), letters // BYTES_PER_TOKEN

    def _scenes(
        self, project_id: str, owner_filter: str | None, part_ids: Sequence[str]
    ) -> tuple[dict[str, Person], list[Scene]]:
        """The cast by id, and the text around these parts in pieces of at most SCENE_LETTERS."""
        projects = self._library.projects
        projects.check(project_id, owner_filter, "edit")
        asked = set(part_ids)
        parts = projects.parts(project_id, owner_filter, filters=PartFilter(ids=part_ids), only_chosen=True)
        if len(parts) < len(asked):
            raise NotFound("the project does not have all of these parts", "ids")
        members = [member for member in self._cast.members(project_id, owner_filter) if member.id]
        people = {str(one.id): Person(one.name, one.aliases, one.gender) for one in members}
        scenes, end = list[Scene](), -1
        for part in parts:
            if part.position < end:
                continue
            first = max(0, part.position - SCENE_LEAD)
            window = projects.parts(project_id, owner_filter, first, SCENE_PARTS, only_chosen=True)
            lines = list[SceneLine]()
            for each in window:
                is_asked = each.id in asked and each.position >= part.position
                is_certain = each.confirmed or (each.confidence is not None and each.confidence >= SURE)
                speaker = people[each.character].name if is_certain and each.character in people else ""
                lines.append(SceneLine(each.text, "" if is_asked else speaker, each.id if is_asked else None))
            scene = scene_of(lines)
            end = window[len(scene) - 1].position + 1
            scenes.append(scene)
        return people, scenes

    @property
    def known_tags(self) -> tuple[str, ...] | None:
        """The tags of the speech model; None: any, or it is not ready yet."""
        try:
            return self._speech.host.engine().info.card.tags
        except REFUSALS:
            return None

    def direct(
        self,
        project_id: str,
        owner_filter: str | None,
        parts: Sequence[str] | PartRange,
        changes: PartChanges,
        tags: Sequence[str] | None,
    ) -> tuple[int, list[ReplacedValues], list[ReplacedValues]]:
        """Change many parts at once; returns their number, what was replaced, and what was in the other lines that
        follow from the decision about one line. ``tags``: of each sentence; None: unchanged.

        Raises NotFound, InvalidRequest, UnknownVoice.
        """
        changes = replace(changes, voice=self._voices.check(project_id, owner_filter, changes.voice))
        edit = self._library.part_edits.edit_parts
        count, replaced = edit(project_id, owner_filter, parts, self.tagged(changes, tags))
        self._library.part_edits.remember_voices(project_id, *(one.before.get("voice") for one in replaced))
        is_decision = changes.confirmed is not False and (changes.confirmed or changes.character is not None)
        if not is_decision or isinstance(parts, PartRange) or len(parts) != 1:
            return count, replaced, []
        followers = self._followers(project_id, owner_filter, parts[0])
        followed = self._cast.follow(project_id, owner_filter, followers)
        self._library.part_edits.remember_voices(project_id, *(one.before["voice"] for one in followed))
        return count, replaced, followed

    def undo(
        self,
        project_id: str,
        owner_filter: str | None,
        replaced: Sequence[ReplacedValues],
        followed: Sequence[ReplacedValues],
        voices: Mapping[str, ReplacedVoice],
    ) -> tuple[int, list[str]]:
        """Put back what changes replaced, where nobody has changed it since; ``followed``: lines that followed from a
        decision, if that is undone; ``voices``: of characters by their ids. Returns the number of
        parts and characters, and the ids of those left as they are.

        Raises NotFound, InvalidRequest, NotAllowed.
        """
        former = [one.before.get("voice") for one in (*replaced, *followed)]
        kept = self.withheld_voices(project_id, owner_filter, *former, *(one.before for one in voices.values()))
        left = [part for one in (*replaced, *followed) if one.before.get("voice") in kept for part in one.ids]
        parts, more = ([one for one in some if one.before.get("voice") not in kept] for some in (replaced, followed))
        count, more_left = self._library.part_edits.undo(project_id, owner_filter, parts, more)
        undone = {character: one for character, one in voices.items() if one.before not in kept}
        earlier = {character: one.before for character, one in undone.items()}
        revoiced = self._cast.recast(project_id, owner_filter, earlier, undone) if undone else {}
        return count + len(revoiced), [*left, *more_left, *(one for one in voices if one not in revoiced)]

    def withheld_voices(self, project_id: str, owner_filter: str | None, *names: str | None) -> set[str | None]:
        """Which of these former voices an undo does not put back. They need not be usable any more, but the parts are
        generated with the rights of the project's owner: a voice that only the owner can use must have been
        replaced by a change, so that nobody chooses it in this way. Raises NotFound."""
        named = {name for name in names if name}
        if not named:
            return set()
        owner = self._library.projects.get(project_id, owner_filter).owner
        owners, callers = (self._library.seen_by(one).voices.known_voices() for one in (owner, owner_filter))
        plain = {name: split_revision(name.strip())[0] for name in named}
        hidden = (name for name in named if owners(plain[name]) and not callers(plain[name]))
        return {name for name in hidden if not self._library.part_edits.had_voice(project_id, name)}

    def _followers(self, project_id: str, owner_filter: str | None, part_id: str) -> dict[str, Speaker]:
        """The lines that are decided again after the decision about this one, by their ids."""
        projects = self._library.projects
        [decided] = projects.parts(project_id, owner_filter, filters=PartFilter(ids=[part_id]), only_chosen=True)
        if decided.confidence is None:
            return {}
        first = max(0, decided.position - WINDOW)
        parts = projects.parts(project_id, owner_filter, first, decided.position - first + WINDOW + 1, only_chosen=True)
        members = [member for member in self._cast.members(project_id, owner_filter) if member.id]
        names = {member.id: member.name for member in members}
        passages = [
            Passage(
                part.text, is_title=part.is_title, speaker=names.get(part.character, ""), confidence=part.confidence,
                continues=part.continues, reason=part.reason,
            )
            for part in parts
        ]  # fmt: skip
        cast = [NewCharacter(member.name, member.aliases, member.gender, id=str(member.id)) for member in members]
        confirmed = {number for number, part in enumerate(parts) if part.confirmed}
        ids = {"": None, **{each.name: each.id for each in cast}}
        changes = decide_again(passages, cast, confirmed, decided.position - first)
        found = ((parts[number].id, *change) for number, change in changes.items())
        return {part: (ids[speaker], confidence) for part, speaker, confidence in found if speaker in ids}

    def tagged(self, changes: PartChanges, tags: Iterable[str] | None) -> PartChanges:
        """The changes, with these tags added. Raises InvalidRequest for a tag that the model does not know."""
        if tags is None:
            return changes
        names = [" ".join(tag.strip().strip("[]").split()) for tag in tags]
        if len(names) > MAX_DELIVERY_TAGS or not all(names):
            raise InvalidRequest(f"tags must be up to {MAX_DELIVERY_TAGS} words such as whisper", "tags")
        model_tags = self.known_tags
        for name in names:
            if any(sign in "[]<>|\n" for sign in name):
                raise InvalidRequest(f"a tag has no brackets or bars in it: {name[:40]!r}", "tags")
            if model_tags is not None and name.lower() not in {tag.lower() for tag in model_tags}:
                raise InvalidRequest(f"the model has no tag {name[:40]!r}; it has {', '.join(model_tags)}", "tags")
        return replace(changes, reword=lambda text: with_tags(text, names))


def _people_near(speech: Sequence[SpokenLine], number: int | None) -> tuple[str, ...]:
    if number is None:
        return ()
    near = speech[max(0, number - NEARBY) : number + NEARBY + 1]
    counts = Counter(line.character for line in near if line.character is not None)
    return tuple(character for character, _ in counts.most_common(MAX_PEOPLE))
