// A project's downloads and the settings for them: audio, book details, cover, credits and samples.

import { Latest } from "../lib/latest.js";
import { coverAddress, fileAddress, measureLoudness, putCover, readPartIds, readSample, removeCover } from "../client/projects.js";
import { element } from "../lib/elements.js";
import { offerMenu } from "../lib/menu.js";
import { listed, numeral, phrase } from "../lib/phrases.js";

const figure = (value, unit) => `${numeral(value, 1).replace("-", "−")} ${unit}`;
/** Paths and labels, in menu order. @type {[string, string][]} */
const FILES = [
  ["audio?format=mp3", "MP3"],
  ["audio?format=m4b", phrase("project.file.m4b")],
  ["chapters", phrase("project.file.chapters")],
  ["epub", phrase("project.file.epub")],
  ["audio?format=wav", "WAV"],
  ["audio?format=flac", "FLAC"],
  ["subtitles?format=srt", phrase("project.file.srt")],
  ["subtitles?format=vtt", phrase("project.file.vtt")],
  ["tracks", phrase("project.file.tracks")],
  ["zip", phrase("project.file.zip")],
];
const BIT_RATES = [64, 96, 128, 192, 256, 320]; // kbit/s
/** Readers of the settings, by the name of setting and field. @type {Record<string, (field: any) => unknown>} */
export const FINISH = {
  loudness: ({ value }) => value,
  bitrate: ({ value }) => (value ? Number(value) : null),
  trim: ({ checked }) => checked,
  read_titles: ({ checked }) => checked,
  author: ({ value }) => value,
  narrator: ({ value }) => value,
  year: ({ value }) => (value ? Number(value) : null),
  language: ({ value }) => value.trim(),
  opening_credits: ({ value }) => value,
  closing_credits: ({ value }) => value,
};
const READ = 60_000; // ms allowed for the browser to read a file after the click
const MOST = 3; // chapters listed by name
const silence = -90; // dB; a lower level is shown without a figure

/**
 * Describe the measurements.
 *
 * @param {any} measurements as returned by /v1/projects/{id}/loudness
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

/**
 * Name the chapters that have changed parts.
 *
 * @param {any[]} chapters as returned by /v1/projects/{id}/outline
 */
export function changedWords(chapters) {
  if (chapters.length < 2 && !chapters[0]?.title) return ""; // a project without chapters
  const changed = chapters.filter(({ parts }) => parts.stale);
  const names = changed.slice(0, MOST).map(({ title }) => (title ? phrase("project.leftOut.title", { title }) : phrase("project.chapter.none")));
  if (changed.length > MOST) names.push(phrase("project.leftOut.more", { count: changed.length - MOST }));
  return names.length ? phrase("project.leftOut.chapters", { chapters: listed(names) }) : "";
}

export class FinishedFiles {
  /** @type {any[]} */
  #chapters = [];
  /** @type {any} */
  #parts = null; // the number in each state
  /** @type {Promise<any>} */
  #changing = Promise.resolve(); // the latest change, perhaps still being saved
  #cover = "";
  #isSampling = false;
  /** Settings last shown in the fields. @type {Record<string, unknown>} */
  #shown = {};
  #measures = new Latest();

  /**
   * run: runs work and shows its result; change: changes the project's settings.
   *
   * @param {(name: string) => any} part
   * @param {{ id: string, signal: AbortSignal, run: (work: () => Promise<any>) => Promise<void>, change: (changes: Record<string, unknown>) => Promise<void> }} project
   */
  constructor(part, { id, signal, run, change }) {
    this.part = part;
    this.id = id;
    this.change = change;
    signal.addEventListener("abort", () => this.#measures.end());
    this.part("measured").textContent = "";
    this.part("measure").disabled = false;
    const rates = BIT_RATES.map((rate) => element("option", { value: String(rate), textContent: `${rate} kbit/s` }));
    this.part("bitrate").replaceChildren(this.part("bitrate").options[0], ...rates);
    offerMenu(this.part("download"), () => FILES.map(([path, words]) => ({ words, run: () => this.#download(path) })), signal);
    const on = (name, type, work) => part(name).addEventListener(type, (event) => run(() => work(event.target)), { signal });
    for (const [name, read] of Object.entries(FINISH)) on(name, "change", (field) => this.#change({ [name]: read(field) }));
    this.part("sample-first").value = this.part("sample-last").value = "";
    this.part("sample-form").addEventListener("submit", (event) => {
      event.preventDefault();
      run(() => this.#downloadSample());
    }, { signal });
    on("cover-file", "change", (field) => this.#give(field));
    on("cover-remove", "click", () => removeCover(this.id));
    on("measure", "click", () => this.#measure());
  }

  #download(path) {
    element("a", { href: fileAddress(this.id, path), download: "" }).click();
  }

  /** Download a sample of the parts with these numbers, or else of the beginning. */
  async #downloadSample() {
    const ids = ["first", "last"].map(async (name) => {
      const number = Number(this.part(`sample-${name}`).value);
      return number ? (await readPartIds(this.id, "", number - 1, 1))[0] : null;
    });
    this.#setSampling(true);
    try {
      const { blob, name } = await readSample(this.id, ...(await Promise.all(ids)));
      const href = URL.createObjectURL(blob);
      element("a", { href, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(href), READ);
    } finally {
      this.#setSampling(false);
    }
  }

  /** @param {boolean} isSampling */
  #setSampling(isSampling) {
    this.part("sample").disabled = this.#isSampling = isSampling;
  }

  show({ settings, cover, parts }) {
    this.part("whole").hidden = !parts.done;
    this.part("no-files").hidden = parts.done > 0;
    this.#parts = parts;
    this.#showLeftOut();
    for (const name of Object.keys(FINISH)) {
      if (this.#shown[name] === settings[name]) continue; // keep rejected input in the field
      const field = this.part(name);
      if (document.activeElement === field) continue;
      this.#shown[name] = settings[name];
      if (field.type === "checkbox") field.checked = settings[name];
      else field.value = settings[name] ?? "";
    }
    for (const name of ["sample-first", "sample-last"]) this.part(name).max = parts.total;
    this.part("sample").disabled = !parts.done || this.#isSampling;
    this.part("measure").hidden = !parts.done;
    this.part("cover-words").textContent = phrase(cover ? "project.cover.change" : "project.cover.choose");
    this.part("cover-remove").hidden = this.part("cover-image").hidden = !cover;
    if (cover && cover !== this.#cover) this.part("cover-image").src = coverAddress(this.id, cover);
    this.#cover = cover;
  }

  /** Name the chapters that have changed parts. */
  showChapters(chapters) {
    this.#chapters = chapters;
    if (this.#parts) this.#showLeftOut();
  }

  #showLeftOut() {
    const { total, done, stale } = this.#parts;
    const words = total > done ? [phrase("project.leftOut", { count: total - done })] : [];
    if (stale) words.push(phrase("project.leftOut.changed", { count: stale }), changedWords(this.#chapters));
    this.part("left-out").textContent = words.join(" ").trim();
  }

  #change(changes) {
    this.#measures.end();
    this.part("measured").textContent = "";
    this.part("measure").disabled = false;
    return (this.#changing = this.change(changes));
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
      await this.#changing.catch(() => {}); // measure with the latest settings; the change shows its own failure
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
