/** The slash commands as Discord knows them, and who may use them. Pure. Spec: DI-40, DI-41 in specs/discord.md. */
import { ApplicationCommandOptionType, InteractionContextType } from "discord.js"
import type { Right } from "../trust/Rights.ts"

interface Option {
  readonly name: string
  readonly description: string
  readonly type: ApplicationCommandOptionType
  readonly required?: boolean
  readonly min_value?: number
}

export interface Command {
  readonly name: string
  readonly description: string
  readonly options?: ReadonlyArray<Option>
  /** What a person must be allowed to do. */
  readonly right: Right
  /** Where it works: in channels, or in threads, which are sessions. */
  readonly place: "channel" | "thread" | "both"
}

const text = (description: string): Option => ({
  name: "text",
  description,
  type: ApplicationCommandOptionType.String,
  required: true
})

export const commands: ReadonlyArray<Command> = [
  {
    name: "ask",
    description: "Open a thread with a question",
    options: [text("The question")],
    right: "ask",
    place: "channel"
  },
  {
    name: "queue",
    description: "Ask when the running work has ended",
    options: [text("The question")],
    right: "ask",
    place: "thread"
  },
  { name: "stop", description: "Stop the running work", right: "ask", place: "thread" },
  { name: "status", description: "Show what runs, what waits, and what went wrong", right: "ask", place: "both" },
  {
    name: "model",
    description: "Show the model, or use another one",
    options: [{ name: "model", description: "provider/model", type: ApplicationCommandOptionType.String }],
    right: "administer",
    place: "thread"
  },
  {
    name: "budget",
    description: "Show or set what this session may spend",
    options: [
      { name: "cost", description: "US dollars", type: ApplicationCommandOptionType.Number, min_value: 0 },
      { name: "tokens", description: "Tokens", type: ApplicationCommandOptionType.Integer, min_value: 0 }
    ],
    right: "administer",
    place: "thread"
  },
  { name: "summary", description: "Show what this session has done", right: "ask", place: "thread" },
  { name: "fork", description: "Go on in a new thread from here", right: "ask", place: "thread" }
]

/** The commands for Discord. */
export const registered = commands.map(({ description, name, options = [] }) => ({
  name,
  description,
  options,
  type: 1,
  contexts: [InteractionContextType.Guild]
}))
