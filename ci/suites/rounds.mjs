// What the programs in JavaScript share: a check of refusals, and the count of rounds.

import assert from "node:assert/strict";

// Checks that a call is refused with this code.
export async function fails(code, promise) {
  await assert.rejects(promise, (error) => {
    const details = error.details ?? {};
    const found = error.code ?? details.errorCode ?? details.odataError?.code;
    assert.equal(found, code, String(error));
    return true;
  });
}

// Runs the chosen rounds, all if none is chosen. Prints each that fails and the totals.
export async function play(rounds, chosen) {
  let passed = 0;
  let failed = 0;
  for (const [name, round] of Object.entries(rounds)) {
    if (chosen.length && !chosen.includes(name)) continue;
    try {
      await round();
      passed += 1;
    } catch (error) {
      failed += 1;
      console.log(`FAILED ${name}: ${String(process.env.TRACE ? error.stack : error).slice(0, 2000)}`);
    }
  }
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed ? 1 : 0;
}
