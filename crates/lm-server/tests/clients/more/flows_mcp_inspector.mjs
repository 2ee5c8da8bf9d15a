// The MCP inspector's command line, against `lm mcp serve` over standard input and output, and over HTTP.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { run } from "./flow.mjs";

const server = JSON.parse(process.env.LM_MCP);
const inspect = (target, ...args) => {
  const options = { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], timeout: 60_000 };
  return execFileSync("node_modules/.bin/mcp-inspector", ["--cli", ...target, ...args], options);
};
const flows = {
  "list of tools": (target) => {
    const { tools } = JSON.parse(inspect(target, "--method", "tools/list", "--strict"));
    assert.deepEqual(
      tools.map(({ name }) => name),
      ["get_weather", "get_stock_price", "current_time", "calculate"],
    );
  },
  "call of a tool": (target) => {
    const call = ["--method", "tools/call", "--tool-name", "get_weather", "--tool-arg", "location=Paris"];
    const { structuredContent, isError } = JSON.parse(inspect(target, ...call));
    assert.equal(isError, false);
    assert.equal(structuredContent.temperature, 72);
  },
  "invalid call": (target) => {
    const call = ["--method", "tools/call", "--tool-name", "calculate", "--tool-arg", "expression=1 +"];
    const answer = (() => {
      try {
        return inspect(target, ...call);
      } catch (error) {
        return error.stdout;
      }
    })();
    assert.equal(JSON.parse(answer).isError, true);
  },
};

const http = spawn(server[0], [...server.slice(1), "--http", "0"], { stdio: ["ignore", "ignore", "pipe"] });
try {
  const [line] = await once(http.stderr.setEncoding("utf8"), "data");
  const [url] = line.match(/http:\S+\/mcp/);
  const all = {};
  for (const [name, target] of [["stdio", server], ["http", [url, "--transport", "http"]]]) {
    for (const [flow, check] of Object.entries(flows)) all[`${name}: ${flow}`] = () => check(target);
  }
  await run(all);
} finally {
  http.kill();
}
