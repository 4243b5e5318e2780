// Responses in any order, or missing: only the latest counts, the bar shows the playing track, a lost connection is reported.

import assert from "node:assert/strict";
import test from "node:test";

globalThis.window = /** @type {any} */ ({ location: { origin: "http://studio", href: "http://studio/" } });
globalThis.FileReader = /** @type {any} */ (
  class {
    async readAsDataURL(blob) {
      this.result = await reading(await blob.text());
      this.onload();
    }
  }
);
const { Refusal } = await import("../../assets/page/client/refusal.js");
const { ask, readJson } = await import("../../assets/page/client/requests.js");
const { soundOf } = await import("../../assets/page/client/sound.js");
const { Latest } = await import("../../assets/page/lib/latest.js");
const { once } = await import("../../assets/page/lib/once.js");
const { UnderWay } = await import("../../assets/page/lib/under-way.js");
const { wavFile } = await import("../../assets/page/lib/wav.js");
const { NowPlaying } = await import("../../assets/page/player/now-playing.js");
const { Recorded } = await import("../../assets/page/player/track.js");
const { EngineHealth } = await import("../../assets/page/shell/engine-health.js");
const { buildRequest } = await import("../../assets/page/speak/request.js");

let reading = async (words) => words; // returns a clip as base64

/** A function that returns a new promise for each call; they can be resolved in any order. */
function held() {
  const calls = [];
  const call = () => {
    calls.push(Promise.withResolvers());
    return calls.at(-1).promise;
  };
  return { calls, call };
}

/** Resolves after all promises that can be settled. */
function settled() {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

const wavAnswer = (...samples) => new Response(wavFile([Int16Array.from(samples)], 24000));

/** A response whose body breaks off after its beginning. */
const broken = (beginning) =>
  new Response(
    new ReadableStream({
      start: (stream) => stream.enqueue(beginning),
      pull: (stream) => stream.error(new TypeError("network error")),
    }),
  );

test("only the latest request and those that join it count, and none after the end", () => {
  const latest = new Latest();
  const first = latest.begin();
  const [second, joined] = [latest.begin(), latest.join()];
  assert.deepEqual([first(), second(), joined()], [false, true, true]);
  latest.end();
  assert.deepEqual([second(), joined()], [false, false]);
});

test("a second press is ignored while the first one's work is running, but not after it has failed", async () => {
  const { calls, call } = held();
  const press = once(call);
  const pressed = [press(), press()];
  assert.equal(calls.length, 1);
  calls[0].reject(new Error("no"));
  await assert.rejects(pressed[0]);
  press();
  assert.equal(calls.length, 2);
});

test("waiting for running work lasts until all of it has ended, in any order, even if some fails", async () => {
  const { calls, call } = held();
  const underWay = new UnderWay();
  const ended = [];
  const first = underWay.add(call());
  const second = underWay.add(call());
  underWay.ended().then(() => ended.push("both"));
  calls[1].resolve();
  await second;
  await settled();
  assert.deepEqual(ended, []);
  calls[0].reject(new Error("refused"));
  await assert.rejects(first);
  await settled();
  assert.deepEqual(ended, ["both"]);
  await new UnderWay().ended();
});

test("a response that breaks off, or comes from another server, is reported as a lost connection", async () => {
  for (const answer of [() => broken(new TextEncoder().encode('{"da')), () => new Response("<html>"), () => Promise.reject(new TypeError("Failed to fetch"))]) {
    globalThis.fetch = async () => answer();
    for (const read of [ask, readJson]) await assert.rejects(read("/v1/voices"), (problem) => problem instanceof Refusal && problem.isLost);
  }
  const sound = soundOf(broken(new Uint8Array(await wavFile([Int16Array.of(1)], 24000).arrayBuffer())));
  assert.equal((await sound.next()).value?.pcm.length, 1);
  await assert.rejects(sound.next(), Refusal);
});

test("an older response about the engine's health does not replace a newer one", async ({ mock }) => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { calls, call } = held();
  globalThis.fetch = call;
  const health = new EngineHealth();
  health.look();
  const statuses = [];
  health.watch(({ status }) => statuses.push(status));
  calls[1].resolve(new Response('{"status": "ready"}'));
  await settled();
  calls[0].reject(new TypeError("Failed to fetch"));
  await settled();
  assert.deepEqual(statuses, ["ready"]);
});

test("leaving an audio stream cancels its request", async () => {
  const bytes = new Uint8Array(await wavFile([Int16Array.of(1)], 24000).arrayBuffer());
  const cancelled = Promise.withResolvers();
  const sound = soundOf(new Response(new ReadableStream({ start: (stream) => stream.enqueue(bytes), cancel: cancelled.resolve })));
  await sound.next();
  await sound.return();
  await cancelled.promise;
});

test("a clip still being read is not sent in place of the next one, and each clip is read once", async () => {
  const fields = { text: "Hi", source: "clip", clipText: "words", temperature: 1, topP: 1, topK: 1, speed: 1, cutAfter: 0 };
  const { calls, call } = held();
  reading = call;
  const [a, b] = ["a", "b"].map((sound) => new Blob([sound]));
  const [first, second, again] = [a, b, a].map((clip) => buildRequest({ ...fields, clip }, 20));
  await settled();
  assert.equal(calls.length, 2);
  calls[1].resolve("b as base64");
  calls[0].resolve("a as base64");
  assert.deepEqual(
    (await Promise.all([first, second, again])).map(({ ref_audio }) => ref_audio),
    ["a as base64", "b as base64", "a as base64"],
  );
});

/** NowPlaying with a list of the player's orders; opened(n) lets the nth track be opened. */
function desk() {
  const orders = [];
  const { calls, call } = held();
  const player = Object.assign(new EventTarget(), {
    wake() {},
    async open() {
      const take = calls.length;
      await call();
      const order = (name) => () => orders.push(`${take} ${name}`);
      return { append: order("append"), complete: () => {}, seek: () => {}, play: order("play"), pause: order("pause") };
    },
  });
  const bar = Object.assign(new EventTarget(), { state: "empty", begin() {}, offer() {}, show() {}, offerSteps() {}, offerChapters() {}, figures() {}, level() {}, listen() {} });
  Object.assign(bar, { say: (state) => (bar.state = state) });
  const preferences = Object.assign(new EventTarget(), { values: { volume: 1 }, wait: null });
  const opened = async (number) => {
    while (calls.length <= number) await settled();
    calls[number].resolve();
  };
  const report = (state) => player.dispatchEvent(new CustomEvent("heard", { detail: { position: 0, rendered: 0, underruns: 0, state, loudest: 0 } }));
  return { nowPlaying: new NowPlaying(player, bar, preferences), bar, orders, calls, opened, report };
}

test("the track requested last is played, whichever is fetched or opened first", async () => {
  const { nowPlaying, orders, calls, opened } = desk();
  const { calls: requests, call } = held();
  globalThis.fetch = call;
  const [slow, fast, shown] = ["1", "2", "3"].map((name) => new Recorded({ name, source: name }));
  const plays = [nowPlaying.play(slow), nowPlaying.play(fast)];
  requests[1].resolve(wavAnswer(1, 2));
  await opened(0);
  requests[0].resolve(wavAnswer(1, 2));
  await Promise.all(plays);
  assert.equal(nowPlaying.current, fast);
  assert.deepEqual([orders.splice(0), calls.length], [["0 pause", "0 append", "0 play"], 1]);
  const again = nowPlaying.play(fast);
  await settled();
  nowPlaying.show(shown); // while the other is being opened
  await opened(1);
  await again;
  assert.deepEqual([nowPlaying.current, orders], [shown, ["0 pause"]]);
});

test("a requested take stops the previous track, and its first audio does not stop a track played in the meantime", async () => {
  const { nowPlaying, bar, orders, calls, opened, report } = desk();
  const { calls: requests, call } = held();
  globalThis.fetch = call;
  const [before, preview] = ["1", "2"].map((name) => new Recorded({ name, source: name }));
  const take = Object.assign(new Recorded({ name: "take" }), { sampleRate: 24000 });
  const first = nowPlaying.play(before);
  requests[0].resolve(wavAnswer(1));
  await opened(0);
  await first;
  nowPlaying.show(take);
  report("over"); // from the previous track
  assert.deepEqual([orders.splice(0).at(-1), bar.state], ["0 pause", "waiting"]);
  const second = nowPlaying.play(preview);
  requests[1].resolve(wavAnswer(1));
  await opened(1);
  await second;
  await nowPlaying.open(take);
  assert.equal(calls.length, 2);
  report("playing");
  assert.equal(bar.state, "playing");
});

test("the pace of a few frames, most of whose work was reading prompts, is believed only so far", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] }); // it polls for ever
  const load = { frames: 8, busy_seconds: 24 };
  context.mock.method(globalThis, "fetch", async () => Response.json({ status: "ready", engine: { sample_rate: 24000, frame_samples: 1920 }, load }));
  const health = new EngineHealth();
  await health.look();
  assert.equal(health.pace, 2);
  Object.assign(load, { frames: 800, busy_seconds: 192 });
  await health.look();
  assert.ok(Math.abs((health.pace ?? 0) - 3) < 1e-9);
});
