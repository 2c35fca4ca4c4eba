import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const child = spawn("hmb", ["broker", "--embedded"], { stdio: ["ignore", "pipe", "inherit"] });
const [line] = await new Promise((resolve) => createInterface(child.stdout).once("line", (...all) => resolve(all)));
const broker = JSON.parse(line); // Kafka clients connect to broker.bootstrap_servers.

const url = `http://${broker.control}/faults`;
const headers = { Authorization: `Bearer ${broker.token}` };
await fetch(url, { method: "POST", headers, body: JSON.stringify({ api: "PRODUCE", cut: "after", times: 1 }) });
console.log(await (await fetch(url, { headers })).text());
child.kill();
