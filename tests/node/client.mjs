// The official Node clients, old and new, against the server whose command line follows:
//   node client.mjs OLD|auto|2026-07-28 ROOT COMMAND ARGS...
// Prints one JSON object with what it saw.

import { existsSync } from "node:fs";
import { join } from "node:path";

const [mode, root, command, ...args] = process.argv.slice(2);
const old = mode === "OLD";
const { Client } = await import(
  old ? "@modelcontextprotocol/sdk/client/index.js" : "@modelcontextprotocol/client"
);
const { StdioClientTransport } = await import(
  old ? "@modelcontextprotocol/sdk/client/stdio.js" : "@modelcontextprotocol/client/stdio"
);

const asked = [];
const answer = async (request) => {
  asked.push(request.params.message);
  return { action: "accept", content: {} };
};
const negotiation = mode === "auto" ? "auto" : { pin: mode };
const client = new Client(
  { name: "node", version: "1" },
  {
    capabilities: { elicitation: { form: {} } },
    ...(old ? {} : { versionNegotiation: { mode: negotiation } }),
  },
);
if (old) {
  const { ElicitRequestSchema } = await import("@modelcontextprotocol/sdk/types.js");
  client.setRequestHandler(ElicitRequestSchema, answer);
} else {
  client.setRequestHandler("elicitation/create", answer);
}

const transport = new StdioClientTransport({ command, args, cwd: root, stderr: "inherit" });
await client.connect(transport);
const call = async (name, args) => {
  const result = await client.callTool({ name, arguments: args });
  return { failed: Boolean(result.isError), text: result.content[0].text };
};

const seen = {
  version: old ? null : client.getNegotiatedProtocolVersion(),
  tools: (await client.listTools()).tools.map((tool) => tool.name),
  read: await call("read", { path: "a.txt" }),
  missing: await call("read", { path: "nothing" }),
  bash: await call("bash", { command: "cat a.txt; exit 3" }),
  wrong: await call("read", { path: 5 }),
};
try {
  await client.callTool({ name: "nothing", arguments: {} });
} catch (error) {
  seen.unknown = error.code;
}
seen.progress = [];
const loud = { command: "for word in one two three; do echo $word; sleep 0.3; done" };
const onprogress = (progress) => seen.progress.push(progress.message);
await client.callTool(
  { name: "bash", arguments: loud },
  ...(old ? [undefined, { onprogress }] : [{ onprogress }]),
);
const stop = new AbortController();
const stopped = client.callTool(
  { name: "bash", arguments: { command: "touch begun; sleep 300; touch ended" } },
  ...(old ? [undefined, { signal: stop.signal }] : [{ signal: stop.signal }]),
);
while (!existsSync(join(root, "begun"))) await new Promise((resolve) => setTimeout(resolve, 20));
stop.abort("enough");
seen.stopped = await stopped.then(
  () => "answered",
  () => "aborted",
);
const many = Array.from({ length: 50 }, () => call("read", { path: "a.txt" }));
seen.many = (await Promise.all(many)).filter((result) => !result.failed).length;
seen.asked = asked;
await client.close();
console.log(JSON.stringify(seen));
