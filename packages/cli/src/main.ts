/** The entry of the bundle with every verb. */
import { completions } from "./arguments/Completions.ts"
import { rootHelp, verbHelps } from "./arguments/Help.ts"
import { run } from "./Cli.ts"
import * as KeyFile from "./config/KeyFile.ts"
import { verbs } from "./Verbs.ts"

/** Runs the words after `daybook` and ends the process. */
export const main = (words: ReadonlyArray<string>): void => {
  KeyFile.load()
  run(verbs, words)
}

/** Every text of help and completion, for the file that the build writes. */
export const texts = async (version: string) => {
  const all = await Promise.all(Object.values(verbs).map((load) => load()))
  return { version, root: rootHelp(version, all), verbs: verbHelps(all), completions: completions(all) }
}
