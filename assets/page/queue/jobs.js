// The long work that is under way: what it is, how far it is, how long it still takes, and a button that cancels it.

import { cancelJob } from "../client/system.js";
import { element, Keyed, labelled, setChildren } from "../lib/elements.js";
import { numeral, phrase } from "../lib/phrases.js";
import { duration } from "../lib/time.js";

/** @typedef {{ id: string, kind: string, title: string, project: string | null, done: number, total: number, left: number | null, eta_s: number | null }} Job */

const KINDS = ["parts", "file", "measure", "check", "model", "recogniser"];
const megabytes = (/** @type {number} */ bytes) => `${numeral(bytes / 1e6)} MB`;

/** Say what a job does. @param {Job} job */
export const jobName = ({ kind, title }) => (KINDS.includes(kind) ? phrase(/** @type {import("../lib/phrases.js").Key} */ (`jobs.${kind}`), { title }) : title);

/** Say how far a job is; empty if unknown. @param {Job} job */
export function jobProgress({ kind, done, total, left, eta_s: eta }) {
  if (left !== null) return eta === null ? phrase("jobs.queued", { count: left }) : phrase("project.left.queued", { count: left, duration: duration(eta) });
  if (kind === "model" || kind === "recogniser") return total ? phrase("models.downloading.bytes", { done: megabytes(done), total: megabytes(total) }) : "";
  if (kind === "check") return phrase("jobs.checked", { count: done });
  if (!total) return "";
  const percent = `${numeral(Math.floor((100 * done) / total))} %`;
  return eta === null ? percent : `${percent} · ${phrase("project.left", { duration: duration(eta) })}`;
}

export class JobList {
  #rows = new Keyed();

  /** @param {any} part of the area */
  constructor(part) {
    this.part = part;
  }

  /** @param {Job[]} jobs */
  show(jobs) {
    this.part("under-way").hidden = !jobs.length;
    setChildren(this.part("jobs"), this.#rows.of(jobs, (job, row = this.#newRow(job)) => this.#fill(row, job)));
  }

  /** @param {Job} job */
  #newRow(job) {
    const onclick = async ({ currentTarget: button }) => {
      button.disabled = true;
      button.disabled = (await cancelJob(job.id)) !== null;
    };
    const cancel = labelled(element("button", { type: "button", className: "plain", textContent: phrase("voices.cancel"), onclick }), `${phrase("voices.cancel")}: ${jobName(job)}`);
    const bar = labelled(element("progress"), jobName(job));
    return element("li", {}, [element("span", { textContent: jobName(job) }), bar, element("small"), cancel]);
  }

  /** @param {HTMLElement} row @param {Job} job */
  #fill(row, job) {
    const [bar, words] = [/** @type {HTMLProgressElement} */ (row.querySelector("progress")), /** @type {HTMLElement} */ (row.querySelector("small"))];
    if (job.total) bar.value = job.done / job.total;
    const told = jobProgress(job);
    if (words.textContent !== told) words.textContent = told;
    return row;
  }
}
