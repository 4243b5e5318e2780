// One model in the dialog: its licence, requirements, whether it fits, and its actions.

import { element } from "../lib/elements.js";
import { once } from "../lib/once.js";
import { LANGUAGE, listed, numeral, phrase } from "../lib/phrases.js";
import { duration } from "../lib/time.js";

const LANGUAGES = new Intl.DisplayNames([LANGUAGE], { type: "language" });
const TEN_MINUTES = 600; // s
const MUCH = 1.5; // a freely licensed model is recommended unless it is more than this many times slower than the fastest
const FREE = /^(apache|mit|bsd)/i; // licences that allow commercial use
const NOT_FREE = /\bnc\b|-nc-|research|non-?commercial/i;

/** A number of bytes in words. @param {number} bytes */
export const size = (bytes) => (bytes < 1e9 ? `${numeral(bytes / 1e6, bytes < 1e7 ? 1 : 0)} MB` : `${numeral(bytes / 1e9, 1)} GB`);

/** The estimated speed, as the time that ten minutes of speech take. */
export function speedWords(factor) {
  if (factor === null || factor === undefined) return phrase("models.speed.unknown");
  return phrase("models.speed.ten", { duration: duration(TEN_MINUTES * factor) });
}

const chosenNeed = ({ needs, weights }) => needs.find(({ dtype }) => dtype === weights) ?? needs.at(-1);

/**
 * The model to use on this machine, or null: of those that clone and fit, the largest that is faster than speech, else the
 * fastest, or one that is hardly slower and may be used commercially. The list goes from small to large.
 *
 * @param {any[]} models
 */
export function recommended(models) {
  const factor = (model) => chosenNeed(model)?.real_time_factor ?? Infinity;
  const able = models.filter(({ clones, fits, loaded, error, path, repo }) => clones && (fits || loaded) && !error && (path !== null || repo));
  const [fastest] = able.toSorted((model, other) => factor(model) - factor(other));
  const free = able.find((model) => FREE.test(model.licence ?? "") && factor(model) <= MUCH * factor(fastest));
  return able.findLast((model) => factor(model) <= 1) ?? free ?? fastest ?? null;
}

/** Whether the model fits, and what would help. */
export function fitWords({ error, fits, needs, free_bytes: free }) {
  if (error) return error;
  if (fits === null) return phrase("models.fits.unknown");
  if (fits) return phrase("models.fits");
  const fitting = needs.find((need) => need.fits);
  if (fitting) return phrase("models.fits.with", { format: fitting.weights });
  const least = Math.min(...needs.map(({ memory_bytes: bytes }) => bytes));
  return phrase("models.fits.not", { least: size(least), free: size(free ?? 0) });
}

/** The languages, by name. */
export function languageWords({ languages, more_languages: more }) {
  if (!languages.length) return phrase("models.languages.unknown");
  const names = listed(languages.map((code) => LANGUAGES.of(code) ?? code));
  return more ? phrase("models.languages.more", { languages: names }) : names;
}

/** [term, description] of the model's known facts. */
function facts(model) {
  const { name, path, licence, licence_url: url, clones, designs, fits, error } = model;
  const chosen = chosenNeed(model);
  const link = url ? element("a", { href: url, target: "_blank", rel: "noopener", textContent: licence }) : licence || "–";
  const isWrong = error || fits === false;
  const here = /** @type {const} */ ([phrase("models.here"), element("span", { className: isWrong ? "models-wrong" : "", textContent: fitWords(model) })]);
  if (error && path === null && !model.repo) return [here]; // nothing else is known of a missing model
  return [
    ...(path === name ? [[phrase("models.place"), path]] : []),
    [phrase("models.licence"), link],
    ...(licence ? [[phrase("models.commercial"), phrase(FREE.test(licence) ? "models.commercial.yes" : NOT_FREE.test(licence) ? "models.commercial.no" : "models.commercial.see")]] : []),
    [phrase("models.languages"), languageWords(model)],
    ...(clones === null ? [] : [[phrase("models.voices"), phrase(designs ? "models.designs" : clones ? "models.clones" : "models.clones.not")]]),
    ...(chosen ? [[phrase("models.memory"), size(chosen.memory_bytes)]] : []),
    here,
    ...(chosen ? [[phrase("models.speed"), speedWords(chosen.real_time_factor)]] : []),
  ];
}

/**
 * The model's element. `download`: the state of its download, if any; `on`: the actions of its buttons.
 */
export function modelCard(model, download, { isBusy, isConfirming, isRecommended, current }, on) {
  const { title, loaded } = model;
  const heading = element("h3", { textContent: title });
  if (isRecommended) heading.append(element("small", { textContent: phrase("models.recommended") }));
  if (loaded) heading.append(element("small", { textContent: phrase("models.inUse") }));
  const list = element("dl", {}, facts(model).flatMap(([term, words]) => [element("dt", { textContent: term }), element("dd", {}, [words])]));
  const card = element("li", {}, [heading, list, ...actions(model, download, isBusy, isConfirming, current, on)]);
  if (loaded) card.setAttribute("aria-current", "true");
  return card;
}

function actions(model, download, isBusy, isConfirming, current, on) {
  const { title, loaded, path, fits, download_bytes: bytes } = model;
  if (download?.running) return [progressBar(title, button(phrase("models.pause"), on.pause), button(phrase("models.cancel"), on.cancel))];
  const failed = download?.error ? [element("p", { className: "models-wrong", textContent: phrase("models.failed", { why: download.error }) })] : [];
  if (isConfirming && !isBusy) return [confirmation(title, current, on)];
  if (loaded) return failed;
  const first = FREE.test(model.licence ?? "") || !model.repo ? [] : hubSteps(model.repo);
  if (path === null && download?.total) {
    const words = phrase("models.continue", { done: size(download.bytes), total: size(download.total) });
    return [...failed, ...first, bar(button(words, on.download), button(phrase("models.cancel"), on.cancel))];
  }
  if (path === null) return bytes ? [...failed, ...first, bar(button(phrase("models.download", { size: size(bytes) }), on.download))] : failed;
  return [...failed, bar(button(phrase("models.use", { model: title }), on.ask, { disabled: isBusy || !fits }))];
}

/** What to do on the hub before a model with a licence of its own can be downloaded. @param {string} repo */
function hubSteps(repo) {
  const link = (href, words) => element("a", { href: `https://huggingface.co/${href}`, target: "_blank", rel: "noopener", textContent: words });
  const steps = [[link(repo, phrase("models.accept.licence"))], [link("settings/tokens", phrase("models.accept.token"))], [phrase("models.accept.login")]];
  return [element("p", { textContent: phrase("models.accept") }), element("ol", { className: "models-steps" }, steps.map((words) => element("li", {}, words)))];
}

function progressBar(title, ...buttons) {
  const progress = element("progress", { max: 1 });
  progress.setAttribute("aria-label", phrase("models.downloading", { model: title }));
  return bar(progress, element("span", { className: "quiet" }), ...buttons);
}

/** Update the progress of a download. */
export function showProgress(card, { bytes, total }) {
  const progress = card.querySelector("progress");
  if (total) progress.value = bytes / total;
  progress.nextElementSibling.textContent = total ? phrase("models.downloading.bytes", { done: size(bytes), total: size(total) }) : "";
}

function confirmation(title, current, on) {
  const words = element("p", { textContent: phrase("models.confirm", { model: title, current }) });
  return element("div", {}, [words, bar(button(phrase("models.confirm.yes"), on.use, { className: "primary" }), button(phrase("models.confirm.no"), on.back))]);
}

const bar = (...children) => element("div", { className: "models-bar" }, children);

const button = (textContent, onclick, more = {}) => element("button", { type: "button", className: "plain", textContent, onclick: once(onclick), ...more });
