// Announces a finished project in the window's title and, if permitted, by a notification.

import { phrase } from "../lib/phrases.js";

const MARK = "✓ ";

/** Whether permission can be requested; some browsers do not support notifications. */
export const canAsk = () => "Notification" in window && Notification.permission === "default";

export const askToNotify = () => Notification.requestPermission();

export class DoneNotice {
  #wasRunning = false;
  #isMarked = false;

  /** signal: aborted when the project is left. @param {AbortSignal} signal */
  constructor(signal) {
    document.addEventListener("visibilitychange", () => document.hidden || this.#unmark(), { signal });
    signal.addEventListener("abort", () => this.#unmark());
  }

  /** Update with the project's current state. */
  see({ title, state, parts }) {
    const isRunning = state === "running";
    const isOver = this.#wasRunning && !isRunning && state !== "paused";
    this.#wasRunning = isRunning || (this.#wasRunning && state === "paused");
    if (isOver && document.hidden) this.#tell(title, parts);
    if (this.#isMarked && !document.title.startsWith(MARK)) document.title = `${MARK}${document.title}`;
  }

  #tell(title, parts) {
    this.#isMarked = true;
    if ("Notification" in window && Notification.permission === "granted") {
      const body = parts.failed ? phrase("project.failed", { count: parts.failed }) : phrase("project.done");
      const notice = new Notification(title, { body, icon: document.querySelector("link[rel~=icon]")?.getAttribute("href") ?? undefined });
      notice.onclick = () => window.focus();
    }
  }

  #unmark() {
    this.#isMarked = false;
    if (document.title.startsWith(MARK)) document.title = document.title.slice(MARK.length);
  }
}
