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
 * @param {Name} [name] the emulator when it is left out
 * @returns {string}
 * @throws {Error} when no package for this machine is installed
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
      ? `smalt has no programs for ${machine}: build them with cargo`
      : `smalt finds no programs for ${machine}: install smalt with its optional dependencies, ` +
          `or add ${packages.join(" or ")}`,
  );
}

/**
 * The Rust targets whose programs run here, the best one first.
 * @returns {string[]}
 */
function targets() {
  const cpu = { x64: "x86_64", arm64: "aarch64" }[/** @type {string} */ (process.arch)];
  if (cpu === undefined) return [];
  if (process.platform === "linux") {
    // Programs for musl are linked statically: they run on every Linux.
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
