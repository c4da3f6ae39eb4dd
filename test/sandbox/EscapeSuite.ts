/** The escape suite: what a command in a sandbox tries. Each way to run a command in a sandbox runs these cases. */
import { describe } from "@effect/vitest"
import type { MakeBench } from "./EscapeBench.ts"
import { escapeFiles } from "./EscapeFiles.ts"
import { escapeProcesses } from "./EscapeProcesses.ts"
import { lacks } from "../support/Parts.ts"

export const escapeSuite = (name: string, makeBench: MakeBench) =>
  describe.skipIf(lacks("bubblewrap"))(name, () => {
    escapeFiles(name, makeBench)
    escapeProcesses(name, makeBench)
  })
