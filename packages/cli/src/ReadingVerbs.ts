/** The verbs that only read the log. Their bundle contains nothing else (CL-60); bin/daybook.js knows their names. */
import * as Command from "@effect/cli/Command"
import type { Verb } from "./arguments/Verb.ts"
import { context } from "./commands/context.ts"
import { events } from "./commands/events.ts"
import { messages, show } from "./commands/messages.ts"
import { sessions } from "./commands/sessions.ts"

export const verbs: ReadonlyArray<Verb> = [events, sessions, messages, show, context]

const root = Command.make("daybook").pipe(
  Command.withSubcommands([events.command, sessions.command, messages.command, show.command, context.command])
)

export const parser = (version: string) => Command.run(root, { name: "daybook", version, executable: "daybook" })
