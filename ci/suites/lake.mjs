// Microsoft's JavaScript library for Data Lake Storage, against an account with a hierarchical
// namespace.
//
//     node lake.mjs BLOB ACCOUNT KEY [NAME...]
//
// BLOB is `host:port`. The library uses production's host names, because it renames nothing in path
// style: there it drops the account from the new path. The server is its HTTP proxy. The file must be beside its packages. Prints `FAILED name: why` for each round that fails, and
// `N passed, N failed` at the end.

import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";

import { BlobServiceClient, StorageSharedKeyCredential as BlobCredential } from "@azure/storage-blob";
import { DataLakeServiceClient, StorageSharedKeyCredential } from "@azure/storage-file-datalake";

import { fails, play } from "./rounds.mjs";

const [server, account, key, ...chosen] = process.argv.slice(2);
const [host, port] = server.split(":");
const options = { proxyOptions: { host: `http://${host}`, port: Number(port) } };
const url = (service) => `http://${account}.${service}.core.windows.net`;
const lake = new DataLakeServiceClient(url("dfs"), new StorageSharedKeyCredential(account, key), options);
const blobs = new BlobServiceClient(url("blob"), new BlobCredential(account, key), options);
const rounds = {};

async function fileSystem() {
  const system = lake.getFileSystemClient(`lake-${randomUUID().slice(0, 8)}`);
  await system.create();
  return system;
}

async function names(system, options) {
  const found = [];
  for await (const path of system.listPaths(options)) found.push(path.name);
  return found;
}

rounds.files = async () => {
  const system = await fileSystem();
  const file = system.getFileClient("a/b/f");
  const big = randomBytes(9_000_000);
  await file.upload(big, { chunkSize: 4_000_000, metadata: { team: "billing" } });
  assert.deepEqual(await file.readToBuffer(), big);
  const properties = await file.getProperties();
  assert.equal(properties.contentLength, big.length);
  assert.equal(properties.metadata.team, "billing");
  await fails("PathAlreadyExists", file.create({ conditions: { ifNoneMatch: "*" } }));
  await file.append("more", big.length, 4);
  await file.flush(big.length + 4);
  assert.equal((await file.readToBuffer(big.length)).toString(), "more");
  const tags = system.getDirectoryClient("a");
  assert.equal((await tags.getProperties()).metadata.hdi_isfolder, "true");
  const blob = blobs.getContainerClient(system.name).getBlobClient("a/b/f");
  assert.equal((await blob.getProperties()).contentLength, big.length + 4);
};

rounds.renames = async () => {
  const system = await fileSystem();
  for (const name of ["x/1", "x/y/2", "x/a b%+ü/3"]) {
    await system.getFileClient(name).upload(Buffer.from(name));
  }
  await system.getDirectoryClient("new").create();
  await system.getDirectoryClient("x").move("new/place");
  assert.deepEqual(await names(system, { recursive: true, path: "new" }), [
    "new/place",
    "new/place/1",
    "new/place/a b%+ü",
    "new/place/a b%+ü/3",
    "new/place/y",
    "new/place/y/2",
  ]);
  const moved = await system.getFileClient("new/place/a b%+ü/3").readToBuffer();
  assert.equal(moved.toString(), "x/a b%+ü/3");
  assert.equal(await system.getDirectoryClient("x").exists(), false);
  await fails("DirectoryNotEmpty", system.getDirectoryClient("new").delete(false));
  await system.getDirectoryClient("new").delete(true);
  assert.deepEqual(await names(system), []);
};

rounds.access = async () => {
  const system = await fileSystem();
  const directory = system.getDirectoryClient("d");
  await directory.create({ permissions: "rwxrwx---", umask: "0000" });
  await directory.getFileClient("f").create();
  const named = {
    accessControlType: "user",
    entityId: "bob",
    defaultScope: false,
    permissions: { read: true, write: false, execute: true },
  };
  const changed = await directory.updateAccessControlRecursive([named]);
  assert.deepEqual(changed.counters, {
    changedDirectoriesCount: 1,
    changedFilesCount: 1,
    failedChangesCount: 0,
  });
  const found = await directory.getFileClient("f").getAccessControl();
  assert.ok(found.acl.some((entry) => entry.entityId === "bob" && entry.permissions.execute));
  assert.equal(found.owner, "$superuser");
};

rounds.deletions = async () => {
  const policy = { enabled: true, days: 5 };
  await lake.setProperties({ deleteRetentionPolicy: policy });
  const system = await fileSystem();
  for (const text of ["one", "two"]) {
    const file = system.getFileClient("d/f");
    await file.upload(Buffer.from(text));
    await file.delete();
  }
  const deleted = [];
  for await (const path of system.listDeletedPaths()) deleted.push(path);
  assert.deepEqual(deleted.map((path) => path.name), ["d/f", "d/f"]);
  const { pathClient } = await system.undeletePath("d/f", deleted[0].deletionId);
  assert.equal((await pathClient.toFileClient().readToBuffer()).toString(), "one");
  await lake.setProperties({ deleteRetentionPolicy: { enabled: false } });
};

await play(rounds, chosen);
