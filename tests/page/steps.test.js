// The page's texts for the server's start-up steps and for findings about a clip.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { askAgain, findingWords } from "../../assets/page/voices/advice.js";
import { phraseIfKnown } from "../../assets/page/lib/phrases.js";

const health = readFileSync(new URL("../../assets/page/shell/engine-health.js", import.meta.url), "utf8");
const patterns = [...health.matchAll(/^ {2}\[\/(.+)\/, "(shell\.step\.\w+)"\],$/gm)].map(([, pattern, key]) => [new RegExp(pattern), key]);
const sources = ["engine/runtime/setup.py", "engine/engine.py", "engine/checkpoint/checkpoint_loader.py", "engine/direct_engine.py", "fleet/start.py"];

test("every step reported by the engine and the fleet has a text", () => {
  const steps = new Set();
  for (const file of sources) {
    const text = readFileSync(new URL(`../../${file}`, import.meta.url), "utf8");
    const calls = [...text.matchAll(/\b(?:(?:report|progress)\(|functools\.partial\(report,).*/g)];
    const words = calls.flatMap(([call]) => [...call.matchAll(/"([A-Za-z][^"]*)"/g)].map(([, step]) => step));
    assert.ok(words.length, `${file} reports no step: is its callback named report or progress?`);
    for (const step of words) steps.add(step.replaceAll(/\{[^}]*\}/g, "2"));
  }
  for (const step of ["capturing graphs", "compiling kernels", "starting engines: 2 of 2 ready"]) assert.ok(steps.has(step), step);
  for (const step of steps) {
    if (step.startsWith("memory:")) continue; // figures
    const match = patterns.find(([pattern]) => pattern.test(step));
    assert.ok(match && phraseIfKnown(match[1]), step);
  }
});

test("every finding of the advisor has its own text", () => {
  const text = readFileSync(new URL("../../audio/advisor.py", import.meta.url), "utf8");
  const codes = new Set([...text.matchAll(/Finding\(\s*"(\w+)"/g)].map(([, code]) => code));
  assert.ok(codes.size >= 14);
  for (const code of codes) assert.ok(phraseIfKnown(`advice.${code}`) ?? phraseIfKnown(`advice.${code}.hint`), code);
  const words = findingWords({ code: "short", severity: "hint", message: "x", fix: null, values: { seconds: 3.5 } });
  assert.deepEqual(words, { message: "3.5 s of speech is enough; 5 to 20 s are better.", fix: null });
  const quiet = findingWords({ code: "quiet", severity: "poor", message: "x", fix: "y", values: { level: -40, gain: 12 } });
  assert.deepEqual(quiet, { message: "Speech is quiet: -40 dB.", fix: "Raise by 12 dB" });
  const unknown = { code: "new", severity: "bad", message: "It is new.", fix: "renew" };
  assert.deepEqual(findingWords(unknown), { message: "It is new.", fix: "renew" });
});

test("a check that the studio cannot make now is repeated ever later, or when it says", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const wait = (facts, turn) => {
    const done = [];
    assert.ok(askAgain({ isOfRequest: false, retryAfter: null, ...facts }, turn, () => done.push(turn)));
    let seconds = 0;
    for (; !done.length; seconds += 1) t.mock.timers.tick(1000);
    return seconds;
  };
  assert.deepEqual([0, 1, 2, 3, 4, 5, 2000].map((turn) => wait({}, turn)), [3, 6, 12, 24, 48, 60, 60]);
  assert.equal(wait({ retryAfter: 1 }, 5), 1);
  assert.equal(askAgain({ isOfRequest: true }, 0, () => assert.fail()), false);
  t.mock.timers.tick(100_000);
});
