#!/usr/bin/env node
"use strict"
/**
 * Stands as `node-gyp` before npm's own in this workspace. npm runs `node-gyp rebuild` for better-sqlite3 when it installs from a
 * lockfile: the package has its binaries and says `gypfile: false`, but a lockfile does not hold that field. Without Python the
 * installation would fail. Every other package gets npm's node-gyp. See specs/decisions/0070-driver.md.
 */
if (process.env.npm_package_name !== "better-sqlite3") require(process.env.npm_config_node_gyp)
