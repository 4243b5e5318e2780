// A voice's clips in the inspector, by revision: plays, checks and corrects them, and selects which are used.

import { gradeOf, showAdvice } from "./advice.js";
import { advise, changeSample, chooseSamples, goBack, previewAddress, recordingOf } from "../client/voices.js";
import { element } from "../lib/elements.js";
import { once } from "../lib/once.js";
import { Recorded } from "../player/track.js";
import { numeral, phrase } from "../lib/phrases.js";

export class Samples {
  /** @type {any} */
  #voice = null;
  #revisions = [];
  /** Unsaved transcripts, by the clip's id. */
  #written = new Map();

  /**
   * part: finds an element of the inspector; run: runs work that may be refused; change: runs work(voice), which creates a new
   * revision and returns a message about it; voice: as it is by then.
   */
  constructor(part, playButtons, { run, change }) {
    this.part = part;
    this.playButtons = playButtons;
    this.run = run;
    this.change = change;
    part("revision").addEventListener("change", () => this.#draw());
    part("go-back").addEventListener("click", once(() => {
      const { revision } = this.#chosen;
      return change((voice) => this.#goBack(voice, revision));
    }));
  }

  /** voice and revisions: as returned by getVoice and revisionsOf. */
  show(voice, revisions) {
    this.#revisions = revisions;
    this.#voice = voice;
    this.part("revision").replaceChildren(
      ...this.#revisions.map(({ revision, samples }) => {
        const key = revision === voice.latest_revision ? "inspector.revision.use" : "inspector.revision.old";
        const words = phrase(key, { count: samples.length, revision });
        return element("option", { value: String(revision), textContent: words });
      }),
    );
    this.#draw();
  }

  get isWritten() {
    return this.#written.size > 0;
  }

  forgetWritten() {
    this.#written.clear();
  }

  get #chosen() {
    const number = Number(this.part("revision").value);
    return this.#revisions.find(({ revision }) => revision === number) ?? this.#revisions[0];
  }

  #draw() {
    const shown = this.#chosen;
    const isFixed = this.#voice.right === "read";
    const isLatest = shown.revision === this.#voice.latest_revision;
    const isNewest = isLatest && !isFixed;
    this.part("go-back").hidden = isLatest || isFixed;
    const left = isNewest ? this.#leftOut() : [];
    const rows = [...shown.samples.map((sample, i) => this.#row(sample, i, shown, isNewest)), ...left.map((clip) => this.#row(...clip, true))];
    const typed = document.activeElement; // somebody may be typing in a transcript
    const [id, start, end] = typed instanceof HTMLTextAreaElement ? [typed.dataset.sample, typed.selectionStart, typed.selectionEnd] : [];
    this.part("samples").replaceChildren(...rows);
    const field = id && this.part("samples").querySelector(`[data-sample="${id}"]`);
    field?.focus({ preventScroll: true });
    field?.setSelectionRange(start, end);
  }

  /** Clips that only older revisions have, each in its latest version: [sample, position, revision]. */
  #leftOut() {
    const known = new Set(this.#revisions[0].samples.map(({ id }) => id));
    return this.#revisions.slice(1).flatMap((revision) =>
      revision.samples.flatMap((sample, i) => {
        if (known.has(sample.id)) return [];
        known.add(sample.id);
        return [[sample, i, revision]];
      }),
    );
  }

  #row(sample, position, revision, isNewest) {
    const isUsed = revision.revision === this.#voice.latest_revision;
    const number = position + 1;
    const listen = element("button", { type: "button", className: "plain", textContent: phrase("clips.listen") });
    const source = previewAddress(`${this.#voice.slug}@${revision.revision}`, position);
    const name = phrase("clips.of", { voice: this.#voice.name, number });
    listen.onclick = () => this.run(() => this.playButtons.press(listen, new Recorded({ name, source })));
    listen.setAttribute("aria-label", phrase("clips.listen.label", { number, revision: revision.revision }));
    const score = element("span", { className: "score", textContent: String(sample.score), title: phrase("clips.score") });
    score.dataset.grade = gradeOf(sample.score);
    const line = element("div", { className: "sample-line" }, [
      listen,
      element("span", { className: "quiet", textContent: phrase("time.seconds", { seconds: numeral(sample.seconds, 1) }) }),
      score,
    ]);
    if (sample.speaker) line.append(element("span", { className: "quiet", textContent: phrase("clips.speaker", { number: sample.speaker }) }));
    const row = element("li", {}, [line]);
    row.toggleAttribute("data-unused", !isUsed);
    if (isNewest) line.append(this.#use(sample, isUsed));
    if (isUsed && this.#voice.right !== "read") row.append(...this.#editable(sample));
    else row.append(element("p", { className: "sample-words", dir: "auto", textContent: sample.text }));
    return row;
  }

  #use(sample, isUsed) {
    const box = element("input", { type: "checkbox", checked: isUsed });
    box.onchange = () => {
      box.checked = isUsed; // until the change is saved
      this.change(async (voice) => {
        const ids = voice.samples.map(({ id }) => id);
        const used = isUsed ? ids.filter((id) => id !== sample.id) : [...ids, sample.id];
        await chooseSamples(voice.id, used, voice.etag);
        return phrase(isUsed ? "clips.unused" : "clips.usedAgain");
      });
    };
    return element("label", { className: "tick" }, [box, phrase("clips.used")]);
  }

  #editable(sample) {
    const words = element("textarea", { rows: 3, dir: "auto", value: this.#written.get(sample.id) ?? sample.text });
    words.dataset.sample = sample.id;
    words.setAttribute("aria-label", phrase("speak.clip.words"));
    const save = element("button", { type: "button", className: "plain", textContent: phrase("clips.words.save"), hidden: !this.#written.has(sample.id) });
    words.oninput = () => {
      save.hidden = words.value.trim() === sample.text;
      if (save.hidden) this.#written.delete(sample.id);
      else this.#written.set(sample.id, words.value);
    };
    save.onclick = () => {
      const text = this.#written.get(sample.id);
      this.change((voice) => this.#saveWords(voice, sample, text));
    };
    const advice = element("div", { hidden: true });
    advice.setAttribute("role", "status");
    const check = element("button", { type: "button", className: "plain", textContent: phrase("clips.check") });
    check.onclick = () => this.run(() => this.#judge(sample, words.value, advice));
    return [words, element("div", { className: "buttons" }, [save, check]), advice];
  }

  async #judge(sample, words, advice) {
    const clip = await recordingOf(this.#voice.id, sample.id);
    const verdict = await advise({ clip, words, cut: sample.cut });
    advice.hidden = false;
    showAdvice(advice, verdict, { mend: once((cut) => this.change((voice) => this.#change(voice, sample, { cut }, phrase("clips.fixed")))) });
  }

  async #saveWords(voice, sample, text) {
    if (text === undefined || voice.samples.some((one) => one.id === sample.id && one.text === text.trim())) return phrase("clips.words.saved"); // by an earlier press
    const message = await this.#change(voice, sample, { text }, phrase("clips.words.saved"));
    if (this.#written.get(sample.id) === text) this.#written.delete(sample.id);
    return message;
  }

  async #change(voice, sample, changes, message) {
    await changeSample(voice.id, sample.id, changes, voice.etag);
    return phrase("clips.newRevision", { message });
  }

  async #goBack(voice, revision) {
    await goBack(voice.id, revision, voice.etag);
    return phrase("clips.restored", { revision });
  }
}
