"""The prompt, token by token, against a hand-written layout; each quoted string is encoded separately."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer as HubTokenizer

from engine.checkpoint import open_source
from engine.engine_errors import InvalidUtterance
from engine.model.prompt import build_prompt
from engine.types import Reference, Utterance
from tests.tiny import CONTROL_TOKENS

SYSTEM = "convert the provided text to speech"
CLONE = "convert the provided text to speech reference to the following:\n\nText:\n"
ALLOWED = ("<|phoneme_start|>", "<|phoneme_end|>")


class Layout:
    """Writes the expected ids with the tokenizer library alone."""

    def __init__(self, folder: Path) -> None:
        self.hub = HubTokenizer.from_file(str(folder / "tokenizer.json"))
        self.config = open_source(folder).config
        self.tokenizer = open_source(folder).tokenizer()

    def expected(self, *parts: str | np.ndarray) -> list[int]:
        """Control tokens and text as strings, frames as code matrices."""
        ids: list[int] = []
        for part in parts:
            if isinstance(part, np.ndarray):
                ids += [self.config.semantic_start + int(code) for code in part[0]]
            else:
                ids += self.hub.encode(part, add_special_tokens=False).ids
        return ids

    def build(self, utterance: Utterance) -> tuple[list[int], np.ndarray]:
        prompt = build_prompt(utterance, self.tokenizer, self.config)
        assert prompt.codes.shape == (self.config.num_codebooks, len(prompt))
        return prompt.ids.tolist(), prompt.codes


@pytest.fixture(scope="module")
def layout(tiny_checkpoint: Path) -> Layout:
    return Layout(tiny_checkpoint)


def reference(text: str, frames: int, seed: int = 0, codebooks: int = 10) -> Reference:
    codes = np.random.default_rng(seed).integers(0, 64, (codebooks, frames), dtype=np.int16)
    return Reference(codes, text)


def user(text: str) -> tuple[str, ...]:
    """Return the parts after the system message."""
    return ("<|im_start|>", "user\n", text, "<|im_end|>", "\n", "<|im_start|>", "assistant\n", "<|voice|>")


def test_the_layout_tests_can_fail(layout: Layout) -> None:
    """The tokenizer merges across string boundaries, so joined strings would give other ids."""
    assert layout.expected("system\n", SYSTEM) != layout.expected("system\n" + SYSTEM)
    assert layout.expected("Hello.", "\n\nSpeech:\n") != layout.expected("Hello.\n\nSpeech:\n")


@pytest.mark.parametrize("text", ["Hello.", " spaced out ", "[whisper] the inner thing\nYes", "日本語, ünïcode 🐟"])
def test_plain_prompt_matches_the_layout(layout: Layout, text: str) -> None:
    ids, codes = layout.build(Utterance(text))
    assert ids == layout.expected("<|im_start|>", "system\n", SYSTEM, "<|im_end|>", "\n", *user(text))
    assert not codes.any()


def test_prompt_with_a_reference_matches_the_layout(layout: Layout) -> None:
    voice = reference("Hello the one.", frames=7)
    ids, codes = layout.build(Utterance("Say this.", (voice,)))
    head = layout.expected("<|im_start|>", "system\n", CLONE, "<|speaker:0|>Hello the one.", "\n\nSpeech:\n")
    tail = layout.expected("<|im_end|>", "\n", *user("Say this."))
    assert ids == head + layout.expected(voice.codes) + tail
    assert np.array_equal(codes[:, len(head) : len(head) + 7], voice.codes)
    assert not codes[:, : len(head)].any()
    assert not codes[:, len(head) + 7 :].any()


def test_several_references_share_one_text_block_and_join_their_frames(layout: Layout) -> None:
    first, second, third = (reference(text, n, n) for text, n in (("One.", 3), ("Two.", 5), ("Three.", 2)))
    ids, codes = layout.build(Utterance("Go.", (first, second, third)))
    words = "<|speaker:0|>One.\n<|speaker:1|>Two.\n<|speaker:2|>Three."
    frames = np.concatenate([first.codes, second.codes, third.codes], axis=1)
    head = layout.expected("<|im_start|>", "system\n", CLONE, words, "\n\nSpeech:\n")
    assert ids == head + layout.expected(frames) + layout.expected("<|im_end|>", "\n", *user("Go."))
    assert np.array_equal(codes[:, len(head) : len(head) + 10], frames)


def test_reference_with_speaker_tags_is_unchanged(layout: Layout) -> None:
    tagged = reference("<|speaker:3|>Mine.<|speaker:1|>Yours.", frames=2)
    plain = reference("Plain.", frames=2)
    ids, _ = layout.build(Utterance("Go.", (tagged, plain)))
    words = "<|speaker:3|>Mine.<|speaker:1|>Yours.\n<|speaker:1|>Plain."
    assert (
        layout.expected(CLONE, words, "\n\nSpeech:\n")
        == ids[len(layout.expected("<|im_start|>", "system\n")) :][
            : len(layout.expected(CLONE, words, "\n\nSpeech:\n"))
        ]
    )


def test_earlier_turns_precede_the_last_with_their_frames(layout: Layout) -> None:
    first, second = reference("One, said.", 4), reference("Two, said.", 3, seed=1)
    voice = reference("Mine.", 2, seed=2)
    ids, codes = layout.build(Utterance("Three.", (voice,), history=(first, second)))
    head = layout.expected("<|im_start|>", "system\n", CLONE, "<|speaker:0|>Mine.", "\n\nSpeech:\n", voice.codes)
    head += layout.expected("<|im_end|>", "\n", *user("One, said."))
    between = layout.expected("<|im_end|>", "\n", *user("Two, said."))
    tail = layout.expected("<|im_end|>", "\n", *user("Three."))
    assert ids == head + layout.expected(first.codes) + between + layout.expected(second.codes) + tail
    assert np.array_equal(codes[:, len(head) : len(head) + 4], first.codes)
    assert np.array_equal(codes[:, -len(tail) - 3 : -len(tail)], second.codes)


def test_control_tokens_in_an_earlier_turn_are_refused(layout: Layout) -> None:
    with pytest.raises(InvalidUtterance, match="earlier turn"):
        layout.build(Utterance("Go.", history=(reference("<|im_end|>", 2),)))


def test_the_target_text_keeps_its_speaker_tags_and_gets_no_others(layout: Layout) -> None:
    text = "<|speaker:1|>Hello.<|speaker:0|>[angry] No!"
    ids, _ = layout.build(Utterance(text))
    assert ids[-len(layout.expected(*user(text))) :] == layout.expected(*user(text))


def test_text_cannot_inject_control_tokens(layout: Layout) -> None:
    for token in (*CONTROL_TOKENS, "<|semantic:0|>", "<|semantic:127|>", "<|anything|>"):
        for utterance in (Utterance(f"a{token}b"), Utterance("ok", (reference(f"a {token}", 2),))):
            if token in ALLOWED:
                layout.build(utterance)
                continue
            with pytest.raises(InvalidUtterance) as caught:
                layout.build(utterance)
            assert token in str(caught.value)


def test_accepted_text_never_produces_control_token_ids(layout: Layout) -> None:
    """Accepted text never produces the id of a control token."""
    forbidden = {layout.hub.token_to_id(token) for token in CONTROL_TOKENS if token not in ALLOWED}
    forbidden |= set(range(layout.config.semantic_start, layout.config.semantic_end + 1))
    head = layout.expected("<|im_start|>", "system\n", SYSTEM, "<|im_end|>", "\n", "<|im_start|>", "user\n")
    tail = layout.expected("<|im_end|>", "\n", "<|im_start|>", "assistant\n", "<|voice|>")
    for text in ("<|", "<|im_end", "< |im_end|>", "<||>", "<|im_end||>", "|>", "<<|speaker:1|>>", "<|speaker:x"):
        try:
            ids, _ = layout.build(Utterance(text))
        except InvalidUtterance:
            continue
        assert not forbidden & set(ids[len(head) : -len(tail)]), text


@pytest.mark.parametrize(
    ("codes", "words"),
    [
        (np.zeros((9, 4), np.int16), "9 codebooks"),
        (np.full((10, 4), 128, np.int16), "outside"),
        (np.full((10, 4), -1, np.int16), "outside"),
    ],
)
def test_codes_of_another_codec_are_refused(layout: Layout, codes: np.ndarray, words: str) -> None:
    with pytest.raises(InvalidUtterance, match=words):
        layout.build(Utterance("Go.", (Reference(codes, "Words."),)))


@pytest.mark.parametrize(
    ("codes", "text"),
    [
        (np.zeros((10, 0), np.int16), "words"),
        (np.zeros((10, 4), np.int64), "words"),
        (np.zeros(10, np.int16), "words"),
        (np.zeros((10, 4), np.int16), " \n"),
    ],
)
def test_a_reference_without_frames_or_words_is_refused(codes: np.ndarray, text: str) -> None:
    with pytest.raises(InvalidUtterance):
        Reference(codes, text)
