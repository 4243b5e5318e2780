// The area that creates a voice in steps: forward when a step is done, back at any time without losing anything.

import { partsOf } from "../lib/elements.js";
import { introduction } from "../voices/introduction.js";
import { CaptureCard } from "../capture/capture-card.js";
import { CheckStep } from "./check-step.js";
import { Refusal } from "../client/refusal.js";
import { Draft } from "../capture/draft.js";
import { NamingStep } from "./naming-step.js";
import { WordsStep } from "./transcript-step.js";
import { phrase } from "../lib/phrases.js";
import { askBeforeLeaving } from "../lib/typing.js";

const ORDER = ["capture", "check", "words", "naming"];
const LIMITS = { recorded: 60, whole: 60, stretch: 45 }; // seconds: more than a voice uses, for the second step to choose from

/** Fires "saved" with {voice} (its slug) once it is in the library, "choose" with {id} of another voice to use, and "studio" to show the Studio. */
export class NewVoice extends EventTarget {
  #shown = "capture";
  /** @type {any} */
  #saved = null;
  #isSaving = false;
  #canIntroduce = true; // whether the loaded model speaks in the voices of clips
  /** @type {AbortController | null} */
  #speaking = null; // ends the introduction

  constructor(element, health, playButtons) {
    super();
    this.playButtons = playButtons;
    const part = (this.part = partsOf(element));
    this.panels = Object.fromEntries([...element.querySelectorAll("[data-panel]")].map((panel) => [panel.dataset.panel, panel]));
    this.buttons = Object.fromEntries([...element.querySelectorAll("[data-step]")].map((button) => [button.dataset.step, button]));
    const draft = (this.draft = new Draft());
    const check = new CheckStep(part, draft);
    check.addEventListener("choose", ({ detail }) => this.dispatchEvent(new CustomEvent("choose", { detail })));
    this.steps = {
      capture: new CaptureCard(element.querySelector(".capture"), draft, playButtons, LIMITS),
      check,
      words: new WordsStep(part, draft, check),
      naming: new NamingStep(part, draft, playButtons),
    };
    for (const [name, button] of Object.entries(this.buttons)) button.addEventListener("click", () => this.#go(name));
    part("back").addEventListener("click", () => this.#go(ORDER[ORDER.indexOf(this.#shown) - 1]));
    part("next").addEventListener("click", () => this.#next());
    part("discard").addEventListener("click", () => this.#startOver());
    part("to-studio").addEventListener("click", () => this.dispatchEvent(new CustomEvent("studio")));
    part("hear-again").addEventListener("click", () => this.#introduce());
    part("add-clip").addEventListener("click", () => this.addTo(this.#saved));
    part("another").addEventListener("click", () => this.#startOver());
    draft.addEventListener("change", () => this.#mark());
    askBeforeLeaving(() => this.#isUnsaved);
    this.steps.capture.addEventListener("change", () => this.#mark());
    health.watch(({ transcriber, denoiser, engine }) => {
      if (engine) this.#canIntroduce = engine.clones;
      this.steps.words.recogniser = transcriber ?? null;
      check.canDenoise = Boolean(denoiser);
    });
    this.#mark();
  }

  open() {
    this.steps[this.#shown]?.open?.();
  }

  close() {
    this.steps[this.#shown]?.close?.();
    this.#speaking?.abort();
  }

  get #isUnsaved() {
    return this.#shown !== "saved" && (this.draft.clip !== null || this.steps.capture.recording.isRecording || this.steps.naming.isWritten);
  }

  /** Continue with an existing clip; facts: isMadeUp and description of a draft. */
  keep(clip, words, facts = {}) {
    if (!this.#startOver()) return;
    this.draft.set({ clip, source: phrase("speak.source.clip"), words, ...facts });
    this.#show("check"); // sends it to the advisor
  }

  /** Start with a recording, as if dropped on the first step. */
  bring(file) {
    if (this.#startOver()) this.steps.capture.bring(file);
  }

  /** Capture one more clip for a voice: {id, name, slug, language}. */
  addTo(voice) {
    if (!this.#startOver()) return;
    this.draft.set({ voice, language: voice.language ?? "" });
    this.part("title").textContent = phrase("newVoice.another", { name: voice.name });
  }

  /** Discard the draft, after a question if it is unsaved. Returns whether it was discarded. */
  #startOver() {
    if (this.#isUnsaved && !window.confirm(phrase("newVoice.leave"))) return false;
    this.#speaking?.abort();
    this.steps.capture.clear();
    this.draft.set({ clip: null, source: "", words: "", language: "", description: "", isMadeUp: false, voice: null });
    this.steps.naming.clear();
    this.part("title").textContent = phrase("shell.tab.newVoice");
    this.#show("capture");
    return true;
  }

  /** Index of the first unfinished step, the last one that can be shown. */
  get #reached() {
    const open = ORDER.findIndex((name) => this.steps[name].lacks);
    return open < 0 ? ORDER.length - 1 : open;
  }

  #go(name) {
    if (ORDER.indexOf(name) <= this.#reached) this.#show(name);
  }

  #show(name) {
    this.steps[this.#shown]?.close?.();
    this.#shown = name;
    for (const [step, panel] of Object.entries(this.panels)) panel.hidden = step !== name;
    this.part("nav").hidden = name === "saved";
    this.steps[name]?.open?.();
    this.#mark();
    this.panels[name].querySelector("h3").focus({ preventScroll: true });
    this.part("title").scrollIntoView({ block: "nearest" });
  }

  #mark() {
    const at = this.#shown === "saved" ? ORDER.length : ORDER.indexOf(this.#shown);
    for (const [i, name] of ORDER.entries()) {
      const button = this.buttons[name];
      button.disabled = this.#shown === "saved" || i > this.#reached;
      button.dataset.done = i < at ? "yes" : "no";
      if (i === at) button.setAttribute("aria-current", "step");
      else button.removeAttribute("aria-current");
    }
    this.part("back").hidden = at === 0;
    this.part("discard").hidden = !this.draft.clip && !this.draft.voice && !this.steps.capture.hasSomething;
    this.part("next").textContent = phrase(this.#shown !== "naming" ? "newVoice.next" : this.draft.voice ? "newVoice.next.add" : "newVoice.next.save");
    const lacks = this.steps[this.#shown]?.lacks ?? "";
    this.part("next").disabled = lacks !== "" || this.#isSaving;
    if (this.part("why").textContent !== lacks) this.part("why").textContent = lacks;
  }

  async #next() {
    if (this.#shown !== "naming") return this.#go(ORDER[ORDER.indexOf(this.#shown) + 1]);
    if (this.#isSaving) return;
    const { clip } = this.draft;
    const isNew = this.draft.voice === null;
    const voice = await this.#save();
    if (!voice) return;
    if (this.draft.clip !== clip) return void this.dispatchEvent(new CustomEvent("saved", { detail: { voice: voice.slug } })); // another voice was begun meanwhile
    this.#saved = { id: voice.id, slug: voice.slug, name: voice.name, language: voice.language };
    this.part("saved-title").textContent = phrase(isNew ? "newVoice.saved.new" : "newVoice.saved.clip", { name: voice.name });
    this.steps.capture.clear(); // a long recording takes much memory
    this.#show("saved");
    this.dispatchEvent(new CustomEvent("saved", { detail: { voice: voice.slug } }));
    this.#introduce();
  }

  async #save() {
    this.#isSaving = true;
    this.#mark();
    try {
      return await this.steps.naming.save();
    } finally {
      this.#isSaving = false;
      this.#mark();
    }
  }

  async #introduce() {
    this.#speaking?.abort();
    const control = (this.#speaking = new AbortController());
    const say = (words) => (this.part("saved-said").textContent = words);
    this.part("other-model").hidden = this.#canIntroduce;
    this.part("hear-again").hidden = !this.#canIntroduce;
    if (!this.#canIntroduce) return say(phrase("newVoice.saved.otherModel"));
    say(phrase("newVoice.saved.playing"));
    try {
      await this.playButtons.press(this.part("hear-again"), introduction(this.#saved, control.signal));
      say(phrase("newVoice.saved.selected"));
    } catch (problem) {
      if (problem.name === "AbortError") return;
      if (!(problem instanceof Refusal)) throw problem;
      say(phrase("newVoice.saved.notPlayed", { why: problem.why }));
    }
  }
}
