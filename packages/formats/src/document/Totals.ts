/** Adds up what a document says at its end: prompts, answers, cost and tokens. Pure. Spec: FM-173. */
import type { Message } from "@daybook/log/domain/Message"
import { oneLine } from "./Escape.ts"

export interface Totals {
  /** The prompts in order: the message's id and the first words. */
  readonly prompts: ReadonlyArray<{ readonly id: string; readonly words: string }>
  readonly answers: number
  readonly calls: number
  /** US dollars. */
  readonly cost: number
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
  /** A part of the usage is estimated. */
  readonly estimated: boolean
}

const titleCharacters = 100

/** Adds up messages. The list of prompts grows in place, so that long sessions stay linear. */
export const make = () => {
  const prompts: Array<Totals["prompts"][number]> = []
  let sum: Omit<Totals, "prompts"> = {
    answers: 0,
    calls: 0,
    cost: 0,
    input: 0,
    output: 0,
    cacheRead: 0,
    cacheWrite: 0,
    estimated: false
  }
  return {
    add: (message: Message): void => {
      if (message.type === "user") prompts.push({ id: message.id, words: oneLine(message.text, titleCharacters) })
      if (message.type !== "assistant") return
      const { tokens } = message
      sum = {
        answers: sum.answers + 1,
        calls: sum.calls + message.content.filter(({ type }) => type === "tool").length,
        cost: sum.cost + (message.cost ?? 0),
        input: sum.input + (tokens?.input ?? 0),
        output: sum.output + (tokens?.output ?? 0),
        cacheRead: sum.cacheRead + (tokens?.cache.read ?? 0),
        cacheWrite: sum.cacheWrite + (tokens?.cache.write ?? 0),
        estimated: sum.estimated || message.estimated === true
      }
    },
    value: (): Totals => ({ ...sum, prompts })
  }
}

const count = (number: number, word: string) => `${number.toLocaleString("en-US")} ${word}${number === 1 ? "" : "s"}`

/** The totals in sentences. */
export const sentences = (totals: Totals): ReadonlyArray<string> => [
  `${count(totals.prompts.length, "prompt")}, ${count(totals.answers, "answer")}, ${count(totals.calls, "tool call")}.`,
  `${count(totals.input, "input token")} (${count(totals.cacheRead, "token")} read from and ` +
    `${count(totals.cacheWrite, "token")} written to the cache), ${count(totals.output, "output token")}.`,
  `Cost: $${totals.cost.toFixed(4)}${totals.estimated ? ", partly estimated" : ""}.`
]
