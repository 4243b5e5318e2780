// The menu of a project's files, with the size and time to expect, and the progress of the one that is being made.

import { confirmZip, fileAddress, readFile, readProject } from "../client/projects.js";
import { Refusal } from "../client/refusal.js";
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
/** kbit/s of an MP3, by loudness. @type {Record<string, number>} */
export const USUAL_RATES = { none: 128, podcast: 128, acx: 192 };
// Seconds of sound that a file takes in per second, until this browser has seen one being made: half of what one core encodes
// as MP3. For a loudness standard the sound is measured too, before and after the adjustment.
const PACE = { plain: 60, mastered: 25 };
const STORE = "pace-1";
const LEARNT = 5; // seconds that a file must take for its pace to count
const LOOK = 1000; // ms between looks at the progress of a file
const FETCHED = 64e6; // bytes: larger files are left to the browser, which writes them to the disk as they arrive
const READ = 60_000; // ms allowed for the browser to read a file after the click
const UNSEEN = 10; // looks after which a file whose job was never seen was made between two of them
const MISSES = 3; // looks without the file's job, which begins with the request and pauses between measuring and writing

/** Have the browser save a file. @param {{ blob: Blob, name: string }} file */
export function saveFile({ blob, name }) {
  const href = URL.createObjectURL(blob);
  element("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), READ);
}

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
    offerMenu(part("download"), () => FILES.map(([path, words, rate]) => ({ words, note: this.#expected(rate), run: () => this.#make(path, words, rate) })), signal);
  }

  /** The estimated size of a file in bytes. @param {number} rate kB per second */
  #bytes(rate) {
    const { seconds, settings: { loudness, bitrate } } = this.project;
    return 1000 * seconds * (rate || (bitrate ?? USUAL_RATES[loudness]) / 8);
  }

  /** Estimate the size of a file and the time until it is made. @param {number} [rate] kB per second */
  #expected(rate) {
    if (rate === undefined) return "";
    return phrase("project.file.expected", { size: size(this.#bytes(rate)), duration: duration(this.project.seconds / kept(STORE, PACE)[this.#paceName]) });
  }

  get #paceName() {
    return this.project.settings.loudness === "none" ? "plain" : "mastered";
  }

  /** Make a file and save it, and say how far it is and at its end what it has, or why it was refused. */
  async #make(path, words, rate) {
    const isWanted = this.#makes.begin();
    try {
      await this.#follow(path, words, rate, isWanted);
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      if (isWanted()) this.part("making").textContent = problem.why;
    }
  }

  /** The browser shows nothing until the file begins to arrive, which may take minutes for a book. Throws Refusal. */
  async #follow(path, words, rate, isWanted) {
    const { parts: { total, done } } = await readProject(this.id); // more may have been spoken since the last look
    const say = (key, count, progress = "") => {
      const parts = total > count ? phrase("project.making.part", { count, total }) : "";
      if (isWanted()) this.part("making").textContent = [phrase(key, { file: words }), parts, progress].filter(Boolean).join(" ");
    };
    const receipt = path.startsWith("zip") ? Date.now().toString(36) : "";
    if (receipt) path += `${path.includes("?") ? "&" : "?"}receipt=${receipt}`;
    const isFetched = rate === undefined || this.#bytes(rate) < FETCHED;
    const fetched = isFetched ? readFile(this.id, path) : null;
    if (!isFetched) element("a", { href: fileAddress(this.id, path), download: "" }).click();
    say("project.making", done);
    const [began, { seconds }, name] = [performance.now(), this.project, this.#paceName];
    let [took, misses, isSeen] = [0, 0, false]; // took: seconds
    const most = () => (fetched ? Infinity : isSeen ? MISSES : UNSEEN);
    while (misses < most()) {
      const file = await Promise.race([fetched, new Promise((resolve) => {
        setTimeout(resolve, LOOK);
      })].filter(Boolean));
      if (file) {
        saveFile(file);
        if (receipt) await confirmZip(this.id, receipt);
        say("project.made", file.parts ?? done);
        break;
      }
      const running = await jobs().catch(() => null);
      if (!isWanted() && !fetched) return;
      const job = running?.find(({ kind, project }) => project === this.id && (kind === "file" || kind === "measure"));
      misses = job || !running ? 0 : misses + 1;
      isSeen ||= Boolean(job);
      if (job) took = (performance.now() - began) / 1000;
      if (job) say("project.making", done, jobProgress(job));
    }
    if (!fetched && receipt) await confirmZip(this.id, receipt); // refused unless the browser has taken all of it
    if (!fetched) say("project.made", done);
    if (took > LEARNT) keep(STORE, { ...kept(STORE, PACE), [name]: seconds / took });
  }
}
