import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const require = createRequire(import.meta.url);

/**
 * The programs of smalt.
 * @typedef {"smalt" | "smalt-sweeper" | "smalt-listener"} Name
 */

/**
 * Returns the absolute path of a program of smalt for this machine.
 *
 * @param {Name} [name] defaults to the emulator
 * @returns {string}
 * @throws {Error} if no package for this machine is installed
 */
export function program(name = "smalt") {
  const packages = targets().map((target) => `@smalt/${target}`);
  for (const candidate of packages) {
    const file = locate(candidate, name);
    if (file !== undefined) return file;
  }
  const machine = `${process.platform} ${process.arch}`;
  throw new Error(
    packages.length === 0
      ? `there is no smalt package for ${machine}: build smalt with cargo`
      : `cannot find the programs of smalt for ${machine}: install smalt with its optional ` +
          `dependencies, or install ${packages[0]}`,
  );
}

/**
 * Returns the Rust targets whose programs run on this machine, the preferred one first.
 * @returns {string[]}
 */
function targets() {
  const cpu = { x64: "x86_64", arm64: "aarch64" }[/** @type {string} */ (process.arch)];
  if (cpu === undefined) return [];
  if (process.platform === "linux") {
    // The musl programs are static, so they run on every Linux.
    const musl = `${cpu}-unknown-linux-musl`;
    return hasGlibc() ? [`${cpu}-unknown-linux-gnu`, musl] : [musl];
  }
  return process.platform === "darwin" ? [`${cpu}-apple-darwin`] : [];
}

/** @returns {boolean} */
function hasGlibc() {
  const { header } = /** @type {{ header: { glibcVersionRuntime?: string } }} */ (
    process.report.getReport()
  );
  return header.glibcVersionRuntime !== undefined;
}

/**
 * @param {string} name of the package
 * @param {string} file
 * @returns {string | undefined}
 */
function locate(name, file) {
  try {
    const found = path.join(path.dirname(require.resolve(`${name}/package.json`)), "bin", file);
    return existsSync(found) ? found : undefined;
  } catch {
    return undefined;
  }
}
