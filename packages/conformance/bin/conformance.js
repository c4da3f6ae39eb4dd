#!/usr/bin/env node
/** Usage: npx @daybook/conformance URL TOKEN; --help says more. */
import { run } from "@daybook/conformance/command"

process.exitCode = await run(process.argv.slice(2), {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text)
})
// What is printed goes out first. A server that does not end a connection keeps no process alive.
setTimeout(() => process.exit(), 1_000).unref()
