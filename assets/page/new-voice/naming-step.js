// Step 4 of a new voice: its name, licence and consent; then it is saved.

import { Refusal } from "../client/refusal.js";
import { addSample, chooseSamples, createVoice, deleteVoice, denoised, getVoice, recordConsent, recordingOf, withdrawConsent } from "../client/voices.js";
import { element } from "../lib/elements.js";
import { decodeClip } from "../capture/decoded-clip.js";
import { READINGS } from "../voices/reading-texts.js";
import { Recording } from "../capture/recorder.js";
import { phrase } from "../lib/phrases.js";

const CONSENT = "The person who made this voice said: it is mine, or its owner has agreed that I use it.";
const FIELDS = ["name", "language", "gender", "accent", "description", "tags", "licence"];
const LONGEST_CONSENT = 30; // seconds

/** Whether two recordings have the same bytes. @param {Blob[]} recordings */
async function areSame(...recordings) {
  const [one, other] = await Promise.all(recordings.map(async (blob) => new Uint8Array(await blob.arrayBuffer())));
  return one.length === other.length && one.every((byte, i) => byte === other[i]);
}

export class NamingStep {
  /** @type {Blob | null} */
  #consent = null; // the recording
  /** A voice, or one more clip of it, that may exist, as the answer was lost. @type {{ name: string, sample: any, isClip: boolean } | null} */
  #lost = null;

  constructor(part, draft, playButtons) {
    this.part = part;
    this.draft = draft;
    part("languages").append(...Object.entries(READINGS).map(([value, { name }]) => element("option", { value, label: name })));
    part("form").addEventListener("submit", (event) => {
      event.preventDefault();
      part("next").click();
    });
    const settings = { hint: () => phrase("newVoice.consent.hint"), longest: LONGEST_CONSENT, silence: () => playButtons.pause() };
    this.recording = new Recording(part("consent-recording"), settings);
    this.recording.addEventListener("recorded", ({ detail }) => this.#keepConsent(detail.blob));
    part("consent-playback").addEventListener("click", async ({ currentTarget }) => {
      const clip = this.#consent && (await decodeClip(this.#consent));
      if (clip) await playButtons.press(currentTarget, clip.track(phrase("newVoice.consent.track")));
    });
    part("consent-drop").addEventListener("click", () => this.#keepConsent(null));
    for (const name of ["name", "consent-name"]) part(name).addEventListener("input", () => this.#state());
    draft.addEventListener("change", ({ detail }) => {
      for (const name of ["language", "description"]) if (detail.names.includes(name)) part(name).value = draft[name];
    });
  }

  open() {
    const { voice, isMadeUp } = this.draft;
    this.part("facts").hidden = voice !== null;
    for (const name of ["consent-row", "consent-more"]) this.part(name).hidden = isMadeUp;
    this.part("naming-title").textContent = voice ? phrase("newVoice.naming.add", { name: voice.name }) : phrase("newVoice.step.naming");
    this.#say(voice ? phrase("newVoice.naming.revision") : "", false);
    this.#state();
  }

  close() {
    this.recording.hold();
  }

  clear() {
    this.part("form").reset();
    this.#keepConsent(null);
    this.#lost = null;
    this.#say("");
  }

  /** Whether somebody has written or recorded something here. */
  get isWritten() {
    const filled = { language: this.draft.language, description: this.draft.description };
    return this.#consent !== null || this.recording.isRecording || [...FIELDS, "consent-name"].some((name) => this.part(name).value !== (filled[name] ?? ""));
  }

  #state() {
    const who = this.part("consent-name").value.trim() || phrase("newVoice.consent.who");
    const name = this.part("name").value.trim() || phrase("newVoice.consent.this");
    this.part("statement").textContent = phrase("newVoice.consent.statement", { who, name });
  }

  #keepConsent(blob) {
    this.#consent = blob;
    this.part("consent-captured").hidden = !blob;
  }

  /** Save the draft. Returns the voice as {id, slug, name, language}, or null after showing what is missing or went wrong. */
  async save() {
    await this.recording.finish();
    const facts = Object.fromEntries(FIELDS.map((name) => [name, this.part(name).value.trim()]));
    const { voice, sample, isMadeUp } = this.draft;
    if (!voice && !facts.name) return this.#ask("name", phrase("newVoice.naming.name"));
    if (!voice && !isMadeUp && !this.part("consent").checked) return this.#ask("consent", phrase("newVoice.consent.ask"));
    this.#say(phrase("newVoice.naming.saving"), false);
    try {
      const saved = voice ? await this.#sent({ name: voice.id, sample, isClip: true }, () => addSample(voice.id, sample)) : await this.#create(sample, facts);
      this.#say("");
      return saved;
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      this.#say(problem.why);
      return null;
    }
  }

  /** Delete the voice or clip that an earlier attempt stored although its answer was lost; the one being saved now replaces it. Throws Refusal. */
  async #takeBack({ name, sample, isClip }) {
    const voice = await getVoice(name).catch((problem) => (problem.status === 404 ? null : Promise.reject(problem)));
    if (!voice || (voice.revision === 1) === isClip) return;
    const [sent, ids] = [sample.denoise ? await denoised(sample) : sample.clip, voice.samples.map(({ id }) => id)];
    if (!(await areSame(sent, await recordingOf(voice.id, ids.at(-1))))) return;
    await (isClip ? chooseSamples(voice.id, ids.slice(0, -1), voice.etag) : deleteVoice(voice.id));
  }

  /** Send what is to be saved; remember it if the answer is lost. Throws Refusal. */
  async #sent(facts, send) {
    if (this.#lost) await this.#takeBack(this.#lost);
    this.#lost = null;
    try {
      return await send();
    } catch (problem) {
      if (!problem.isOfRequest) this.#lost = facts;
      throw problem;
    }
  }

  async #create(sample, facts) {
    const { id, name } = await this.#sent({ name: facts.name, sample, isClip: false }, async () => {
      const consent = this.#consent && (await recordConsent(this.#consentFacts(facts)));
      try {
        return await createVoice(sample, { ...facts, consent: consent ? consent.id : this.draft.isMadeUp ? "" : CONSENT });
      } catch (problem) {
        if (problem.isOfRequest && consent) await withdrawConsent(consent.id); // it was recorded for this voice only, which may exist if the answer was lost
        throw problem;
      }
    });
    return { id, slug: id, name, language: facts.language };
  }

  #consentFacts({ name, language }) {
    return {
      name: this.part("consent-name").value.trim() || name,
      language: language || "und",
      statement: this.part("statement").textContent,
      recording: this.#consent,
    };
  }

  /** Ask for a field, below it. */
  #ask(field, words) {
    this.#say(words);
    this.part(field).closest("label").after(this.part("naming-said"));
    this.part(field).focus();
    return null;
  }

  #say(words, isBad = true) {
    this.part("form").append(this.part("naming-said"));
    this.part("naming-said").textContent = words;
    this.part("naming-said").toggleAttribute("data-bad", isBad);
  }
}
