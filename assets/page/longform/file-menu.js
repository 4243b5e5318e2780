// The menu of a project's files, with the size and time to expect, and the progress of the one that is being made.

import { fileAddress } from "../client/projects.js";
import { jobs } from "../client/system.js";
import { element } from "../lib/elements.js";
import { Latest } from "../lib/latest.js";
import { offerMenu } from "../lib/menu.js";
import { phrase } from "../lib/phrases.js";
import { keep, kept } from "../lib/storage.js";
import { duration } from "../lib/time.js";
import { size } from "../models/model-card.js";
import { jobProgress } from "../queue/jobs.js";

const [MP3, WAV, FLAC] = [0, 88.2, 48]; // kB per second, at 44.1 kHz; FLAC halves speech; 0: as set for MP3
/** Paths, labels and kB per second of sound, in menu order; without it a file is small. @type {[string, string, number?][]} */
const FILES = [
  ["audio?format=mp3", "MP3", MP3],
  ["audio?format=m4b", phrase("project.file.m4b"), 8],
  ["chapters", phrase("project.file.chapters"), MP3],
  ["epub", phrase("project.file.epub"), MP3],
  ["audio?format=wav", "WAV", WAV],
  ["audio?format=flac", "FLAC", FLAC],
  ["subtitles?format=srt", phrase("project.file.srt")],
  ["subtitles?format=vtt", phrase("project.file.vtt")],
  ["tracks", phrase("project.file.tracks"), FLAC],
  ["zip", phrase("project.file.zip"), WAV],
  ["zip?changed=true", phrase("project.file.changed")],
];
const USUAL_RATES = { none: 128, podcast: 128, acx: 192 }; // kbit/s of an MP3, by loudness
// Seconds of sound that a file takes in per second, until this browser has seen one being made: half of what one core encodes
// as MP3. For a loudness standard the sound is measured too, before and after the adjustment.
const PACE = { plain: 60, mastered: 25 };
const STORE = "pace-1";
const LEARNT = 5; // seconds that a file must take for its pace to count
const LOOK = 1000; // ms between looks at the progress of a file
const MISSES = 3; // looks without the file's job, which begins with the request and pauses between measuring and writing

export class FileMenu {
  /** As returned by the API last. @type {any} */
  project = null;
  #makes = new Latest();

  /**
   * @param {(name: string) => any} part
   * @param {string} id of the project
   * @param {AbortSignal} signal
   */
  constructor(part, id, signal) {
    this.part = part;
    this.id = id;
    this.part("making").textContent = "";
    signal.addEventListener("abort", () => this.#makes.end());
    offerMenu(part("download"), () => FILES.map(([path, words, rate]) => ({ words, note: this.#expected(rate), run: () => this.#download(path, words) })), signal);
  }

  /** Estimate the size of a file and the time until it is made. @param {number} [rate] kB per second */
  #expected(rate) {
    if (rate === undefined) return "";
    const { seconds, settings: { loudness, bitrate } } = this.project;
    const bytes = 1000 * seconds * (rate || (bitrate ?? USUAL_RATES[loudness]) / 8);
    return phrase("project.file.expected", { size: size(bytes), duration: duration(seconds / kept(STORE, PACE)[this.#paceName]) });
  }

  get #paceName() {
    return this.project.settings.loudness === "none" ? "plain" : "mastered";
  }

  /** The browser shows nothing until the file begins to arrive, which may take minutes for a book. */
  #download(path, words) {
    const { total, done } = this.project.parts;
    const parts = total > done ? phrase("project.making.part", { count: done, total }) : "";
    this.part("making").textContent = [phrase("project.making", { file: words }), parts].join(" ").trim();
    element("a", { href: fileAddress(this.id, path), download: "" }).click();
    this.#follow(words, parts);
  }

  /** Show how far the file is, and at its end what it has. */
  async #follow(words, parts) {
    const isWanted = this.#makes.begin();
    let wasSeen = false;
    const [began, { seconds }, name] = [performance.now(), this.project, this.#paceName];
    let took = 0; // seconds
    for (let misses = 0; misses < MISSES; ) {
      await new Promise((resolve) => {
        setTimeout(resolve, LOOK);
      });
      const running = await jobs().catch(() => null);
      if (!isWanted()) return;
      const job = running?.find(({ kind, project }) => project === this.id && (kind === "file" || kind === "measure"));
      misses = job || !running ? 0 : misses + 1;
      wasSeen ||= Boolean(job);
      if (job) took = (performance.now() - began) / 1000;
      if (job) this.part("making").textContent = [phrase("project.making", { file: words }), parts, jobProgress(job)].join(" ").trim();
    }
    if (took > LEARNT) keep(STORE, { ...kept(STORE, PACE), [name]: seconds / took });
    if (wasSeen) this.part("making").textContent = [phrase("project.made", { file: words }), parts].join(" ").trim();
  }
}
