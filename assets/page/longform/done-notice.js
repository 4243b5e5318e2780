// Tells somebody who is looking elsewhere that a project is done: in the window's title, and as a notification if that is allowed.

import { phrase } from "../lib/phrases.js";

const MARK = "✓ ";

/** Whether notifications may be asked for; some browsers have none. */
export const canAsk = () => "Notification" in window && Notification.permission === "default";

export const askToNotify = () => Notification.requestPermission();

export class DoneNotice {
  #wasRunning = false;
  #isMarked = false;

  /** signal: until when the project is shown. @param {AbortSignal} signal */
  constructor(signal) {
    document.addEventListener("visibilitychange", () => document.hidden || this.#unmark(), { signal });
    signal.addEventListener("abort", () => this.#unmark());
  }

  /** How the project is now. */
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
