/**
 * Calls that are made again and again with the same result: from the third in a row on, the result carries a reminder for
 * the model. Counted over the answers since the last prompt, so that the log alone decides. Pure but for the count.
 * Spec: EX-T15.
 */
import { Predicate } from "effect"
import { repeated } from "../request/Reminders.ts"
import type { Message, ToolPart } from "../session/Message.ts"
import type { ToolContent } from "../session/Schemas.ts"
import type { ToolOutput } from "../tool/ToolDefinition.ts"
import { referenceOf } from "../tool/ToolOutputStore.ts"
import type { Settled } from "../tool/ToolRegistry.ts"

/** The same call with the same result so many times in a row is worth a word. */
const remindFrom = 3

const mark = "\n<reminder>\nThis call gave the same result"

/** JSON whose keys are in order: models do not keep theirs. */
const stable = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) =>
    Predicate.isRecord(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner
  )

/** What the model reads, without what was added here. */
const plain = (text: string): string => {
  const at = text.indexOf(mark)
  return at < 0 ? text : text.slice(0, at)
}

const keyOf = (name: string, input: unknown, failed: boolean, result: string): string =>
  stable([name, Predicate.isRecord(input) ? input : { input }, failed, plain(result)])

/** What a result says, without the names of files where the whole of it is kept: each call has its own. */
const contentText = ({ content, outputPaths = [], structured }: ToolOutput): string => {
  if (content.length === 0) return JSON.stringify(structured)
  const names = outputPaths.flatMap((path) => [path, referenceOf(path)])
  return content
    .map((part) =>
      part.type === "text" ? names.reduce((text, name) => text.replaceAll(name, ""), part.text) : part.uri
    )
    .join("\n")
}

const keyOfPart = ({ content = [], error, input, name, outputPaths = [], state, structured = {} }: ToolPart): string =>
  keyOf(name, input, state === "error", error?.message ?? contentText({ content, outputPaths, structured }))

const keyOfSettled = (name: string, input: unknown, settled: Settled): string =>
  settled._tag === "Failure"
    ? keyOf(name, input, true, settled.error.message)
    : keyOf(name, input, false, contentText(settled.output))

/** Settled local calls since the last prompt, the newest first. */
function* newestFirst(messages: ReadonlyArray<Message>): Generator<ToolPart> {
  for (const message of messages.toReversed()) {
    if (message.type === "user") return
    if (message.type !== "assistant") continue
    for (const part of message.content.toReversed()) {
      if (part.type === "tool" && part.provider?.executed !== true && part.completedAt !== undefined) yield part
    }
  }
}

const withReminder = (settled: Settled, count: number): Settled => {
  const words = `\n${repeated(count)}`
  if (settled._tag === "Failure") {
    return { ...settled, error: { ...settled.error, message: `${settled.error.message}${words}` } }
  }
  const { content, structured } = settled.output
  const shown: ReadonlyArray<ToolContent> =
    content.length === 0 ? [{ type: "text", text: JSON.stringify(structured) }] : content
  const last = shown.at(-1)
  return {
    ...settled,
    output: {
      ...settled.output,
      content:
        last?.type === "text"
          ? [...shown.slice(0, -1), { type: "text", text: `${last.text}${words}` }]
          : [...shown, { type: "text", text: repeated(count) }]
    }
  }
}

export interface Repeats {
  /** The result as it is recorded: with a reminder, if it came so often. */
  readonly note: (name: string, input: unknown, settled: Settled) => Settled
}

/** Counts on from what the model is shown. */
export const make = (messages: ReadonlyArray<Message>): Repeats => {
  let key: string | undefined
  let count = 0
  for (const part of newestFirst(messages)) {
    const own = keyOfPart(part)
    if (key !== undefined && own !== key) break
    key = own
    count += 1
  }
  return {
    note: (name, input, settled) => {
      const own = keyOfSettled(name, input, settled)
      count = own === key ? count + 1 : 1
      key = own
      return count < remindFrom ? settled : withReminder(settled, count)
    }
  }
}
