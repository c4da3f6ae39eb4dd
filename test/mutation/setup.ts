/** Names the running test file for the sites of `sites.mjs`, in this process and in the processes it starts. */
import { expect } from "vitest"

const file = expect.getState().testPath ?? "?"
process.env["DAYBOOK_TEST_FILE"] = file
Object.assign(globalThis, { __test: file })
