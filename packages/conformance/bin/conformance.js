#!/usr/bin/env node
/** Usage: npx @daybook/conformance URL TOKEN. The exit code is 0 if the server keeps every clause. */
import { laws, report, verify } from "@daybook/conformance"

const [baseUrl, token] = process.argv.slice(2)
if (baseUrl === undefined || token === undefined) {
  process.stderr.write("usage: conformance URL TOKEN\n")
  process.exit(2)
}
const verdicts = await verify(laws, { baseUrl, token })
process.stdout.write(report(verdicts))
process.exit(verdicts.every(({ problem }) => problem === undefined) ? 0 : 1)
