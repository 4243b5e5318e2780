// Parsing of typed times.

import assert from "node:assert/strict";
import test from "node:test";

import { clock, secondsIn } from "../../assets/page/lib/time.js";

test("a time is parsed in seconds, minutes or hours, and as it is shown", () => {
  const typed = { 65: 65, "1:05": 65, " 1:05.3 ": 65.3, "1:00:05": 3605, "90:00": 5400, [clock(754.2)]: 754.2 };
  for (const [text, seconds] of Object.entries(typed)) assert.equal(secondsIn(text), seconds, text);
  for (const text of ["", "soon", "1:", "-5", "1:2:3:4", "1e3"]) assert.ok(Number.isNaN(secondsIn(text)), text);
});
