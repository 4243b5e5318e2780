// Shows the advisor's verdict on a clip: a score, the reasons for it, and a button for each available fix.

import { element } from "../lib/elements.js";
import { numeral, phrase, phraseIfKnown } from "../lib/phrases.js";

const [AGAIN, LATEST] = [3, 60]; // seconds

/**
 * Repeat a request for advice later if the studio was at fault rather than the clip: busy, or not responding. Returns whether it was.
 * turn: how often it was repeated already; each time it waits longer, as the clip is sent each time.
 *
 * @param {import("../client/refusal.js").Refusal} problem
 * @param {number} turn
 * @param {() => void} work
 */
export function askAgain(problem, turn, work) {
  if (!problem.isOfRequest) setTimeout(work, 1000 * (problem.retryAfter ?? Math.min(AGAIN * 2 ** turn, LATEST)));
  return !problem.isOfRequest;
}

export function gradeOf(score) {
  return score >= 80 ? "good" : score >= 50 ? "fair" : "bad";
}

function sentence(words) {
  return words[0].toUpperCase() + words.slice(1);
}

/**
 * A finding in the reader's language, {message, fix}; an unknown one keeps the server's words.
 *
 * @param {{ code: string, severity: string, message: string, fix: string | null, values?: Record<string, number> }} finding
 */
export function findingWords({ code, severity, message, fix: mending, values = {} }) {
  const phraseOf = (...names) => names.map((name) => phraseIfKnown(`advice.${name}`, values)).find(Boolean);
  return {
    message: phraseOf(...(severity === "hint" ? [`${code}.hint`] : []), code) ?? message,
    fix: mending && (phraseOf(`${code}.fix`) ?? mending),
  };
}

/**
 * Show advice as returned by /v1/voices/advise.
 *
 * @param {{ mend?: (cut: any) => void, use?: (slug: string) => void }} presses mend is called with the cut that a button
 *   applies, use with the bundled voice that is chosen in place of a clone.
 */
export function showAdvice(root, { score, seconds, findings, fixed, closest }, presses) {
  const { mend = null, use = null } = presses;
  const grade = gradeOf(score);
  const list = findings.map((finding) => {
    const { message, fix: mending } = findingWords(finding);
    const item = element("li", {}, [element("span", { textContent: message })]);
    if (mending && mend) item.append(fix(sentence(mending), finding.cut, mend));
    return item;
  });
  const count = findings.length;
  const verdict = /** @type {import("../lib/phrases.js").Key} */ (`advice.${grade}${count ? ".but" : ""}`);
  const fixes = findings.filter((finding) => finding.fix);
  root.dataset.grade = grade;
  root.classList.add("advice");
  root.replaceChildren(
    element("p", { className: "advice-head" }, [
      element("strong", { textContent: phrase(verdict, { count, score }) }),
      element("span", { className: "quiet", textContent: phrase("time.seconds", { seconds: numeral(seconds, 1) }) }),
    ]),
    element("ul", {}, list),
  );
  if (fixes.length > 1 && mend) root.append(fix(phrase("advice.fixAll"), fixed, mend));
  if (closest && use) root.append(instead(closest, use));
}

/** Show that advice has been requested. */
export function awaitAdvice(root) {
  root.classList.remove("advice");
  root.replaceChildren(phrase("newVoice.check.reading"));
}

/** Show why advice is unavailable. */
export function showNoAdvice(root, why) {
  root.dataset.grade = "bad";
  root.classList.add("advice");
  root.replaceChildren(element("strong", { textContent: sentence(why) }));
}

/** States that a demo model cannot copy the voice, and offers its closest own voice. */
function instead({ name, slug, among }, use) {
  const choose = element("button", { type: "button", className: "plain", textContent: phrase("advice.closest.use", { name }), onclick: () => use(slug) });
  return element("p", { className: "advice-closest demo-only" }, [element("span", { textContent: phrase("advice.closest", { name, among }) }), choose]);
}

function fix(words, cut, mend) {
  return element("button", { type: "button", className: "plain", textContent: words, onclick: () => mend(cut) });
}
