/** The entry of the bundle with every verb. */
import { rootHelp, verbHelps } from "./arguments/Help.ts"
import { run } from "./Process.ts"
import * as Verbs from "./Verbs.ts"

/** Runs the words after `daybook` and ends the process. */
export const main = (version: string, words: ReadonlyArray<string>): void => run(Verbs, version, words)

/** Every help text, for the file that the build writes. */
export const help = (version: string) => ({
  version,
  root: rootHelp(version, Verbs.verbs),
  verbs: verbHelps(Verbs.verbs)
})
