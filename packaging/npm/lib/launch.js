import { spawn } from "node:child_process";

import { program } from "./program.js";

/**
 * Runs a program of smalt with the arguments and standard streams of this process. Signals are
 * passed on, and this process ends with the status of the program.
 *
 * @param {import("./program.js").Name} name
 */
export function launch(name) {
  let file;
  try {
    file = program(name);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exit(1);
  }
  const child = spawn(file, process.argv.slice(2), { stdio: "inherit" });
  /** @type {NodeJS.Signals[]} */
  const signals = ["SIGHUP", "SIGINT", "SIGTERM"];
  for (const signal of signals) {
    process.on(signal, () => {
      // A terminal sends Ctrl-C to the whole process group, so the program has received it. A
      // second one would make a worker abort.
      if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
    });
  }
  if (process.env.npm_command === "exec") {
    // npx does not pass SIGTERM on: without this the program would outlive it.
    const parent = process.ppid;
    setInterval(() => process.ppid !== parent && child.kill("SIGTERM"), 200).unref();
  }
  child.on("error", (error) => {
    console.error(`cannot start ${file}: ${error.message}`);
    process.exit(1);
  });
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}
