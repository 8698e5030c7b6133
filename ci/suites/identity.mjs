// Signs in to smalt with Microsoft's @azure/identity, unpatched.
//
//     node identity.mjs BLOB CONTROL ACCOUNT
//
// BLOB and CONTROL are `host:port`. Prints a line for each failure, and `N passed, N failed`.
import assert from "node:assert/strict";
import {
  ClientSecretCredential,
  DefaultAzureCredential,
  EnvironmentCredential,
  ManagedIdentityCredential,
} from "@azure/identity";
import { BlobServiceClient } from "@azure/storage-blob";
import { play } from "./rounds.mjs";

const [blob, control, account] = process.argv.slice(2);
const port = (address) => address.split(":").pop();
const url = `https://localhost:${port(blob)}/${account}`;
const tenant = "dd0d0df1-06c3-436c-8034-4b9a153097ce";
const client = "22222222-2222-4222-8222-222222222222";
const authorityHost = `https://localhost:${port(control)}`;
const options = { authorityHost, disableInstanceDiscovery: true };

// Returns a round that creates a container and a blob with a credential, within environment
// variables.
const signsIn = (name, variables, credential) => async () => {
  Object.assign(process.env, variables);
  try {
    const container = new BlobServiceClient(url, credential()).getContainerClient(name);
    await container.create();
    await container.uploadBlockBlob("a", "hello", 5);
    const read = await container.getBlockBlobClient("a").downloadToBuffer();
    assert.equal(read.toString(), "hello");
  } finally {
    for (const variable of Object.keys(variables)) delete process.env[variable];
  }
};

const application = {
  AZURE_TENANT_ID: tenant,
  AZURE_CLIENT_ID: client,
  AZURE_CLIENT_SECRET: "any",
};
const appService = {
  IDENTITY_ENDPOINT: `http://${control}/identity/token`,
  IDENTITY_HEADER: "smalt",
};
const machine = { AZURE_POD_IDENTITY_AUTHORITY_HOST: `http://${control}` };
const managed = () => new ManagedIdentityCredential();
const secret = () => new ClientSecretCredential(tenant, client, "any", options);
await play(
  {
    secret: signsIn("js-secret", {}, secret),
    environment: signsIn("js-environment", application, () => new EnvironmentCredential(options)),
    appService: signsIn("js-app-service", appService, managed),
    byDefault: signsIn("js-by-default", appService, () => new DefaultAzureCredential()),
    machine: signsIn("js-machine", machine, managed),
  },
  [],
);
