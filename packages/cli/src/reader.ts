/** The entry of the bundle of the reading verbs. */
import { run } from "./Process.ts"
import * as ReadingVerbs from "./ReadingVerbs.ts"

/** Runs the words after `daybook` and ends the process. */
export const main = (version: string, words: ReadonlyArray<string>): void => run(ReadingVerbs, version, words)
