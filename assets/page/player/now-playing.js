// Plays one track at a time in the player and shows it in the player bar. Generates none.

import { Refusal } from "../client/refusal.js";
import { Latest } from "../lib/latest.js";
import { CHAPTER_END, followPreferences } from "./listening.js";
import { beside, endsChapter, hasGap, NextTrack, NO_ROW, renewed } from "./next-track.js";
import { said } from "./track.js";
import { floats } from "../lib/wav.js";
import { phrase } from "../lib/phrases.js";

const NOTICED = 2; // seconds of silence that a listener would wonder about

/**
 * Fires "show" with {take} when another track is shown, "moved" with {take, position, state} about twenty times a second
 * while one is playing, ten while it is generated (position in seconds; the bar's state), "state" with {take, state} when that changes,
 * and "save" with {take, format} when a download is requested.
 */
export class NowPlaying extends EventTarget {
  /** @type {any} */
  current = null; // a Track: mostly a Take
  position = 0; // seconds
  heard = { rendered: 0, underruns: 0 }; // samples, gaps
  /** @type {import("./player.js").Sound | null} */
  #sound = null; // the track's handle in the player
  #row = NO_ROW;
  #asked = new Latest(); // of requests to show or play a track
  #isRepeated = false;
  #isChapterLast = false; // playback stops at the end of the chapter
  #next;
  #isPaused = false; // ignore states reported before the player has paused

  constructor(player, bar, preferences) {
    super();
    this.player = player;
    this.bar = bar;
    this.#next = new NextTrack(player);
    player.addEventListener("followed", () => this.#goOn());
    player.addEventListener("heard", ({ detail }) => this.#hear(detail));
    bar.addEventListener("press", () => this.playOrPause());
    bar.addEventListener("seek", ({ detail }) => this.seek(detail.seconds));
    bar.addEventListener("skip", ({ detail }) => this.skip(detail.by));
    bar.addEventListener("repeat", ({ detail }) => this.#switch(() => (this.#isRepeated = detail.isRepeated)));
    bar.addEventListener("sleep", ({ detail }) => this.#switch(() => (this.#isChapterLast = detail.minutes === CHAPTER_END)));
    bar.addEventListener("step", ({ detail }) => this.step(detail.by));
    bar.addEventListener("chapter", ({ detail }) => this.#open(this.#row.tracks[detail.at]));
    bar.addEventListener("save", ({ detail }) => this.#tell("save", detail));
    bar.addEventListener("close", () => {
      this.pause();
      bar.isClosed = true;
    });
    followPreferences(player, bar, preferences, (words) => this.pause(words));
  }

  get isOver() {
    return this.bar.state === "over";
  }

  get isPlaying() {
    return this.bar.isPlaying;
  }

  /** Whether the track is in a row that plays on automatically. */
  get isPlayedOn() {
    return this.#row.isPlayedOn;
  }

  say(state, words) {
    const isOther = this.bar.state !== state;
    this.bar.say(state, words);
    if (isOther) this.#tell("state", { state });
  }

  /** Show an error message for a track that could not be played. */
  fail(words) {
    this.say(this.current?.file ? "over" : "empty", words);
  }

  /** The tracks of the row, or just the current one. */
  get tracks() {
    return this.#row.tracks.length ? this.#row.tracks : [this.current];
  }

  /** Clear this message if it is shown: the request can be retried, or the track was renamed. */
  recover(words) {
    if (this.bar.statusText === words) this.say(this.bar.state, this.current?.file ? this.current.name : "");
  }

  pause(words = phrase("player.paused")) {
    this.#sound?.pause();
    this.#isPaused = true;
    if (this.isPlaying && this.#sound) this.say("paused", words);
  }

  /** Generation was stopped; received audio stays playable. */
  halt() {
    this.pause();
    if (!this.current?.file) this.say("empty", phrase("player.stopped"));
  }

  playOrPause() {
    if (this.isPlaying) return this.pause();
    this.#asked.begin();
    this.#isPaused = false;
    this.player.wake();
    this.#sound?.play();
    this.say("waiting");
  }

  /** Return a function that reports whether nothing else has been requested since. */
  watch() {
    return this.#asked.join();
  }

  /** Seek in the current track. */
  seek(seconds) {
    this.#sound?.seek(seconds);
  }

  /** Go forward or back by seconds, in a row also into the track beside. Throws Refusal. */
  async skip(by) {
    const to = this.position + by;
    const other = to < 0 ? beside(this.#row, this.current, -1) : this.current && to > this.current.seconds ? beside(this.#row, this.current, 1) : null;
    if (!other) return this.seek(Math.max(0, to));
    const from = to < 0 ? to : to - this.current.seconds;
    await other.load();
    return this.play(other, Math.max(0, from < 0 ? other.seconds + from : from), this.#row);
  }

  /** Make this the current track. */
  show(take, row = NO_ROW) {
    this.#asked.begin();
    this.#isPaused = false;
    this.#sound?.pause(); // no longer the current track
    this.#sound = null;
    this.#next.leave(take);
    if (this.current && this.current !== take) this.current.leave();
    take.hold();
    this.current = take;
    this.#row = row;
    this.position = 0;
    this.heard = { rendered: 0, underruns: 0 };
    this.bar.begin();
    this.bar.offer(take.url ? take.formats : []);
    this.bar.show({ bars: take.waveform?.bars ?? [], seconds: take.seconds, expected: take.expectedSeconds, position: 0 });
    this.bar.offerSteps(row.tracks.length > 1 ? { back: beside(this.#row, this.current, -1), on: beside(this.#row, this.current, 1) } : null);
    this.bar.offerChapters(row.isPlayedOn ? (row.chapters ?? []) : [], row.tracks.indexOf(take));
    this.showFigures(take);
    this.say("waiting", take.file ? phrase("player.playing", { name: take.name }) : undefined);
    this.#tell("show");
  }

  /** Play a track from a position in seconds; one still being generated plays as it grows. Throws Refusal. */
  async play(take, from = 0, row = NO_ROW) {
    const isAsked = this.#asked.begin();
    await take.load();
    if (!isAsked()) return; // another was requested
    take.pressedAt = null;
    this.show(take, row);
    const [isShown, sound] = [this.#asked.join(), await this.player.open(take.sampleRate)];
    if (!isShown()) return;
    sound.pause();
    if (take.file) {
      const samples = await take.heard();
      if (!isShown()) return;
      sound.append(samples);
      sound.complete();
      sound.seek(from < take.seconds ? from : 0);
    } else {
      for (const piece of take.pieces) sound.append(floats(piece)); // no await until #sound is set: no piece may be missed
      sound.seek(Math.min(from, take.seconds));
    }
    sound.play();
    this.#sound = sound;
    this.#prepareNext();
  }

  /** Whether the next track of the row begins by itself. */
  get #goesOn() {
    return this.#row.isPlayedOn && !this.#isRepeated && !(this.#isChapterLast && endsChapter(this.#row, this.current));
  }

  #prepareNext() {
    const [next, isShown] = [this.#goesOn && !hasGap(this.#row, this.current) ? beside(this.#row, this.current, 1) : null, this.#asked.join()];
    if (next) this.#next.prepare(this.current, next, () => isShown() && this.#goesOn);
  }

  /** Change whether the next track begins by itself. */
  #switch(change) {
    const before = this.#goesOn;
    change();
    if (before && !this.#goesOn) this.#next.end();
    if (!before && this.#goesOn) this.#prepareNext();
  }

  /** Show the track that has begun by itself. */
  #goOn() {
    if (!this.#next.ready) return;
    const { track, sound } = this.#next.ready;
    const isPaused = this.#isPaused; // by a press that the previous track's end overtook
    track.pressedAt = null;
    this.show(track, this.#row);
    this.#sound = sound;
    if (isPaused) this.pause();
    this.#prepareNext();
  }

  /** Play one of several tracks in a row; isPlayedOn: then the rest. Throws Refusal. */
  playRow(tracks, at, isPlayedOn) {
    return this.play(tracks[at], 0, { tracks, isPlayedOn });
  }

  /** Replace the current track, also in its row, and play the new one. Throws Refusal. */
  playInstead(track, from = 0) {
    const { current } = this;
    const tracks = this.#row.tracks.map((other) => (other === current ? track : other));
    return this.play(track, from, { ...this.#row, tracks });
  }

  /** Play the next (1) or previous (-1) track of the row, which may have more tracks by now. */
  async step(by) {
    const [isAsked, row] = [this.#asked.join(), await renewed(this.#row, this.current)];
    if (isAsked()) await this.#open(beside(row, this.current, by), row);
  }

  /** Play a track of a row, and show why it fails. @param {import("./track.js").Track | undefined} next */
  async #open(next, row = this.#row) {
    if (!next) return;
    try {
      await this.play(next, 0, row);
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      this.say("over", phrase("player.failed", { name: next.name, why: problem.why }));
    }
  }

  /** Start playing a take with its first piece. */
  async open(take) {
    if (this.current !== take) return; // another track continues to play
    const isShown = this.#asked.join();
    const sound = await this.player.open(take.sampleRate, take.expectedSeconds);
    if (!isShown()) return;
    this.#sound = sound;
    if (sound.delay >= NOTICED) {
      const [seconds, pace] = [Math.ceil(sound.delay), this.player.delay.pace.toFixed(1)];
      this.say("waiting", phrase("player.slow", { seconds, pace }));
    }
  }

  /** Add a take's latest piece. */
  grow(take) {
    if (this.current !== take) return;
    this.#sound?.append(floats(take.pieces.at(-1)));
    this.bar.show({ bars: take.waveform.bars, seconds: take.seconds });
  }

  /** Update the current take once it is complete or its name is revealed. */
  settle(take) {
    if (this.current !== take) return;
    if (take.file) this.#sound?.complete();
    if (take.file) this.bar.show({ expected: 0 });
    this.bar.offer(take.url ? take.formats : []);
    this.showFigures(take);
  }

  showFigures(take) {
    if (this.current === take) this.bar.figures(take.figures);
  }

  #hear({ firstSampleAt, needed, position, rendered, underruns, state, loudest }) {
    const take = this.current;
    if (!take || !this.#sound) return; // a report on the previous track
    this.heard = { rendered, underruns };
    this.bar.level(state === "playing" ? loudest : 0);
    this.position = position / take.sampleRate;
    const more = underruns > take.underruns;
    take.underruns = Math.max(underruns, take.underruns);
    if (needed !== undefined && take.pressedAt !== null) this.player.delay.learn(needed, take.seconds);
    if (firstSampleAt !== undefined && take.pressedAt !== null) take.heardMs ??= firstSampleAt - take.pressedAt;
    if (firstSampleAt !== undefined || more) this.showFigures(take);
    this.bar.show({ position: Math.min(this.position, take.seconds) });
    const isLate = this.#isPaused && (state === "playing" || state === "waiting");
    const isRepeated = state === "over" && this.#isRepeated && !this.#isPaused;
    if (!isLate && !isRepeated) this.say(state, said(take, state)); // a repeated track is never over: a key pressed then must pause it
    this.#tell("moved", { position: this.position, state });
    if (isRepeated) this.#sound.play();
    else if (state === "over" && this.#row.isPlayedOn) this.#finish();
  }

  /** Play the next track, or stop at its beginning. */
  async #finish() {
    const isStopped = !this.#goesOn && !this.#isRepeated; // with its chapter
    if (isStopped) this.bar.dispatchEvent(new CustomEvent("sleep", { detail: { minutes: 0 } }));
    await this.step(1);
    if (isStopped) this.pause();
  }

  #tell(type, more = {}) {
    this.dispatchEvent(new CustomEvent(type, { detail: { take: this.current, ...more } }));
  }
}
