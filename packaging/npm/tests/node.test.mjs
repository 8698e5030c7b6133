// What `smalt/testing` promises beyond the examples of docs/testing-in-other-languages.md.
import assert from "node:assert/strict";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, before, beforeEach, test } from "node:test";

import { BlobServiceClient } from "@azure/storage-blob";
import { start, useSmalt } from "smalt/testing";

const smalt = useSmalt({ beforeAll: before, beforeEach, afterAll: after });

const service = (server) => BlobServiceClient.fromConnectionString(server.connectionString);

async function names(server) {
  const found = [];
  for await (const container of service(server).listContainers()) found.push(container.name);
  return found;
}

test("two run side by side, and state goes from one to the other", async () => {
  const other = await start();
  await service(smalt()).createContainer("here");
  assert.deepEqual(await names(other), []);
  const file = path.join(await mkdtemp(path.join(tmpdir(), "state-")), "state.tar");
  await smalt().exportState(file);
  await other.importState(file);
  assert.deepEqual(await names(other), ["here"]);
  await other.stop();
});

test("the clock is set, and reset with the state", async () => {
  await smalt().clock.freeze();
  await smalt().clock.set(new Date("2100-01-01T00:00:00Z"));
  await smalt().clock.advance(60);
  assert.equal((await smalt().clock.now()).toISOString(), "2100-01-01T00:01:00.000Z");
  await smalt().clock.run();
  await smalt().reset();
  assert.ok(Math.abs(Date.now() - (await smalt().clock.now()).getTime()) < 60_000);
});

test("a snapshot is saved, loaded and deleted", async () => {
  await service(smalt()).createContainer("kept");
  await smalt().snapshots.save("one");
  await service(smalt()).deleteContainer("kept");
  await smalt().snapshots.load("one");
  assert.deepEqual(await names(smalt()), ["kept"]);
  await smalt().snapshots.delete("one");
  await assert.rejects(smalt().snapshots.load("one"), /404/);
});

test("what is wrong is said", async () => {
  await assert.rejects(start({ arguments: ["--unknown-flag"] }), /unknown-flag/);
  await assert.rejects(smalt().faults.add({ kind: "no-such-kind" }), /400/);
});
