// The page's takes, their figures and their waveforms.

import assert from "node:assert/strict";
import { resolveObjectURL } from "node:buffer";
import test from "node:test";

import { deleteTakes } from "../../assets/page/client/takes.js";
import { figuresOf } from "../../assets/page/player/take-figures.js";
import { Waveform } from "../../assets/page/player/waveform.js";
import { plainVoice, Take } from "../../assets/page/takes/take.js";

const RECORD = {
  id: "t1",
  excerpt: "Hello",
  voice: "clara",
  seed: 7,
  starred: true,
  queue_ms: 0.2,
  first_audio_ms: 99.6,
  rtf: 0.5,
  state: "finished",
  finish_reason: "length",
  seconds: 3,
  audio: true,
};
const newTake = () => new Take({ number: 2, request: { input: "Hello", voice: "clara" }, voiceName: "Clara", settings: {} });

test("a take is created from the server's record", () => {
  const take = Take.of(RECORD);
  assert.deepEqual([take.id, take.seed, take.isStarred, take.hasSound, take.seconds], ["t1", "7", true, true, 3]);
  assert.equal(take.name, "clara, seed 7");
  assert.match(take.endingWords, /^Cut off before the end/);
  assert.equal(Take.of({ ...RECORD, state: "cancelled" }).ending, "stopped");
  assert.equal(Take.of({ ...RECORD, state: "failed" }).ending, "failed");
});

test("a take truncated by a limit can be continued, as a new take without that limit", () => {
  const cut = Object.assign(Take.of({ ...RECORD, can_continue: true }), { settings: { cutAfter: 3 } });
  cut.request = { ...cut.request, max_new_tokens: 65 };
  assert.equal(cut.canContinue, true);
  const { number, continues, request, settings, isRepeatable } = new Take({ ...cut.continued, number: 4 });
  assert.deepEqual({ number, continues, request, settings, isRepeatable }, {
    number: 4,
    continues: "t1",
    request: { input: "Hello", voice: "clara", seed: 7 },
    settings: { cutAfter: 0 },
    isRepeatable: true,
  });
  assert.match(cut.endingWords, /Press Continue/);
  const take = newTake();
  assert.equal(take.canContinue, false);
  take.settle({ rtf: 0.5, finish_reason: "length", can_continue: true });
  assert.deepEqual([take.canContinue, take.ending, take.continues], [true, "length", null]);
});

test("a take of the user's own clip cannot be regenerated, as the clip was not stored", () => {
  assert.equal(Take.of(RECORD).isRepeatable, true);
  assert.equal(Take.of({ ...RECORD, voice: "clara, clip" }).isRepeatable, false);
});

test("received audio becomes a file, which can be decoded again", async () => {
  const take = newTake();
  take.begin(new Headers({ "x-request-id": "r1", "x-seed": "12", "x-first-audio-ms": "80" }));
  take.add(24000, Int16Array.of(1, 2));
  take.add(24000, Int16Array.of(3));
  take.close("stop");
  assert.deepEqual([...(await take.pcm())], [1, 2, 3]);
  assert.equal(take.seconds, 3 / 24000);
  assert.equal(take.fileName, "take-2-clara-seed-12.wav");
  assert.deepEqual(take.repeat, { input: "Hello", voice: "clara", seed: 12 });
  assert.equal(take.queueMs, null);
  take.drop();
});

test("a file offered by the player remains after its take is removed from the list, until the player leaves it", () => {
  const [playing, other] = [newTake(), newTake()];
  for (const take of [playing, other]) {
    take.add(24000, Int16Array.of(1));
    take.close("stop");
  }
  playing.hold();
  for (const take of [playing, other]) take.drop();
  assert.notEqual(resolveObjectURL(playing.url), undefined);
  assert.equal(resolveObjectURL(other.url), undefined);
  playing.leave();
  assert.equal(resolveObjectURL(playing.url), undefined);
});

test("the words of an interrupted take are not aligned", () => {
  const endings = ["stop", "length", "stopped", "broken", "failed"].map((ending) => {
    const take = Object.assign(newTake(), { id: "r1" });
    take.add(24000, Int16Array.of(1));
    take.close(ending);
    take.drop();
    return [ending, take.timesSource !== null];
  });
  assert.deepEqual(Object.fromEntries(endings), { stop: true, length: true, stopped: true, broken: false, failed: false });
});

test("a blind take reveals neither voice nor figures", () => {
  const take = Object.assign(newTake(), { isBlind: true, seed: "12" });
  assert.equal(take.fileName, "take-2.wav");
  assert.deepEqual(figuresOf(take), []);
});

test("figures are shown if they are known", () => {
  const figures = Object.fromEntries(figuresOf(Take.of(RECORD)).map(([label, value]) => [label, value]));
  assert.deepEqual(figures, { waited: null, server: "100 ms", heard: null, rtf: 0.5, gaps: null, seed: "7" });
});

test("a waveform has the loudest sample of each thirtieth of a second, whatever the chunk size", () => {
  const pcm = Int16Array.from({ length: 90 }, (_, i) => (i === 40 ? -32768 : i === 70 ? 16384 : 0));
  for (const size of [1, 7, 30, 90]) {
    const waveform = new Waveform(900);
    for (let at = 0; at < pcm.length; at += size) waveform.add(pcm.slice(at, at + size));
    assert.deepEqual(waveform.bars, [0, 1, 0.5]);
  }
});

test("the revision is removed from a voice's name", () => {
  assert.equal(plainVoice("clara@3"), "clara");
  assert.equal(plainVoice("me@home"), "me@home");
});

test("many takes are deleted in requests whose addresses every proxy accepts", async (context) => {
  globalThis.window = /** @type {any} */ ({ location: { origin: "http://studio", href: "http://studio/" } });
  const ids = Array.from({ length: 400 }, (_, n) => `take_${String(n).padStart(31, "0")}`);
  const sent = context.mock.method(globalThis, "fetch", async (url) => {
    assert.ok(url.length < 8000);
    return Response.json({ ids: new URL(url).searchParams.get("ids")?.split(","), undo_seconds: 600 });
  });
  const { ids: deleted, undo_seconds: seconds } = await deleteTakes(ids);
  assert.deepEqual([deleted, seconds, sent.mock.callCount()], [ids, 600, 3]);
  sent.mock.mockImplementationOnce(async () => Response.json({ error: { message: "the disk is full" } }, { status: 507 }), 5);
  const partly = await deleteTakes(ids);
  assert.deepEqual([partly.ids, partly.left], [ids.slice(0, 300), ids.slice(300)]);
  assert.match(partly.problem?.why ?? "", /full/);
  sent.mock.mockImplementation(async () => Response.json({ error: { message: "the disk is full" } }, { status: 507 }));
  await assert.rejects(deleteTakes(ids), /full/);
});
