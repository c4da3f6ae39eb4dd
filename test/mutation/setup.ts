/** Names the running test file for the sites of `sites.mjs`, in this process and in the processes it starts. */
import { expect } from "vitest"

process.env["DAYBOOK_TEST_FILE"] = expect.getState().testPath ?? "?"
