// Tracks in a row follow each other by themselves, and media keys control them.

import assert from "node:assert/strict";
import test from "node:test";

globalThis.document = /** @type {any} */ ({ querySelector: () => null });
globalThis.window = /** @type {any} */ ({ location: { origin: "http://studio", href: "http://studio/" } });
const { NowPlaying } = await import("../../assets/page/player/now-playing.js");
const { CHAPTER_END } = await import("../../assets/page/player/listening.js");
const { offerMediaKeys } = await import("../../assets/page/player/media-keys.js");

/** Resolves after all promises that are due. */
const settled = () => new Promise((resolve) => {
  setImmediate(resolve);
});

function playing() {
  /** @type {string[]} */
  const done = [];
  const sound = (number) => ({ delay: 0, append: () => {}, complete: () => {}, seek: (to) => done.push(`seek ${number} ${to}`), play: () => {}, pause: () => done.push(`pause ${number}`) });
  let opened = 0;
  const player = Object.assign(new EventTarget(), {
    rate: 1, wake: () => {}, endAfter: () => done.push("end"),
    open: async () => sound((opened += 1)),
    follow: async () => (done.push("follow"), sound((opened += 1))),
  });
  const nothing = () => {};
  const shown = {}; // how the listener listens
  const bar = Object.assign(new EventTarget(), {
    state: "empty", say: (state) => (bar.state = state), listen: (listening) => Object.assign(shown, listening), begin: nothing, offer: nothing, show: nothing, offerSteps: nothing,
    offerChapters: nothing, figures: nothing, level: nothing,
  });
  Object.defineProperty(bar, "isPlaying", { get: () => bar.state === "playing" || bar.state === "waiting" });
  const preferences = Object.assign(new EventTarget(), { values: { volume: 1, rate: 1 }, wait: null, set: nothing });
  const track = (name) => ({
    name, seconds: 10, sampleRate: 100, underruns: 0, file: {}, formats: [], figures: [], endingWords: "", expectedSeconds: 0, isLoaded: false,
    load() { this.isLoaded = true; },
    leave() { this.isLoaded = false; },
    hold: nothing, heard: async () => new Float32Array(1000),
  });
  const tracks = ["one", "two", "three"].map(track);
  const nowPlaying = new NowPlaying(player, bar, preferences);
  const heard = (state, position) => player.dispatchEvent(new CustomEvent("heard", { detail: { position: position * 100, rendered: 1, underruns: 0, state, loudest: 0 } }));
  const chapters = [0, 2].map((at) => ({ words: "", at }));
  return { done, player, bar, shown, tracks, nowPlaying, heard, play: async (at) => (await nowPlaying.play(tracks[at], 0, { tracks, isPlayedOn: true, chapters }), settled()) };
}

test("the next track begins by itself, and only the tracks that are needed stay loaded", async () => {
  const { player, nowPlaying, tracks, play, done } = playing();
  await play(0);
  assert.deepEqual(done.filter((what) => what === "follow"), ["follow"]);
  player.dispatchEvent(new Event("followed"));
  await settled();
  assert.equal(nowPlaying.current, tracks[1]);
  assert.deepEqual(tracks.map(({ isLoaded }) => isLoaded), [false, true, true]);
  await play(0); // instead of the third, which was ready
  assert.deepEqual(tracks.map(({ isLoaded }) => isLoaded), [true, true, false]);
});

test("a pause holds although the next track has begun meanwhile", async () => {
  const { player, bar, nowPlaying, play, done } = playing();
  await play(0);
  nowPlaying.pause(); // reaches a track that is over by now
  done.length = 0;
  player.dispatchEvent(new Event("followed"));
  assert.deepEqual([done, bar.state], [["pause 1", "pause 2"], "paused"]);
});

test("a repeated track is not followed until repeating ends", async () => {
  const { bar, nowPlaying, play, done, heard } = playing();
  await play(0);
  done.length = 0;
  bar.dispatchEvent(new CustomEvent("repeat", { detail: { isRepeated: true } }));
  heard("over", 10);
  await settled();
  assert.deepEqual([done, nowPlaying.current.name], [["end"], "one"]);
  bar.dispatchEvent(new CustomEvent("repeat", { detail: { isRepeated: false } }));
  await settled();
  assert.deepEqual(done, ["end", "follow"]);
});

test("a track that was missing is taken up when its turn comes, also at the end of the row", async () => {
  const { player, nowPlaying, tracks, done, heard } = playing();
  const parts = tracks.map((track, position) => Object.assign(track, { of: { position } }));
  const rows = [[parts[0], parts[1], parts[2]], [parts[0], parts[1], parts[2]]];
  const renew = async () => ({ tracks: rows.pop() ?? [], isPlayedOn: true, renew });
  await nowPlaying.play(parts[0], 0, { tracks: [parts[0], parts[2]], isPlayedOn: true, renew });
  await settled();
  assert.ok(!done.includes("follow")); // the second may be there in time
  heard("over", 10);
  await settled();
  assert.equal(nowPlaying.current, parts[1]);
  assert.ok(done.includes("follow"));
  player.dispatchEvent(new Event("followed"));
  await settled();
  const fourth = Object.assign({ ...parts[2] }, { of: { position: 3 } });
  rows.push([...parts, fourth]);
  heard("over", 10);
  await settled();
  assert.equal(nowPlaying.current, fourth);
});

test("the sleep timer pauses and says how long it still runs, unless it is stopped", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const { bar, shown, play } = playing();
  await play(0);
  const sleep = (minutes) => bar.dispatchEvent(new CustomEvent("sleep", { detail: { minutes } }));
  sleep(15);
  sleep(0);
  t.mock.timers.tick(15 * 60_000);
  assert.equal(bar.state, "waiting");
  sleep(30);
  t.mock.timers.tick(60_000);
  assert.deepEqual([shown.sleep, shown.left], [30, 29]);
  t.mock.timers.tick(29 * 60_000);
  assert.deepEqual([bar.state, shown.sleep], ["paused", 0]);
});

test("playback stops at the end of the chapter, where it goes on after a press", async () => {
  const { player, bar, shown, nowPlaying, play, done, heard } = playing();
  const sleep = (minutes) => bar.dispatchEvent(new CustomEvent("sleep", { detail: { minutes } }));
  await play(0);
  sleep(CHAPTER_END);
  assert.deepEqual([done.includes("end"), shown.sleep], [false, CHAPTER_END]); // the chapter has another part
  player.dispatchEvent(new Event("followed"));
  await settled();
  assert.deepEqual(done.filter((what) => what === "follow"), ["follow"]); // the next chapter does not begin by itself
  heard("over", 10);
  await settled();
  assert.deepEqual([nowPlaying.current.name, bar.state, shown.sleep], ["three", "paused", 0]);
});

test("media keys pause, skip and change the track, and the lock screen shows the position", async () => {
  const keys = new Map();
  const session = { setActionHandler: (key, work) => keys.set(key, work), setPositionState: (place) => (session.place = place), place: null, metadata: null, playbackState: "" };
  Object.defineProperty(globalThis, "navigator", { value: { mediaSession: session }, configurable: true });
  Object.assign(globalThis, { MediaMetadata: Object, Audio: class { play = async () => {}; pause() {} } });
  const { bar, nowPlaying, play, done, heard } = playing();
  offerMediaKeys(nowPlaying);
  nowPlaying.say("waiting", "Opening the file");
  assert.equal(session.playbackState, "none"); // there is no track yet
  await play(0);
  heard("playing", 3.5);
  assert.deepEqual([session.playbackState, session.metadata.title, session.place], ["playing", "one", { duration: 10, position: 3.5, playbackRate: 1 }]);
  keys.get("seekbackward")({ seekOffset: 2 });
  keys.get("seekto")({ seekTime: 7 });
  assert.deepEqual(done.slice(-2), ["seek 1 1.5", "seek 1 7"]);
  keys.get("pause")({});
  assert.deepEqual([bar.state, session.playbackState], ["paused", "paused"]);
  await keys.get("nexttrack")({});
  assert.equal(nowPlaying.current.name, "two");
});
