// Microsoft's JavaScript SDKs for blobs, queues and tables, and two storage drivers on them, each
// doing a piece of its usual work and reading back what it wrote.
//
//     node clients.mjs CONNECTION_STRING [NAME...]
//
// The file must be beside its packages. Prints `FAILED name: why` for each round that fails, and
// `N passed, N failed` at the end.

import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { Readable } from "node:stream";

import {
  BlobBatchClient,
  BlobSASPermissions,
  BlobServiceClient,
  ContainerClient,
  generateBlobSASQueryParameters,
  StorageSharedKeyCredential,
} from "@azure/storage-blob";
import { odata, TableClient, TableServiceClient, TableTransaction } from "@azure/data-tables";
import { QueueServiceClient } from "@azure/storage-queue";
import { createStorage } from "unstorage";
import storageDriver from "unstorage/drivers/azure-storage-blob";

import { fails, play } from "./rounds.mjs";

const [connection, ...chosen] = process.argv.slice(2);
const settings = new Map(
  connection.split(";").map((part) => [part.split("=", 1)[0], part.slice(part.indexOf("=") + 1)]),
);
const account = settings.get("AccountName");
const key = settings.get("AccountKey");
const unique = (name) => `${name}${randomUUID().slice(0, 8)}`;
const rounds = {};

async function container() {
  const blobs = BlobServiceClient.fromConnectionString(connection);
  const made = blobs.getContainerClient(unique("js"));
  await made.create();
  return made;
}

rounds.blobs = async () => {
  const box = await container();
  const big = randomBytes(9_000_000);
  const blob = box.getBlockBlobClient("dir/a b+ü.bin");
  await blob.uploadData(big, {
    blockSize: 1_000_000,
    maxSingleShotSize: 1_000_000,
    concurrency: 4,
    metadata: { TimeToLive: "P1D" },
    tags: { project: "x y" },
  });
  assert.deepEqual(await blob.downloadToBuffer(), big);
  const slice = await blob.download(1_000, 2_000);
  const parts = [];
  for await (const part of slice.readableStreamBody) parts.push(part);
  assert.deepEqual(Buffer.concat(parts), big.subarray(1_000, 3_000));
  const streamed = box.getBlockBlobClient("streamed");
  await streamed.uploadStream(Readable.from([big]), 1_000_000, 3);
  assert.equal((await streamed.getProperties()).contentLength, big.length);
  const snapshot = await blob.createSnapshot();
  await fails("BlobAlreadyExists", blob.upload("x", 1, { conditions: { ifNoneMatch: "*" } }));
  const lease = blob.getBlobLeaseClient();
  await lease.acquireLease(15);
  await fails("LeaseIdMissing", blob.delete({ deleteSnapshots: "include" }));
  await lease.releaseLease();
  const names = [];
  for await (const item of box.listBlobsFlat({ includeMetadata: true, includeSnapshots: true })) {
    names.push([item.name, item.snapshot === snapshot.snapshot, item.metadata?.TimeToLive]);
  }
  assert.equal(names.filter(([name]) => name === "dir/a b+ü.bin").length, 2);
  assert.equal(names[0][2], "P1D");
  const prefixes = [];
  for await (const item of box.listBlobsByHierarchy("/")) prefixes.push([item.kind, item.name]);
  assert.deepEqual(prefixes, [
    ["prefix", "dir/"],
    ["blob", "streamed"],
  ]);
  const copy = box.getBlobClient("copy");
  assert.equal((await (await copy.beginCopyFromURL(blob.url)).pollUntilDone()).copyStatus, "success");
  const append = box.getAppendBlobClient("log");
  await append.create();
  await append.appendBlock("one\n", 4);
  await append.appendBlock("two\n", 4);
  assert.equal(String(await append.downloadToBuffer()), "one\ntwo\n");
  const page = box.getPageBlobClient("disk");
  await page.create(4096);
  await page.uploadPages(Buffer.alloc(512, 1), 512, 512);
  const ranges = await page.getPageRanges(0, 4096);
  assert.deepEqual(ranges.pageRange, [{ offset: 512, count: 511 }]);
  const gone = [copy, append, page];
  const batch = await new BlobServiceClient(box.url.slice(0, box.url.lastIndexOf("/")), box.credential)
    .getBlobBatchClient()
    .deleteBlobs(gone);
  assert.equal(batch.subResponsesSucceededCount, 3);
  const inside = new BlobBatchClient(box.url, box.credential);
  assert.equal((await inside.setBlobsAccessTier([streamed], "Cool")).subResponsesSucceededCount, 1);
  await box.delete();
};

rounds.signatures = async () => {
  const box = await container();
  const blob = box.getBlockBlobClient("a");
  await blob.upload("hello", 5);
  const query = generateBlobSASQueryParameters(
    {
      containerName: box.containerName,
      blobName: "a",
      permissions: BlobSASPermissions.parse("r"),
      expiresOn: new Date(Date.now() + 3_600_000),
    },
    new StorageSharedKeyCredential(account, key),
  );
  const answer = await fetch(`${blob.url}?${query}`);
  assert.equal(await answer.text(), "hello");
  assert.equal((await fetch(blob.url)).ok, false);
  const reader = new ContainerClient(`${box.url}?${query}`);
  await fails("AuthorizationPermissionMismatch", reader.getBlockBlobClient("a").upload("x", 1));
};

rounds.queues = async () => {
  const service = QueueServiceClient.fromConnectionString(connection);
  const queue = service.getQueueClient(unique("js"));
  await queue.create({ metadata: { team: "billing" } });
  for (const text of ["one", "two", "three <&> ü"]) await queue.sendMessage(text);
  assert.equal((await queue.getProperties()).approximateMessagesCount, 3);
  assert.equal((await queue.peekMessages({ numberOfMessages: 32 })).peekedMessageItems.length, 3);
  const got = await queue.receiveMessages({ numberOfMessages: 32, visibilityTimeout: 30 });
  const texts = got.receivedMessageItems.map((item) => item.messageText);
  assert.deepEqual(texts.sort(), ["one", "three <&> ü", "two"]);
  const [first, second] = got.receivedMessageItems;
  const updated = await queue.updateMessage(first.messageId, first.popReceipt, "again", 0);
  await fails("PopReceiptMismatch", queue.deleteMessage(first.messageId, first.popReceipt));
  await queue.deleteMessage(first.messageId, updated.popReceipt);
  await queue.deleteMessage(second.messageId, second.popReceipt);
  await queue.clearMessages();
  const names = [];
  for await (const item of service.listQueues({ prefix: queue.name, includeMetadata: true })) {
    names.push([item.name, item.metadata?.team]);
  }
  assert.deepEqual(names, [[queue.name, "billing"]]);
  await queue.delete();
};

rounds.tables = async () => {
  const options = { allowInsecureConnection: true };
  const service = TableServiceClient.fromConnectionString(connection, options);
  const name = unique("js");
  await service.createTable(name);
  const table = TableClient.fromConnectionString(connection, name, options);
  const when = new Date("2024-02-03T04:05:06.789Z");
  await table.createEntity({
    partitionKey: "north",
    rowKey: "it's",
    big: 5_000_000_000n,
    bytes: new Uint8Array([1, 2, 3]),
    when,
    open: true,
    ratio: 1.5,
    id: { type: "Guid", value: "0f4b9e0e-3a5c-4e5c-8c3a-6b1f4b1f9a10" },
  });
  await fails("EntityAlreadyExists", table.createEntity({ partitionKey: "north", rowKey: "it's" }));
  const read = await table.getEntity("north", "it's");
  assert.equal(read.big, 5_000_000_000n);
  assert.deepEqual(Buffer.from(read.bytes), Buffer.from([1, 2, 3]));
  assert.equal(new Date(read.when).getTime(), when.getTime());
  await fails(
    "UpdateConditionNotSatisfied",
    table.updateEntity({ partitionKey: "north", rowKey: "it's", a: 1 }, "Merge", {
      etag: "W/\"datetime'2020-01-01T00%3A00%3A00.1234567Z'\"",
    }),
  );
  await table.updateEntity({ partitionKey: "north", rowKey: "it's", a: 1 }, "Merge", { etag: read.etag });
  const change = new TableTransaction();
  for (let n = 0; n < 100; n++) change.createEntity({ partitionKey: "south", rowKey: `${n}`, n });
  assert.equal((await table.submitTransaction(change.actions)).status, 202);
  await fails(
    "EntityAlreadyExists",
    table.submitTransaction([
      ["upsert", { partitionKey: "south", rowKey: "new" }],
      ["create", { partitionKey: "south", rowKey: "1" }],
    ]),
  );
  const filter = odata`PartitionKey eq ${"south"} and n ge ${90}`;
  const found = [];
  for await (const page of table.listEntities({ queryOptions: { filter } }).byPage({ maxPageSize: 3 })) {
    assert.ok(page.length <= 3);
    found.push(...page.map((entity) => entity.n));
  }
  assert.deepEqual(found.sort(), [90, 91, 92, 93, 94, 95, 96, 97, 98, 99]);
  await table.deleteEntity("north", "it's");
  await fails("ResourceNotFound", table.getEntity("north", "it's"));
  await service.deleteTable(name);
};

rounds.unstorage = async () => {
  const box = await container();
  const storage = createStorage({
    driver: storageDriver({ connectionString: connection, containerName: box.containerName }),
  });
  await storage.setItem("dir:a", { n: 1 });
  await storage.setItemRaw("raw", Buffer.from([0, 255]));
  assert.deepEqual(await storage.getItem("dir:a"), { n: 1 });
  assert.deepEqual((await storage.getKeys()).sort(), ["dir:a", "raw"]);
  await storage.removeItem("dir:a");
  assert.equal(await storage.hasItem("dir:a"), false);
};

await play(rounds, chosen);
