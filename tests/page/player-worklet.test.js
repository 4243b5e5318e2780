// The player's buffering: when playback starts, the effect of a gap, and that every sample is played once.

import assert from "node:assert/strict";
import test from "node:test";

const RATE = 1000;
const BLOCK = 128; // samples the audio graph requests at a time

/** @type {any} */
let Source = null;
Object.assign(globalThis, {
  sampleRate: RATE,
  currentTime: 3,
  AudioWorkletProcessor: class {
    port = { onmessage: /** @type {any} */ (null), sent: /** @type {any[]} */ ([]), postMessage: (message) => this.port.sent.push(message) };
  },
  registerProcessor: (_name, made) => (Source = made),
});
await import("../../assets/page/player/player-worklet.js");

class Playing {
  constructor({ prebuffer = 0, delay = 0 } = {}) {
    Object.assign(globalThis, { currentTime: 3 });
    this.source = new Source();
    this.order({ order: "open", take: 1, prebuffer, delay });
  }

  order(message) {
    this.source.port.onmessage({ data: { take: 1, ...message } });
  }

  append(...samples) {
    this.order({ order: "append", samples: Float32Array.from(samples) });
  }

  /** The samples of the next block. */
  block() {
    const out = new Float32Array(BLOCK);
    assert.equal(this.source.process([], [[out]]), true);
    globalThis.currentTime += BLOCK / RATE;
    return [...out];
  }

  get last() {
    return this.source.port.sent.at(-1);
  }
}

const ramp = (count, from = 1) => Array.from({ length: count }, (_, i) => (from + i) / 4096);

test("playback starts once the prebuffer is full, or earlier if the take is complete", () => {
  const playing = new Playing({ prebuffer: 300 });
  playing.append(...ramp(299));
  assert.ok(playing.block().every((value) => value === 0));
  assert.equal(playing.source.state, "waiting");
  playing.order({ order: "complete" });
  assert.deepEqual(playing.block(), [...Float32Array.from(ramp(BLOCK))]);
  assert.equal(playing.source.port.sent[0].firstSampleAt, 3.128); // after one block of silence
});

test("every sample is played once and in order, even if the buffer has to grow", () => {
  const playing = new Playing();
  const all = ramp(RATE * 31);
  for (let at = 0; at < all.length; at += 1000) playing.append(...all.slice(at, at + 1000));
  playing.order({ order: "complete" });
  const samples = [];
  while (playing.source.state !== "over") samples.push(...playing.block());
  assert.deepEqual(samples.slice(0, all.length), [...Float32Array.from(all)]);
  assert.ok(samples.slice(all.length).every((value) => value === 0));
  assert.deepEqual([playing.last.state, playing.last.rendered, playing.last.underruns], ["over", all.length, 0]);
});

test("a gap is counted and loses no samples, and playback then waits for as much as the take was late", () => {
  const playing = new Playing();
  playing.append(...ramp(150));
  playing.block();
  const rest = playing.block();
  assert.deepEqual(rest.slice(0, 22), [...Float32Array.from(ramp(22, 129))]);
  assert.deepEqual([playing.last.state, playing.last.underruns], ["waiting", 1]);
  for (let waited = 0; waited < 3; waited += 1) playing.block();
  playing.append(...ramp(400, 151)); // after five blocks with audio for 150 samples: 490 late
  assert.ok(playing.block().every((value) => value === 0));
  playing.append(...ramp(100, 551));
  assert.equal(playing.block()[0], Float32Array.of(151 / 4096)[0]);
});

test("playback starts the given delay after the first samples, and the delay needed is reported", () => {
  const playing = new Playing({ delay: 0.2 });
  playing.block(); // time before the first samples does not count
  playing.append(...ramp(128));
  assert.ok([...playing.block(), ...playing.block()].every((value) => value === 0));
  playing.append(...ramp(256, 129)); // after 0.256 s, of which 0.128 would have been played
  assert.equal(playing.block()[0], Float32Array.of(1 / 4096)[0]);
  playing.append(...ramp(128, 385)); // just in time
  for (let i = 0; i < 2; i += 1) playing.order({ order: "complete" });
  const messages = playing.source.port.sent.filter(({ needed }) => needed !== undefined);
  assert.equal(messages.length, 1);
  assert.ok(Math.abs(messages[0].needed - 0.128) < 1e-9);
  for (let i = 0; i < 4; i += 1) playing.block();
  assert.equal(playing.last.underruns, 0);
});

test("a seek stays within the take, and after the take's end leaves it paused", () => {
  const playing = new Playing();
  playing.append(...ramp(BLOCK));
  playing.order({ order: "complete" });
  playing.block();
  playing.block();
  assert.equal(playing.source.state, "over");
  playing.order({ order: "seek", sample: 5000 });
  assert.deepEqual([playing.last.position, playing.last.state], [BLOCK, "paused"]);
  playing.order({ order: "seek", sample: -5 });
  playing.order({ order: "play" });
  assert.equal(playing.block()[0], Float32Array.of(1 / 4096)[0]);
});

test("a paused take is silent and keeps its position; playing at the end starts over", () => {
  const playing = new Playing();
  playing.append(...ramp(BLOCK * 2));
  playing.order({ order: "complete" });
  playing.block();
  playing.order({ order: "pause" });
  assert.ok(playing.block().every((value) => value === 0));
  assert.equal(playing.source.position, BLOCK);
  playing.order({ order: "play" });
  playing.block();
  playing.block();
  playing.order({ order: "play" });
  assert.equal(playing.source.position, 0);
});

test("commands for a closed take are ignored", () => {
  const playing = new Playing();
  playing.order({ order: "open", take: 2, prebuffer: 0, delay: 0 });
  playing.order({ order: "append", take: 1, samples: Float32Array.of(1) });
  assert.equal(playing.source.length, 0);
});

test("the player reports its position and the loudest sample since the last report", () => {
  const playing = new Playing();
  playing.append(...new Array(4096).fill(0.25), ...new Array(4096).fill(-0.5));
  playing.order({ order: "complete" });
  while (playing.source.port.sent.length < 2) playing.block();
  assert.equal(playing.last.loudest, 0.25);
  while (playing.source.rendered < 8192) playing.block();
  assert.equal(playing.last.loudest, 0.5);
});

test("another speed takes another time and leaves the pitch, and a seek holds", () => {
  const crossings = (samples) => samples.filter((value, i) => i && samples[i - 1] < 0 && value >= 0).length;
  for (const rate of [0.5, 1.5, 3]) {
    const playing = new Playing();
    playing.order({ order: "rate", rate });
    playing.append(...Array.from({ length: 6000 }, (_, i) => Math.sin((2 * Math.PI * 90 * i) / RATE)));
    playing.order({ order: "complete" });
    playing.order({ order: "seek", sample: 3000 });
    const heard = [];
    while (playing.source.state !== "over") heard.push(...playing.block());
    const seconds = playing.source.rendered / RATE;
    assert.ok(Math.abs(seconds - 3 / rate) < 0.06, `${seconds} s at ${rate}`);
    const pitch = crossings(heard) / seconds;
    assert.ok(Math.abs(pitch - 90) < 4, `${pitch} Hz at ${rate}`);
    assert.equal(playing.last.position, 6000);
  }
});

for (const rate of [1, 1.5]) {
  test(`the take that follows begins with the next sample at speed ${rate}`, () => {
    const playing = new Playing();
    playing.order({ order: "rate", rate });
    playing.append(...ramp(300));
    playing.order({ order: "complete" });
    playing.order({ order: "follow", next: 2, samples: Float32Array.from(ramp(200, 1000)) });
    const heard = [...playing.block(), ...playing.block(), ...playing.block(), ...playing.block()];
    const first = heard.findIndex((value) => value === Math.fround(1000 / 4096));
    assert.ok(first > 0 && heard.slice(0, first).every((value) => value > 0 && value < 1000 / 4096)); // no silence between
    if (rate === 1) assert.deepEqual(heard.slice(0, 500), [...Float32Array.from([...ramp(300), ...ramp(200, 1000)])]);
    assert.deepEqual([playing.source.take, playing.last.take, playing.source.state], [2, 2, "over"]);
  });
}

test("a take that no longer follows is not played", () => {
  const playing = new Playing();
  playing.append(...ramp(100));
  playing.order({ order: "complete" });
  playing.order({ order: "follow", next: 2, samples: Float32Array.from(ramp(100)) });
  playing.order({ order: "follow", samples: null });
  playing.block();
  assert.deepEqual([playing.last.take, playing.last.state], [1, "over"]);
});
