/** Tells the sites of `sites.mjs` the running test file, in this process and in the processes that it starts. */
import { expect } from "vitest"

const file = expect.getState().testPath ?? "?"
process.env["DAYBOOK_TEST_FILE"] = file
Object.assign(globalThis, { __test: file })
