// The area that tells how other programs use the studio.

import { address } from "./door.js";

/** Fires "present": the Studio area's speech shall be shown as a program. */
export class Api extends EventTarget {
  constructor(element) {
    super();
    const part = (name) => element.querySelector(`[data-part=${name}]`);
    part("base").textContent = address("/v1");
    part("endpoint").textContent = address("/v1/audio/speech");
    part("docs").href = address("/docs");
    part("present").addEventListener("click", () => this.dispatchEvent(new CustomEvent("present")));
  }
}
