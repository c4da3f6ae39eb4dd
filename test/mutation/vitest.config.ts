import { mergeConfig } from "vitest/config"
import quick from "../../vitest.config.ts"

/** The quick suite, with the name of the running file for the sites that report. */
export default mergeConfig(quick, { test: { root: ".", setupFiles: ["test/mutation/setup.ts"] } })
