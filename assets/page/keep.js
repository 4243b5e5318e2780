// Your own clip on its way into the library: judged as soon as it is there, mended if you wish, kept under a name.

import { Refusal } from "./door.js";
import { advise, keepVoice } from "./library.js";
import { clipBlob } from "./request.js";

const SETTLED = 600; // ms without typing before the words are judged again
const CONSENT = "The person who kept this voice said: it is mine, or I may use it.";

/** Fires "kept" with {id} when a voice is in the library. */
export class KeepVoice extends EventTarget {
  #clip = null; // Gradio's file
  #words = "";
  #cut = null;
  #fixed = null;
  #turn = 0;
  #timer = 0;

  constructor(element) {
    super();
    this.element = element;
    this.part = (name) => element.querySelector(`[data-part=${name}]`);
    this.part("fix").addEventListener("click", () => {
      this.#cut = this.#fixed;
      this.#judge();
    });
    this.part("form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save();
    });
    element.hidden = true;
  }

  /** The page's fields have changed. */
  consider({ clip, clipText }) {
    const isOther = clip?.path !== this.#clip?.path;
    if (!isOther && clipText === this.#words) return;
    if (isOther) this.#cut = null;
    this.#clip = clip;
    this.#words = clipText;
    this.element.hidden = !clip;
    clearTimeout(this.#timer);
    if (clip) this.#timer = setTimeout(() => this.#judge(), isOther ? 0 : SETTLED);
  }

  async #judge() {
    const turn = (this.#turn += 1);
    try {
      const advice = await advise(await clipBlob(this.#clip), this.#words, this.#cut);
      if (turn === this.#turn) this.#show(advice);
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      if (turn === this.#turn) this.#tell("bad", [problem.why]);
    }
  }

  #show({ score, seconds, findings, fixed }) {
    this.#fixed = fixed;
    const fixes = findings.filter((finding) => finding.fix);
    const grade = score >= 80 ? "good" : score >= 50 ? "fair" : "bad";
    const words = { good: "A good clip", fair: "A usable clip", bad: "A poor clip" }[grade];
    const lines = findings.map((finding) => (finding.fix ? `${finding.message} Fix: ${finding.fix}.` : finding.message));
    this.#tell(grade, [`${words}: ${score} of 100, ${seconds.toFixed(1)} s`, ...lines]);
    this.part("fix").hidden = fixes.length === 0;
  }

  #tell(grade, [head, ...lines]) {
    const title = Object.assign(document.createElement("strong"), { textContent: head });
    const list = document.createElement("ul");
    list.append(...lines.map((words) => Object.assign(document.createElement("li"), { textContent: words })));
    this.part("advice").dataset.grade = grade;
    this.part("advice").replaceChildren(title, list);
    this.part("fix").hidden = true;
  }

  async #save() {
    const name = this.part("name").value.trim();
    const say = (words) => (this.part("said").textContent = words);
    if (!this.#words.trim()) return say("First write down what is said in the clip.");
    if (!name) return say("Give the voice a name.");
    if (!this.part("consent").checked) return say("Say that the voice is yours, or that you may use it.");
    this.part("save").disabled = true;
    say("Learning the voice …");
    try {
      const id = await keepVoice(await clipBlob(this.#clip), this.#words, this.#cut, { name, consent: CONSENT });
      say(`${name} is in the library and chosen.`);
      this.part("form").reset();
      this.dispatchEvent(new CustomEvent("kept", { detail: { id } }));
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      say(problem.why);
    } finally {
      this.part("save").disabled = false;
    }
  }
}
