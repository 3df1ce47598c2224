// Runs the page's half on Node, on JavaScript's own clock: node check.mjs requeue_wasm.wasm
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { Rows } from "./page.mjs";

const { instance } = await WebAssembly.instantiate(await readFile(process.argv[2]));
const runs = [];
const began = performance.now();
let finished;
const done = new Promise((resolve) => (finished = resolve));

const rows = new Rows(instance.exports, async (row) => {
  runs.push({ row, at: performance.now() - began });
  const nth = runs.filter((run) => run.row === row).length;
  if (row === 7 && nth === 1) rows.add(7); // Changed while it is fetched.
  if (row === 8 && nth < 4) throw new Error("the server is busy");
  if (row === 9) finished();
});
rows.addAfter(9, 300);
for (let times = 0; times < 10; times += 1) rows.add(7);
rows.add(8);
await done;

const of = (row) => runs.filter((run) => run.row === row).map((run) => run.at);
assert.equal(of(7).length, 2, "ten adds and one during the run are two runs");
assert.equal(of(8).length, 4, "three failures and a success");
// 20, 40 and 80 ms. A timer may be up to a millisecond early: the queue then looks again.
of(8).slice(1).forEach((at, nth) => assert.ok(at - of(8)[nth] >= 20 * 2 ** nth - 1, `pause ${nth} is too short`));
assert.equal(of(9).length, 1);
assert.ok(of(9)[0] >= 299, "not before its delay");
console.log(`${runs.length} runs of 3 rows`);
