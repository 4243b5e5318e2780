// One model in the dialog: its licence, requirements, whether it fits, and its actions.

import { element } from "../lib/elements.js";
import { once } from "../lib/once.js";
import { LANGUAGE, listed, numeral, phrase } from "../lib/phrases.js";

const GIB = 2 ** 30;
const LANGUAGES = new Intl.DisplayNames([LANGUAGE], { type: "language" });

const gibibytes = (bytes) => `${numeral(bytes / GIB, 1)} GiB`;
const size = (bytes) => (bytes < 1e9 ? `${numeral(bytes / 1e6)} MB` : `${numeral(bytes / 1e9, 1)} GB`);

/** The estimated speed. */
export function speedWords(factor) {
  if (factor === null || factor === undefined) return phrase("models.speed.unknown");
  const [key, times] = factor <= 1 ? [/** @type {const} */ ("models.speed.faster"), 1 / factor] : [/** @type {const} */ ("models.speed.slower"), factor];
  return phrase(key, { times: numeral(times, times < 10 ? 1 : 0) });
}

/** Whether the model fits, and in which format. */
export function fitWords({ error, fits, weights, needs, free_bytes: free }) {
  if (error) return error;
  if (fits === null) return phrase("models.fits.unknown");
  if (fits) return phrase("models.fits", { format: weights });
  const fitting = needs.find((need) => need.fits);
  if (fitting) return phrase("models.fits.with", { format: fitting.weights });
  const least = Math.min(...needs.map(({ memory_bytes: bytes }) => bytes));
  return phrase("models.fits.not", { least: gibibytes(least), free: gibibytes(free ?? 0) });
}

/** The languages, by name. */
export function languageWords({ languages, more_languages: more }) {
  if (!languages.length) return phrase("models.languages.unknown");
  const names = listed(languages.map((code) => LANGUAGES.of(code) ?? code));
  return more ? phrase("models.languages.more", { languages: names }) : names;
}

/** [term, description] of the model's known facts. */
function facts(model) {
  const { name, path, licence, licence_url: url, needs, clones, fits, error } = model;
  const chosen = needs.find(({ dtype }) => dtype === model.weights) ?? needs.at(-1);
  const link = url ? element("a", { href: url, target: "_blank", rel: "noopener", textContent: licence }) : licence || "–";
  const isWrong = error || fits === false;
  const here = /** @type {const} */ ([phrase("models.here"), element("span", { className: isWrong ? "models-wrong" : "", textContent: fitWords(model) })]);
  if (error && path === null && !model.repo) return [here]; // nothing else is known of a missing model
  return [
    ...(path === name ? [[phrase("models.place"), path]] : []),
    [phrase("models.licence"), link],
    [phrase("models.languages"), languageWords(model)],
    ...(clones === null ? [] : [[phrase("models.voices"), phrase(clones ? "models.clones" : "models.clones.not")]]),
    ...(needs.length ? [[phrase("models.memory"), needs.map(({ dtype, memory_bytes: bytes }) => `${dtype} ${gibibytes(bytes)}`).join(" · ")]] : []),
    here,
    ...(chosen ? [[phrase("models.speed"), speedWords(chosen.real_time_factor)]] : []),
  ];
}

/**
 * The model's element. `download`: the state of its download, if any; `on`: the actions of its buttons.
 */
export function modelCard(model, download, { isBusy, isConfirming, current }, on) {
  const { title, loaded } = model;
  const heading = element("h3", { textContent: title });
  if (loaded) heading.append(element("small", { textContent: phrase("models.inUse") }));
  const list = element("dl", {}, facts(model).flatMap(([term, words]) => [element("dt", { textContent: term }), element("dd", {}, [words])]));
  const card = element("li", {}, [heading, list, ...actions(model, download, isBusy, isConfirming, current, on)]);
  if (loaded) card.setAttribute("aria-current", "true");
  return card;
}

function actions(model, download, isBusy, isConfirming, current, on) {
  const { title, loaded, path, fits, download_bytes: bytes } = model;
  if (download?.running) return [progressBar(title, button(phrase("models.cancel"), on.cancel))];
  const failed = download?.error ? [element("p", { className: "models-wrong", textContent: phrase("models.failed", { why: download.error }) })] : [];
  if (isConfirming && !isBusy) return [confirmation(title, current, on)];
  if (loaded) return failed;
  if (path === null) return bytes ? [...failed, bar(button(phrase("models.download", { size: size(bytes) }), on.download))] : failed;
  return [...failed, bar(button(phrase("models.use", { model: title }), on.ask, { disabled: isBusy || !fits }))];
}

function progressBar(title, cancel) {
  const progress = element("progress", { max: 1 });
  progress.setAttribute("aria-label", phrase("models.downloading", { model: title }));
  return bar(progress, element("span", { className: "quiet" }), cancel);
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
