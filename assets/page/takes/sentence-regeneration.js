// Regenerates sentences of the current track, optionally reworded, and plays the result from just before them; undo plays the previous version.

import { deleteTake, regenerateSentences, takeRecord } from "../client/takes.js";
import { Refusal } from "../client/refusal.js";
import { phrase } from "../lib/phrases.js";
import { offerUndo } from "../trash/undo-toast.js";
import { Take } from "./take.js";

const LEAD = 1; // seconds played before a regenerated sentence

export class SentenceRegeneration {
  constructor({ list, history, speaking, nowPlaying }) {
    this.list = list;
    this.history = history;
    this.speaking = speaking;
    this.nowPlaying = nowPlaying;
  }

  /** Handle the events of the player's text, and show results there. */
  serve(text) {
    const on = (type, does) =>
      text.addEventListener(type, async ({ detail }) => {
        try {
          await does(detail);
        } catch (problem) {
          if (!(problem instanceof Refusal)) throw problem;
          text.tools.say(problem.why, problem.isLost);
        }
      });
    on("mend", (span) => this.#mend(span, text));
    on("before", ({ take }) => this.#playBefore(take, text.tools));
  }

  async #mend(span, text) {
    const { take, from } = span;
    text.isBusy = true;
    text.tools.say(phrase("player.mending"));
    try {
      const { next, undo } = await (take.regenerate?.(span) ?? this.#take(span));
      span.made?.();
      const words = phrase(span.replacement === undefined ? "player.mended" : "player.edited", { name: next.name });
      offerUndo(words, async () => {
        await undo();
        if (this.nowPlaying.current === next) await this.#play(take, this.nowPlaying.position);
      }, false);
      if (this.nowPlaying.current !== take) return; // another track is playing by now
      text.tools.say("");
      await this.#play(next, Math.max(0, from - LEAD));
    } finally {
      text.isBusy = false;
    }
  }

  /** Create a new take, listed first, from a span of a take. Throws Refusal. */
  async #take({ take, start, end, replacement }) {
    const record = await regenerateSentences(take.id, start, end, replacement);
    const next = Take.of(record, { number: (this.speaking.takes += 1), voiceName: take.voiceName });
    this.list.add(next);
    this.history.put(record);
    const undo = async () => {
      await deleteTake(next.id);
      this.list.lose([next.id]);
      this.history.lose([next.id]);
    };
    return { next, undo };
  }

  #play(take, from) {
    this.speaking.stop();
    return this.nowPlaying.playInstead(take, from);
  }

  /** Play the previous version at the same position. */
  async #playBefore(take, tools) {
    const known = this.list.find(take.regeneratedFrom) ?? (await takeRecord(take.regeneratedFrom));
    if (!known) return tools.say(phrase("player.before.gone"));
    await this.#play(known instanceof Take ? known : Take.of(known), this.nowPlaying.isOver ? 0 : this.nowPlaying.position);
  }
}
