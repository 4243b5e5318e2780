// The page's analysis of a script: its length, tags and speakers.

import assert from "node:assert/strict";
import test from "node:test";

import { dealVoices, folded, isTold, speakers, voiceNamed } from "../../assets/page/speak/dialogue.js";
import { lint } from "../../assets/page/speak/script-tools.js";
import { KNOWN, offered, OFTEN, TAGS } from "../../assets/page/speak/speech-tags.js";

const graveOf = (text, cutAfter = 0) => lint(text, cutAfter).notes.filter(({ grave }) => grave).map(({ words }) => words);

test("every tag is listed once, in lower case, and the frequent ones are among them", () => {
  const all = Object.values(TAGS).flat();
  assert.equal(KNOWN.size, all.length);
  assert.ok(all.every((tag) => tag === tag.toLowerCase() && tag === tag.trim()));
  assert.ok(OFTEN.every((tag) => KNOWN.has(tag)));
});

test("a script's facts are its length, duration, tags and parts", () => {
  assert.deepEqual(lint("", 0), { facts: [], notes: [] });
  assert.deepEqual(lint("[sad] Hello", 0).facts, ["11 characters", "about 1 s", "1 tag"]);
  assert.deepEqual(lint("x".repeat(301), 0).facts.at(-1), "about 2 parts");
  assert.equal(lint("👋", 0).facts[0], "1 character");
});

test("serious problems of a script are reported", () => {
  assert.deepEqual(graveOf("Hello [sad"), ["A tag is not closed: add ]."]);
  assert.deepEqual(graveOf("[sad] Hello]"), []);
  assert.deepEqual(graveOf("[sad][pause:1s]"), ["There are tags but no words to say."]);
  assert.deepEqual(graveOf("x".repeat(16385)), ["1 character too many: at most 16,384 fit."]);
  assert.match(graveOf("a".repeat(150), 5)[0], /Probably longer than 5 s/);
  assert.deepEqual(graveOf("a".repeat(150), 10), []);
});

test("an unknown tag is reported once; pauses of any length are known", () => {
  assert.deepEqual(lint("[purring] a [purring] b [PAUSE: 250 ms] [Sad]", 0).notes, [
    { words: "[purring]: not a known tag; listen to check that it works.", grave: false },
  ]);
});

test("names at the start of lines are speakers, as first written", () => {
  const script = "Anna: Hello.\nBert：你好\nANNA: Again.\nhttp://example.org\nat 12:30 we met\nA very long way to begin: no name";
  assert.deepEqual(speakers(script), ["Anna", "Bert"]);
  assert.deepEqual(speakers(script, 2), ["Anna"]);
  assert.deepEqual(speakers("No names here."), []);
  assert.deepEqual(speakers("\ufeffAn\u00adna: Hi.\n**Bert:** Hello.\n**Cleo**: Yes."), ["Anna", "Bert", "Cleo"]);
});

test("words before the first name are for the narrator", () => {
  assert.equal(isTold("It was late.\nAnna: Hello."), true);
  assert.equal(isTold("\n  \nAnna: Hello."), false);
  assert.equal(isTold("No names at all"), true);
});

test("a voice is found by its name, whatever its case and spacing", () => {
  const voices = [{ id: "old-tom", name: "Old  Tom" }, { id: "b", name: "Bert" }];
  assert.equal(voiceNamed("OLD TOM", voices), "old-tom");
  assert.equal(voiceNamed("b", voices), "b");
  assert.equal(voiceNamed("Clara", voices), undefined);
  assert.equal(folded("Old \t Tom"), "old tom");
});

const CARD = { tags: ["whisper", "fast"], languages: ["en"] };
const wordsOf = (...given) => lint(...given).notes.map(({ words }) => words);

test("the tags stated by a model are offered first, all others separately", () => {
  const { often, groups } = offered(CARD.tags);
  assert.deepEqual(often, ["whisper", "fast", "pause:1s"]);
  assert.deepEqual(groups.map(({ isIdle }) => isIdle), [false, true]);
  assert.ok(groups[1].tags.includes("excited") && !groups[1].tags.includes("pause:1s"));
  assert.deepEqual(offered(null).often, OFTEN);
  assert.deepEqual(offered(null).groups.flatMap(({ tags }) => tags), Object.values(TAGS).flat());
});

test("tags are looked up among those of the loaded model", () => {
  assert.deepEqual(wordsOf("[whisper] a [Fast] b [pause:1s]", 0, CARD), []);
  assert.deepEqual(wordsOf("[excited] a [sad] b", 0, CARD), ["This model does not know [excited], [sad] and reads the words aloud."]);
});

test("text in brackets is a tag, words or a citation mark, and after a backslash always words", () => {
  const script = "[whisper] He cast [Fireball] twice [1, 2]. \\[laughs] [pause:1s]";
  assert.deepEqual(wordsOf(script, 0, CARD), ["[1, 2]: citation marks are left out.", "This model does not know [Fireball] and reads the words aloud."]);
  assert.ok(lint(script, 0, CARD).facts.includes("2 tags"));
  assert.deepEqual(wordsOf("[Level Up]", 0, CARD), ["This model does not know [Level Up] and reads the words aloud."]);
  assert.deepEqual(wordsOf("\\[sad] a", 0), []);
});

test("a text in another language than the model's is reported if both are known", () => {
  assert.deepEqual(wordsOf("Hallo", 0, CARD, "de"), ["This model speaks English; this text looks like German."]);
  assert.deepEqual(wordsOf("Hallo", 0, CARD, "en"), []);
  assert.deepEqual(wordsOf("Hallo", 0, CARD, null), []);
  assert.deepEqual(wordsOf("Hallo", 0, undefined, "de"), []);
});

test("a text without letters is reported", () => {
  assert.deepEqual(graveOf("😀🎉 ***"), ["There are no letters or numbers to say."]);
});

test("a cast gets voices of its names' usual gender, alternating for other names, and not the narrator's", () => {
  const voices = ["alan male", "angus male", "clara female", "otto male", "nora female"].map((voice) => voice.split(" ")).map(([id, gender]) => ({ id, gender }));
  const deal = (...names) => dealVoices(names, voices, [], "clara").map(([, id]) => id);
  assert.deepEqual(deal("Anna", "Ben", "Captain Reyes", "Mrs. Hill"), ["nora", "alan", "angus", "otto"]);
  assert.deepEqual(deal("The Fish", "The Crab"), ["alan", "nora"]);
  assert.deepEqual(dealVoices(["Eve"], voices, ["nora"], "clara"), [["Eve", "alan"]]);
  assert.deepEqual(dealVoices(["Eve"], [voices[2]], [], "clara"), [["Eve", "clara"]]);
  assert.deepEqual(dealVoices(["Eve"], [], [], ""), [["Eve", ""]]);
});

test("a hostile script is analysed in linear time", { timeout: 5000 }, () => {
  for (const script of ["[".repeat(200_000), `${"[".repeat(200_000)}]`, "[32m ".repeat(40_000)]) assert.equal(graveOf(script)[0].includes("too many"), true);
});
