// The files of a project, and how they are finished: their loudness, the silence around parts, and book details.

import { Latest } from "../lib/latest.js";
import { changeProject, coverAddress, fileAddress, measureLoudness, putCover, removeCover, savedAddress } from "../client/projects.js";
import { element } from "../lib/elements.js";
import { numeral, phrase } from "../lib/phrases.js";

const figure = (value, unit) => `${numeral(value, 1).replace("-", "−")} ${unit}`;
const FILES = [["wav", "WAV"], ["mp3", "MP3"], ["flac", "FLAC"], ["m4b", phrase("project.file.m4b")]];
const silence = -90; // dB; what is below needs no figure

/**
 * The measurements in words.
 *
 * @param {any} told as /v1/projects/{id}/loudness gives it
 */
export function loudnessWords({ loudness, before, after, faults }) {
  const words = (measured) => {
    const { integrated_lufs: lufs, true_peak_db: peak, rms_db: rms, noise_floor_db: floor } = measured;
    const level = loudness === "acx" ? figure(rms, "dB RMS") : lufs === null ? phrase("project.measured.short") : figure(lufs, "LUFS");
    const noise = loudness === "acx" ? [floor < silence ? phrase("project.measured.quiet") : phrase("project.measured.noise", { level: figure(floor, "dB") })] : [];
    return [level, phrase("project.measured.peak", { level: figure(peak, "dBTP") }), ...noise].join(", ");
  };
  if (loudness === "none") return phrase("project.measured", { before: words(before) });
  return [phrase("project.measured.both", { before: words(before), after: words(after) }), ...faults].join(" ");
}

export class FinishedFiles {
  /** @type {Promise<any>} */
  #changing = Promise.resolve(); // the last change, perhaps under way
  #cover = "";
  #measures = new Latest();

  /**
   * run: does the work and shows its result.
   *
   * @param {(name: string) => any} part
   * @param {{ id: string, signal: AbortSignal, run: (work: () => Promise<any>) => Promise<void> }} project
   */
  constructor(part, { id, signal, run }) {
    this.part = part;
    this.id = id;
    signal.addEventListener("abort", () => this.#measures.end());
    this.part("measured").textContent = "";
    this.part("measure").disabled = false;
    this.#offerFiles();
    const on = (name, type, work) => part(name).addEventListener(type, (event) => run(() => work(event.target)), { signal });
    on("loudness", "change", ({ value }) => this.#change({ loudness: value }));
    on("trim", "change", ({ checked }) => this.#change({ trim: checked }));
    on("author", "change", ({ value }) => this.#change({ author: value }));
    on("language", "change", ({ value }) => this.#change({ language: value.trim() }));
    on("cover-file", "change", (field) => this.#give(field));
    on("cover-remove", "click", () => removeCover(this.id));
    on("measure", "click", () => this.#measure());
  }

  #offerFiles() {
    const link = (href, words) => element("a", { href, download: "", textContent: words });
    this.part("exports").replaceChildren(
      ...FILES.map(([format, words]) => link(savedAddress(this.id, format), words)),
      link(fileAddress(this.id, "chapters"), phrase("project.file.chapters")),
      link(fileAddress(this.id, "subtitles"), phrase("project.file.subtitles")),
      link(fileAddress(this.id, "zip"), phrase("project.file.zip")),
    );
  }

  show({ settings, cover, parts }) {
    this.part("whole").hidden = !parts.done;
    this.part("no-files").hidden = parts.done > 0;
    const left = parts.total - parts.done;
    this.part("left-out").textContent = left > 0 ? phrase("project.leftOut", { count: left }) : "";
    for (const name of ["loudness", "author", "language"]) {
      if (document.activeElement !== this.part(name)) this.part(name).value = settings[name];
    }
    this.part("trim").checked = settings.trim;
    this.part("measure").hidden = !parts.done;
    this.part("cover-words").textContent = phrase(cover ? "project.cover.change" : "project.cover.choose");
    this.part("cover-remove").hidden = this.part("cover-image").hidden = !cover;
    if (cover && cover !== this.#cover) this.part("cover-image").src = coverAddress(this.id, cover);
    this.#cover = cover;
  }

  #change(changes) {
    this.#measures.end();
    this.part("measured").textContent = "";
    this.part("measure").disabled = false;
    return (this.#changing = changeProject(this.id, changes));
  }

  async #give(field) {
    const [file] = field.files;
    try {
      if (file) await putCover(this.id, file);
    } finally {
      field.value = "";
    }
  }

  async #measure() {
    const isWanted = this.#measures.begin();
    this.part("measured").textContent = phrase("project.measuring");
    this.part("measure").disabled = true;
    try {
      await this.#changing.catch(() => {}); // measure with the latest choice; a failure is shown by the change itself
      const words = loudnessWords(await measureLoudness(this.id));
      if (isWanted()) this.part("measured").textContent = words;
    } catch (problem) {
      if (isWanted()) this.part("measured").textContent = "";
      throw problem;
    } finally {
      if (isWanted()) this.part("measure").disabled = false;
    }
  }
}
