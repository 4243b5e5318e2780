// The delay before a take starts: enough for the previous takes, none if the engine is fast.

import assert from "node:assert/strict";
import test from "node:test";

import { PlayoutDelay } from "../../assets/page/player/playout-delay.js";

const FRAME = 2048 / 44100;
const CHUNKS = [1, 1, 1, 2, 2, 3, 3, 4, 4, 4];

/** The delay a take needs; pace: seconds of work per second of audio; jitter: returns a chunk's lateness in seconds. */
function needed(pace, jitter = () => 0, frame = FRAME) {
  let [framesHeard, late] = [0, -Infinity];
  for (const [i, frames] of CHUNKS.entries()) {
    const came = pace * (framesHeard + frames - 1) * frame + jitter(); // after the first chunk
    if (i) late = Math.max(late, came - framesHeard * frame);
    framesHeard += frames;
  }
  return late;
}

/** Park and Miller's pseudo-random numbers from 0 to 1, the same in every run. */
function numbers(seed) {
  return () => (seed = (seed * 48271) % 2147483647) / 2147483647;
}

test("takes of varying timing have no gaps after the first three", () => {
  for (const pace of [0.1, 0.5, 0.75, 0.95]) {
    const next = numbers(7);
    const delay = new PlayoutDelay();
    delay.expect(pace);
    for (let take = 1; take <= 50; take += 1) {
      const took = needed(pace, () => next() * 0.06);
      if (take > 3) assert.ok(took <= delay.seconds, `pace ${pace}, take ${take}: ${took} needed, ${delay.seconds} waited`);
      delay.learn(took);
    }
    assert.ok(delay.seconds < Math.max(needed(pace) + 0.15, 0.301 * Number(pace > 0.4)), `pace ${pace}: ${delay.seconds}`);
  }
});

test("a fast engine causes no delay, from the first take on", () => {
  const delay = new PlayoutDelay();
  delay.expect(0.05);
  assert.equal(delay.seconds, 0);
  for (let take = 0; take < 10; take += 1) {
    delay.learn(needed(0.05));
    assert.ok(delay.seconds <= 0.04);
  }
});

test("the first take of a slow engine is delayed by as much as its pace requires", () => {
  for (const pace of [0.5, 0.75, 0.95]) {
    const delay = new PlayoutDelay();
    for (const frame of [FRAME, 0.08]) {
      delay.expect(pace, frame);
      assert.ok(delay.seconds >= needed(pace, undefined, frame), `pace ${pace}, frames of ${frame} s`);
    }
  }
  const delay = new PlayoutDelay();
  delay.expect(8); // the very first work, with cold caches
  assert.ok(delay.seconds <= 0.3);
});

test("played takes count more than the expected pace, but an engine near real time may slow down at any time", () => {
  const delay = new PlayoutDelay();
  delay.learn(0.1);
  const learnt = delay.seconds;
  delay.expect(0.4);
  assert.equal(delay.seconds, learnt);
  for (let take = 0; take < 10; take += 1) delay.learn(-0.01);
  for (const pace of [0.5, 0.6]) {
    delay.expect(pace);
    assert.ok(delay.seconds >= needed(1.45 * pace), `pace ${pace}: ${delay.seconds}`);
  }
  delay.expect(0.4);
  assert.ok(delay.seconds <= 0.04);
});

test("a late take counts at once and is forgotten over time, however late it was", () => {
  const delay = new PlayoutDelay();
  for (let take = 0; take < 20; take += 1) delay.learn(0.02);
  const before = delay.seconds;
  delay.learn(0.4);
  assert.ok(delay.seconds >= 0.4);
  delay.learn(60);
  assert.ok(delay.seconds <= 1.5);
  for (let take = 0; take < 10; take += 1) delay.learn(0.02);
  assert.equal(delay.seconds, before);
});

test("after a late take the delay is little more than that take needed", () => {
  const delay = new PlayoutDelay();
  for (let take = 0; take < 9; take += 1) delay.learn(-0.02);
  delay.learn(0.05);
  assert.ok(delay.seconds >= 0.05 && delay.seconds <= 0.07, String(delay.seconds));
});

test("an engine at half of real time causes a short delay, whatever takes needed; a much faster one causes none", () => {
  const delay = new PlayoutDelay();
  for (let take = 0; take < 10; take += 1) delay.learn(-0.04);
  delay.expect(0.5);
  assert.ok(delay.seconds >= 0.02 && delay.seconds <= 0.03, String(delay.seconds));
  delay.expect(0.1);
  assert.equal(delay.seconds, 0);
});

test("an engine slower than the speech delays a take until it will not run dry, by its length", () => {
  const delay = new PlayoutDelay();
  delay.expect(0.5);
  assert.equal(delay.before(60), delay.seconds);
  delay.expect(2);
  assert.ok(delay.before(10) >= 10 && delay.before(10) <= 12, `${delay.before(10)}`);
  assert.equal(delay.before(0), delay.seconds); // all of it is there
});

test("a take whose codec was slower than the engine told delays the next one", () => {
  const delay = new PlayoutDelay();
  delay.expect(0.9);
  delay.learn(6, 10); // arrived in 16 seconds
  assert.ok(delay.before(10) >= 6);
  delay.learn(-0.1, 10); // the machine had other work
  assert.ok(delay.before(10) < 2);
});
