/** The entry of the bundle of the verbs that only read the log (CL-60); bin/daybook.js knows their names. */
import { context } from "./commands/context.ts"
import { events } from "./commands/events.ts"
import { messages, sessions, show } from "./commands/sessions.ts"
import { run } from "./Cli.ts"

const verbs = {
  events: async () => events,
  sessions: async () => sessions,
  messages: async () => messages,
  show: async () => show,
  context: async () => context
}

/** Runs the words after `daybook` and ends the process. */
export const main = (words: ReadonlyArray<string>): void => run(verbs, words)
