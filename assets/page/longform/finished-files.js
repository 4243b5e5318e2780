// The settings for a project's files, book details, cover, credits, samples, and what it lacks before it is published.

import { Latest } from "../lib/latest.js";
import { addFeed, coverAddress, listFeeds, measureLoudness, putCover, readCover, readEpisodes, readPartIds, readProject, readSample, removeCover, removeFeed } from "../client/projects.js";
import { FileMenu, saveFile, USUAL_RATES } from "./file-menu.js";
import { element } from "../lib/elements.js";
import { listed, numeral, phrase } from "../lib/phrases.js";
import { offerUndo } from "../trash/undo-toast.js";
import { ShareDialog } from "../shell/share-dialog.js";
import { duration } from "../lib/time.js";
import { isBeingTyped } from "../lib/typing.js";
import { showReady } from "./ready.js";

const figure = (value, unit) => `${numeral(value, 1).replace("-", "−")} ${unit}`;
const BIT_RATES = [64, 96, 128, 192, 256, 320]; // kbit/s
/** Readers of the settings, by the name of setting and field. @type {Record<string, (field: any) => unknown>} */
export const FINISH = {
  loudness: ({ value }) => value,
  bitrate: ({ value }) => (value ? Number(value) : null),
  trim: ({ checked }) => checked,
  cue_speed: ({ value }) => (value ? Number(value) : null),
  read_titles: ({ checked }) => checked,
  author: ({ value }) => value,
  narrator: ({ value }) => value,
  year: ({ value }) => (value ? Number(value) : null),
  language: ({ value }) => value.trim(),
  opening_credits: ({ value }) => value,
  closing_credits: ({ value }) => value,
};
const LOCAL = /^(localhost|127\..*|\[::1\])$/; // host names that mean another machine on another machine
const PLAIN_COVERS = ["image/jpeg", "image/png"];
const MOST_COVER = 4 * 2 ** 20; // bytes that the server accepts
const COVER_SIDE = 3000; // pixels of a drawn cover, the most that podcast apps accept
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

/**
 * Return a picture as a JPEG or PNG that players read; others, such as SVG, are drawn, and one that is unreadable stays as it is.
 *
 * @param {File} file
 */
async function asCover(file) {
  if (PLAIN_COVERS.includes(file.type) && file.size <= MOST_COVER) return file;
  const image = element("img", { src: URL.createObjectURL(file) });
  try {
    await image.decode();
    const { naturalWidth: width, naturalHeight: height } = image;
    const longest = Math.max(width, height) || 1;
    const scale = (file.type === "image/svg+xml" ? COVER_SIDE : Math.min(COVER_SIDE, longest)) / longest;
    const canvas = element("canvas", { width: Math.round(width * scale), height: Math.round(height * scale) });
    const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    pen.fillStyle = "white"; // behind what is transparent
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve) => {
      canvas.toBlob((blob) => resolve(blob ?? file), "image/jpeg", 0.92);
    });
  } catch (problem) {
    if (!(problem instanceof DOMException)) throw problem;
    return file; // the server says why it cannot be used
  } finally {
    URL.revokeObjectURL(image.src);
  }
}

/** The dialog of all projects, since the page has one. @type {ShareDialog | null} */
let feedDialog = null;

/** @param {{ data: any[], problem?: string | null }} list @param {() => boolean} isLatest */
async function showEpisodes({ data: links, problem }, isLatest) {
  const { part } = /** @type {ShareDialog} */ (feedDialog);
  part("episodes").hidden = true;
  part("feed-here").hidden = !links.length || !LOCAL.test(location.hostname);
  part("feed-said").textContent = links.length ? phrase("project.feed.making") : "";
  const episodes = links.length ? await readEpisodes(links[0].path) : [];
  if (!isLatest() || !links.length) return;
  part("feed-said").textContent = [phrase("project.feed.has", { count: episodes.length }), problem].filter(Boolean).join(" ");
  part("episodes").replaceChildren(...episodes.map(({ title, seconds }) => element("li", { textContent: `${title} · ${duration(seconds)}`, dir: "auto" })));
  part("episodes").hidden = !episodes.length;
}

export class FinishedFiles {
  /** @type {any[]} */
  #chapters = [];
  /** @type {any} */
  #parts = null; // the number in each state
  /** @type {Promise<any>} */
  #changing = Promise.resolve(); // the latest change, perhaps still being saved
  /** @type {any} */
  #project = null; // as shown last
  #cover = "";
  #isSampling = false;
  /** The last measurement of the project as it is. @type {any} */
  #measured = null;
  /** Settings last shown in the fields. @type {Record<string, unknown>} */
  #shown = {};
  #measures = new Latest();

  /**
   * run: runs work and shows its result; change: changes the project's settings.
   *
   * @param {(name: string) => any} part
   * @param {{ id: string, signal: AbortSignal, run: (work: () => Promise<any>) => Promise<void>, openParts: (field?: string) => void, change: (changes: Record<string, unknown>) => Promise<void> }} project
   */
  constructor(part, { id, signal, run, change, openParts }) {
    this.part = part;
    this.id = id;
    this.run = run;
    this.change = change;
    this.openParts = openParts;
    delete part("ready").dataset.shown;
    signal.addEventListener("abort", () => this.#measures.end());
    this.part("measured").textContent = "";
    this.part("measure").disabled = false;
    const rates = BIT_RATES.map((rate) => element("option", { value: String(rate), textContent: `${rate} kbit/s` }));
    this.part("bitrate").replaceChildren(this.part("bitrate").options[0], ...rates);
    this.menu = new FileMenu(part, id, signal);
    this.part("cover-image").addEventListener("load", () => this.#showReady(), { signal });
    const on = (name, type, work) => part(name).addEventListener(type, (event) => run(() => work(event.target)), { signal });
    for (const [name, read] of Object.entries(FINISH)) on(name, "change", (field) => this.#change({ [name]: read(field) }));
    this.part("sample-first").value = this.part("sample-last").value = "";
    this.part("sample-form").addEventListener("submit", (event) => {
      event.preventDefault();
      run(() => this.#downloadSample());
    }, { signal });
    on("feed", "click", () => this.#openFeed());
    on("cover-file", "change", (field) => this.#give(field));
    on("cover-remove", "click", () => this.#changeCover(() => removeCover(this.id)));
    on("measure", "click", () => this.#measure());
  }

  /** Download a sample of the parts with these numbers, or else of the beginning. */
  async #downloadSample() {
    const ids = ["first", "last"].map(async (name) => {
      const number = Number(this.part(`sample-${name}`).value);
      return number ? (await readPartIds(this.id, "", number - 1, 1))[0] : null;
    });
    this.#setSampling(true);
    try {
      saveFile(await readSample(this.id, ...(await Promise.all(ids))));
    } finally {
      this.#setSampling(false);
    }
  }

  /** Show the links to the podcast feed, and the episodes that apps find there. */
  async #openFeed() {
    const { share_days: most } = await listFeeds(this.id);
    this.part("making").textContent = most ? "" : phrase("project.feed.off");
    if (!most) return;
    feedDialog ??= new ShareDialog(this.part("feed-dialog"), { list: listFeeds, add: addFeed, remove: removeFeed }, showEpisodes);
    feedDialog.open(this.id, most);
  }

  /** @param {boolean} isSampling */
  #setSampling(isSampling) {
    this.part("sample").disabled = this.#isSampling = isSampling;
  }

  show(project) {
    const { settings, cover, parts, kind, seconds } = project;
    if (this.#project && this.#project.seconds !== seconds) this.#forgetMeasured();
    this.#project = this.menu.project = project;
    this.part("whole").hidden = !parts.done;
    this.part("no-files").hidden = parts.done > 0;
    this.part("feed").hidden = this.#project.right !== "own";
    this.#parts = parts;
    this.#showLeftOut();
    this.part("dub").hidden = kind !== "srt";
    for (const name of Object.keys(FINISH)) {
      if (this.#shown[name] === settings[name]) continue; // keep rejected input in the field
      const field = this.part(name);
      if (isBeingTyped(field)) continue;
      this.#shown[name] = settings[name];
      if (field.type === "checkbox") field.checked = settings[name];
      else field.value = settings[name] ?? "";
    }
    this.part("bitrate").options[0].textContent = `${phrase("project.bitrate.auto")} (${USUAL_RATES[settings.loudness]} kbit/s)`;
    for (const name of ["sample-first", "sample-last"]) this.part(name).max = parts.total;
    this.part("sample").disabled = !parts.done || this.#isSampling;
    this.part("measure").hidden = !parts.done;
    this.part("cover-words").textContent = phrase(cover ? "project.cover.change" : "project.cover.choose");
    this.part("cover-remove").hidden = this.part("cover-image").hidden = !cover;
    if (cover && cover !== this.#cover) this.part("cover-image").src = coverAddress(this.id, cover);
    this.#cover = cover;
    this.#showReady();
  }

  /** Say what the project lacks. */
  #showReady() {
    if (!this.#project) return;
    const found = { chapters: this.#chapters, image: this.part("cover-image"), measured: this.#measured };
    showReady(this.part("ready"), this.#project, found, (name) => (name === "parts" ? this.openParts() : name === "gap" ? this.openParts(name) : this.part(name).focus()));
  }

  /** Name the chapters that have changed parts. */
  showChapters(chapters) {
    this.#chapters = chapters;
    this.#showReady();
    if (this.#parts) this.#showLeftOut();
  }

  #showLeftOut() {
    const { total, done, stale } = this.#parts;
    const words = total > done ? [phrase("project.leftOut", { count: total - done })] : [];
    if (stale) words.push(phrase("project.leftOut.changed", { count: stale }), changedWords(this.#chapters));
    this.part("left-out").textContent = words.join(" ").trim();
  }

  #change(changes) {
    this.#forgetMeasured();
    return (this.#changing = this.change(changes));
  }

  #forgetMeasured() {
    this.#measures.end();
    this.#measured = null;
    this.part("measured").textContent = "";
    this.part("measure").disabled = false;
  }

  async #give(field) {
    const [file] = field.files;
    try {
      if (file) await this.#changeCover(async () => putCover(this.id, await asCover(file)));
    } finally {
      field.value = "";
    }
  }

  /** Change the cover, and offer to put back the one before, unless somebody else has chosen another one since. Throws Refusal. */
  async #changeCover(change) {
    const before = this.#cover && (await readCover(this.id, this.#cover)).blob;
    await change();
    const { cover: after } = await readProject(this.id);
    const undo = async () => {
      if ((await readProject(this.id)).cover !== after) return { undone: 0, left: [after] };
      await (before ? putCover(this.id, before) : removeCover(this.id)).finally(() => this.run(async () => {}));
    };
    offerUndo(phrase("project.changed"), undo, !after);
  }

  async #measure() {
    const isWanted = this.#measures.begin();
    this.part("measured").textContent = phrase("project.measuring");
    this.part("measure").disabled = true;
    try {
      await this.#changing.catch(() => {}); // measure with the latest settings; the change shows its own failure
      const measured = await measureLoudness(this.id);
      if (!isWanted()) return;
      this.#measured = measured;
      this.part("measured").textContent = loudnessWords(measured);
      this.#showReady();
    } catch (problem) {
      if (isWanted()) this.part("measured").textContent = "";
      throw problem;
    } finally {
      if (isWanted()) this.part("measure").disabled = false;
    }
  }
}
