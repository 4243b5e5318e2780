// The take that is heard: one at a time, in the player, with the player bar as its face. It makes none.

import { figuresOf } from "./take-figures.js";
import { expectedSeconds } from "../speak/request.js";
import { floats } from "../lib/wav.js";

/** Fires "show" with {take} when it is about another one. */
export class NowPlaying extends EventTarget {
  /** @type {import("../takes/take.js").Take | null} */
  current = null;
  position = 0; // seconds
  heard = { rendered: 0, underruns: 0 }; // samples, gaps
  /** @type {import("./player.js").Sound | null} */
  #sound = null; // the player's hold on the take

  constructor(player, bar, preferences) {
    super();
    this.player = player;
    this.bar = bar;
    player.addEventListener("heard", ({ detail }) => this.#hear(detail));
    bar.addEventListener("press", () => this.playOrPause());
    bar.addEventListener("seek", ({ detail }) => this.#sound?.seek(detail.seconds));
    bar.addEventListener("volume", ({ detail }) => preferences.set({ volume: detail.value }));
    const follow = () => {
      bar.volume = player.volume = preferences.values.volume;
      player.fixedWait = preferences.wait;
    };
    preferences.addEventListener("change", follow);
    follow();
  }

  get isOver() {
    return this.bar.state === "over";
  }

  say(state, words) {
    this.bar.say(state, words);
  }

  /** What should have been heard failed, in these words. */
  fail(words) {
    this.say(this.current?.file ? "over" : "empty", words);
  }

  pause() {
    this.#sound?.pause();
  }

  playOrPause() {
    if (this.bar.isPlaying) {
      this.pause();
      this.say("paused", "Paused");
    } else {
      this.player.wake();
      this.#sound?.play();
      this.say("waiting");
    }
  }

  /** Be about this take from now on. */
  show(take) {
    this.current = take;
    this.#sound = null;
    this.position = 0;
    this.heard = { rendered: 0, underruns: 0 };
    this.bar.offer(take.url, take.fileName);
    const expected = take.file ? 0 : expectedSeconds(take.request.input);
    this.bar.show({ bars: take.waveform?.bars ?? [], seconds: take.seconds, expected, position: 0 });
    this.showFigures(take);
    this.say("waiting"); // the one before may have been heard to its end, and this one was not
    this.dispatchEvent(new CustomEvent("show", { detail: { take } }));
  }

  /** Play a take from a second on; one that is still being made goes on as it grows. */
  async play(take, from = 0) {
    await take.load();
    take.pressedAt = null;
    this.show(take);
    const sound = await this.player.open(take.sampleRate);
    sound.pause();
    if (take.file) {
      sound.append(floats(await take.pcm()));
      sound.complete();
      sound.seek(from < take.seconds ? from : 0);
    } else {
      for (const piece of take.pieces) sound.append(floats(piece)); // without a pause until it is the player's: none may be missed
      sound.seek(Math.min(from, take.seconds));
    }
    sound.play();
    if (this.current === take) this.#sound = sound;
  }

  /** Hear a take from its first piece on. */
  async open(take) {
    const sound = await this.player.open(take.sampleRate);
    if (this.current === take) this.#sound = sound;
  }

  /** A take has one piece more. */
  grow(take) {
    if (this.current !== take) return;
    this.#sound?.append(floats(take.pieces.at(-1)));
    this.bar.show({ bars: take.waveform.bars, seconds: take.seconds });
  }

  /** A take is complete, or may be named now. */
  settle(take) {
    if (this.current !== take) return;
    if (take.file) {
      this.#sound?.complete();
      this.bar.show({ expected: 0 });
    }
    this.bar.offer(take.url, take.fileName);
    this.showFigures(take);
  }

  showFigures(take) {
    if (this.current === take) this.bar.figures(figuresOf(take));
  }

  #hear({ firstSampleAt, position, rendered, underruns, state, loudest }) {
    const take = this.current;
    if (!take) return;
    this.heard = { rendered, underruns };
    this.bar.level(state === "playing" ? loudest : 0);
    this.position = position / take.sampleRate;
    const more = underruns > take.underruns;
    take.underruns = Math.max(underruns, take.underruns);
    if (state === "over" && !take.isLearned) {
      take.isLearned = true;
      this.player.learn(take.underruns, take.rtf);
    }
    if (firstSampleAt !== undefined && take.pressedAt !== null) take.heardMs ??= firstSampleAt - take.pressedAt;
    if (firstSampleAt !== undefined || more) this.showFigures(take);
    this.bar.show({ position: this.position });
    const words = {
      playing: take.file ? `Playing ${take.name}` : "Speaking …",
      waiting: take.file ? undefined : "Waiting for more sound …",
      over: take.ending === "length" ? take.endingWords : [take.name, take.endingWords.toLowerCase()].filter(Boolean).join(": "),
    };
    this.say(state, words[state]);
  }
}
