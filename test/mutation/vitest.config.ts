import { mergeConfig } from "vitest/config"
import { default as quick } from "../../vitest.config.ts"

/** The quick suite, plus the setup that tells the reporting sites the running file. */
export default mergeConfig(quick, { test: { root: ".", setupFiles: ["test/mutation/setup.ts"] } })
