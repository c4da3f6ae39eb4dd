import { mergeConfig } from "vitest/config"
import { suite } from "../../vitest.suite.ts"

/** The suites `test` and `world`, plus the setup that tells the reporting sites the running file. */
export default mergeConfig(suite("both"), { test: { root: ".", setupFiles: ["test/mutation/setup.ts"] } })
