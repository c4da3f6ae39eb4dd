"use strict"
/**
 * npm runs `node-gyp rebuild` for better-sqlite3 when it installs from a lockfile, although the package has its binaries and says
 * `gypfile: false`: the lockfile does not hold that field. Without Python the installation would fail. This skips it, and
 * passes every other call on to npm's own node-gyp. Set in .npmrc. See specs/decisions/0070-driver.md.
 */
const { dirname, join } = require("node:path")

if (process.env.npm_package_name !== "better-sqlite3") {
  const npm = dirname(dirname(process.env.npm_execpath ?? ""))
  require(join(npm, "node_modules", "node-gyp", "bin", "node-gyp.js"))
}
