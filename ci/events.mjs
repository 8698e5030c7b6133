// Lets @azure/eventgrid parse the events that ci/events.py has read from queues.
import { readFileSync } from "node:fs";
import { EventGridDeserializer, isSystemEvent } from "@azure/eventgrid";

const [grid, cloud] = JSON.parse(readFileSync(process.argv[2], "utf8"));
const parser = new EventGridDeserializer();
const events = await parser.deserializeEventGridEvents(grid);
const clouds = await parser.deserializeCloudEvents(cloud);
const kinds = ["BlobCreated", "BlobTierChanged", "BlobDeleted"].map((kind) => `Microsoft.Storage.${kind}`);
for (const [place, kind] of kinds.entries()) {
  for (const event of [events[place], clouds[place]]) {
    if (!isSystemEvent(kind, event)) throw new Error(`FAILED: not ${kind}: ${JSON.stringify(event)}`);
  }
}
if (events[0].data.contentLength !== 4 || events[0].data.api !== "PutBlob") {
  throw new Error(`FAILED: ${JSON.stringify(events[0])}`);
}
console.log(`@azure/eventgrid of npm parses ${events.length} events in both schemas`);
