// The advisor's word on a clip: a score, the reasons for it, and a press for each thing that can be mended.

import { element } from "../lib/elements.js";
import { numeral, phrase } from "../lib/phrases.js";

export function gradeOf(score) {
  return score >= 80 ? "good" : score >= 50 ? "fair" : "bad";
}

function sentence(words) {
  return words[0].toUpperCase() + words.slice(1);
}

/**
 * Show advice as /v1/voices/advise gives it.
 *
 * @param {((cut: any) => void) | null} mend is called with the cut that a press asks for.
 */
export function showAdvice(root, { score, seconds, findings, fixed }, mend = null) {
  const grade = gradeOf(score);
  const list = findings.map((finding) => {
    const item = element("li", {}, [element("span", { textContent: finding.message })]);
    if (finding.fix && mend) item.append(fix(sentence(finding.fix), finding.cut, mend));
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
}

/** Say that advice is asked for. */
export function awaitAdvice(root) {
  root.classList.remove("advice");
  root.replaceChildren(phrase("newVoice.check.reading"));
}

/** Say why there is no advice. */
export function showNoAdvice(root, why) {
  root.dataset.grade = "bad";
  root.classList.add("advice");
  root.replaceChildren(element("strong", { textContent: sentence(why) }));
}

function fix(words, cut, mend) {
  return element("button", { type: "button", className: "plain", textContent: words, onclick: () => mend(cut) });
}
