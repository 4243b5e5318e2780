"""Cost of twice the input from Fish Audio's clients: at most three times the work."""

from __future__ import annotations

import pytest

from protocols.client_voices import candidate_names
from protocols.fish.fish_speech import FishSpeech, Speakers
from protocols.fish.fish_voices import match_texts, split_tags
from protocols.fish.message_pack import MAX_VALUES, pack, unpack
from studio.api.text_socket import WrittenText
from tests.studio.test_growth import PIECES, Work, check, pieces


def written_live(text: str) -> None:
    """Process the text like Fish Audio's socket: cut after a chunk's length if no sentence ends."""
    writing = WrittenText(limit=100)
    for at in range(0, len(text), 4):
        writing.add(text[at : at + 4])
        if at % 4000 == 0:
            writing.drop()
    writing.flush()


def spoken_by(text: str) -> object:
    return FishSpeech.model_validate({"text": text, "reference_id": ["anna", "bert"]}).speech_request()


FISH: dict[str, Work] = {
    "a text as it is written": written_live,
    "speakers": spoken_by,
    "a speaker who goes on": lambda text: [Speakers().continued(text), Speakers().continued(f"<|speaker:1|>{text}")],
    "a title": candidate_names,
    "words with commas": lambda text: match_texts([text], 8),
    "tags": lambda text: split_tags([text]),
    "MessagePack": lambda text: unpack(pack({"text": text, "pieces": text.split(" ")[: MAX_VALUES - 10]})),
}


@pytest.mark.parametrize("kind", ["sentences", "letters", "marks out of order", "blanks", "opened tags", "speakers"])
@pytest.mark.parametrize("reader", FISH)
def test_bodies_of_fish_audios_clients_are_read_in_linear_time(reader: str, kind: str) -> None:
    check(FISH[reader], pieces({"speakers": "<|speaker:1|>a,"}.get(kind) or PIECES[kind]), 4096)
