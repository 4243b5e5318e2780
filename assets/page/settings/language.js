// The language of the page, if one was chosen here: in a cookie, for the server puts the words in.

import { address } from "../client/address.js";

const COOKIE = "studio_language";
const KEPT = 365 * 24 * 3600; // seconds

/** Its tag, "" where the browser decides. */
export function chosenLanguage() {
  return document.cookie.split("; ").find((cookie) => cookie.startsWith(`${COOKIE}=`))?.slice(COOKIE.length + 1) ?? "";
}

/**
 * Have the page speak this language, "" for the browser's own; it is loaded again.
 *
 * @param {string} tag
 */
export function chooseLanguage(tag) {
  const path = new URL(address("/"), location.href).pathname;
  const site = window.top === window ? "SameSite=Lax" : "SameSite=None; Secure; Partitioned"; // in another site's frame
  document.cookie = `${COOKIE}=${tag}; Path=${path}; Max-Age=${tag ? KEPT : 0}; ${site}`;
  location.reload();
}
