#!/usr/bin/env node
/** Usage: npx @daybook/conformance URL TOKEN; --help says more. */
import { run } from "@daybook/conformance/command"

const code = await run(process.argv.slice(2), {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text)
})
// A request of a server that does not end keeps no process alive.
process.exit(code)
