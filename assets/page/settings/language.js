// The page's language, if one was chosen: stored in a cookie, because the server fills in the texts.

import { address } from "../client/address.js";

const COOKIE = "studio_language";
const KEPT = 365 * 24 * 3600; // seconds

/** Its tag, or "" if the browser decides. */
export function chosenLanguage() {
  return document.cookie.split("; ").find((cookie) => cookie.startsWith(`${COOKIE}=`))?.slice(COOKIE.length + 1) ?? "";
}

/**
 * Reload the page in this language; "": the browser's own.
 *
 * @param {string} tag
 */
export function chooseLanguage(tag) {
  const path = new URL(address("/"), location.href).pathname;
  const site = window.top === window ? "SameSite=Lax" : "SameSite=None; Secure; Partitioned"; // in another site's frame
  document.cookie = `${COOKIE}=${tag}; Path=${path}; Max-Age=${tag ? KEPT : 0}; ${site}`;
  location.reload();
}
