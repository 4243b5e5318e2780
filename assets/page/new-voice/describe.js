// Describes a voice: a model that makes voices up speaks a text in three; the one to keep becomes a voice of the library.

import { Refusal } from "../client/refusal.js";
import { element, icon, labelled, partsOf } from "../lib/elements.js";
import { PLAY } from "../lib/icons.js";
import { phrase } from "../lib/phrases.js";
import { keepByTab, keptByTab } from "../lib/by-tab.js";
import { clock } from "../lib/time.js";
import { generateTake } from "../takes/generate.js";
import { Take } from "../takes/take.js";
import { READINGS } from "../voices/reading-texts.js";

const CANDIDATES = 3;
const SEEDS = 2 ** 31;
const STORE = "described-1";
const ONE_PART = 1000; // bytes, the longest part: each has another voice

/** Fires "keepVoice" with {take}. The candidates are also in the Studio's list of takes. */
export class Describing extends EventTarget {
  /** @type {AbortController | null} */
  #making = null; // of the candidates being generated

  /** Parts of the page. */
  constructor(root, { fields, health, list, nowPlaying, playButtons, speaking }) {
    super();
    this.fields = fields;
    this.list = list;
    this.nowPlaying = nowPlaying;
    this.playButtons = playButtons;
    this.speaking = speaking;
    const part = (this.part = partsOf(root));
    const before = keptByTab(STORE, {});
    const language = document.documentElement.lang.split("-")[0];
    part("voice").value = before.voice ?? "";
    part("text").value = before.text || (READINGS[language] ?? READINGS.en).texts[0];
    root.addEventListener("input", () => keepByTab(STORE, { voice: part("voice").value, text: part("text").value }));
    root.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#start();
    });
    part("stop").addEventListener("click", () => this.#stop());
    health.watch(({ engine }) => {
      if (!engine) return;
      part("able").hidden = !engine.designs;
      part("unable").hidden = engine.designs;
    });
  }

  async #start() {
    for (const name of /** @type {const} */ (["voice", "text"])) {
      if (this.part(name).value.trim()) continue;
      this.part(name).focus();
      return this.#say(phrase(`describe.lacks.${name}`), true);
    }
    this.#stop();
    const control = new AbortController();
    this.#mark(control);
    this.#say("");
    const takes = this.#takes();
    const isUnheard = this.nowPlaying.watch(); // whether the first one plays by itself: nothing else was requested since
    this.part("candidates").replaceChildren();
    const ends = await Promise.allSettled(takes.map((take, i) => this.#make(take, control.signal, () => i === 0 && isUnheard() && !this.speaking.isUnderWay)));
    if (this.#making === control) this.#mark(null);
    const failure = ends.find((end) => end.status === "rejected")?.reason;
    if (!failure || failure.name === "AbortError") return;
    if (!(failure instanceof Refusal)) throw failure;
    this.#say(failure.why, true);
  }

  #stop() {
    this.#making?.abort();
    this.#mark(null);
  }

  #mark(control) {
    this.#making = control;
    this.part("stop").hidden = !control;
    this.part("make").hidden = Boolean(control);
  }

  #takes() {
    const [voice, text] = [this.part("voice").value.trim(), this.part("text").value.trim()];
    const request = { input: text, voice: "random", task_type: "VoiceDesign", instructions: voice, chunk_length: ONE_PART, response_format: "wav" };
    const settings = { ...this.fields.values, text, voice: "random", source: "bundled" };
    const seed = Math.floor(Math.random() * SEEDS);
    return Array.from({ length: CANDIDATES }, (_, i) => {
      const number = (this.speaking.takes += 1);
      return new Take({ number, request: { ...request, seed: seed + i }, voiceName: phrase("speak.voice.random"), settings });
    });
  }

  /** isPlayed(): whether it plays by itself. Throws Refusal, or AbortError after signal.abort(). */
  async #make(take, signal, isPlayed) {
    const state = element("span", { className: "quiet", textContent: phrase("compare.waiting") });
    const play = labelled(element("button", { type: "button", className: "take-play", disabled: true }, [icon(PLAY)]), phrase("takes.play", { number: take.number }));
    play.onclick = () => this.playButtons.press(play, take);
    const keepIt = element("button", { type: "button", className: "plain", textContent: phrase("takes.keepVoice"), title: phrase("takes.keepVoice.title"), hidden: true });
    keepIt.onclick = () => this.dispatchEvent(new CustomEvent("keepVoice", { detail: { take } }));
    const row = element("li", {}, [play, element("div", {}, [element("strong", { textContent: take.name }), state]), keepIt]);
    this.part("candidates").append(row);
    try {
      await generateTake(take, signal, {
        heard: () => {
          if (play.disabled && isPlayed()) this.playButtons.press(play, take);
          play.disabled = false;
          state.textContent = phrase("compare.speaking.time", { time: clock(take.seconds) });
          this.nowPlaying.grow(take);
        },
        kept: () => {
          this.list.add(take);
          this.nowPlaying.settle(take);
          state.textContent = [clock(take.seconds), take.endingWords].filter(Boolean).join(" · ");
        },
      });
      this.list.refresh(take);
      keepIt.hidden = take.ending !== "stop";
    } catch (problem) {
      if (!take.file) row.remove();
      throw problem;
    }
  }

  #say(words, isBad = false) {
    this.part("said").textContent = words;
    this.part("said").toggleAttribute("data-bad", isBad);
  }
}
