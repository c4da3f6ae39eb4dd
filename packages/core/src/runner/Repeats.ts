/**
 * Detects repeated calls with the same result: from the third in a row on, the result carries a reminder for the model.
 * Counts over the answers since the last prompt, so that the log alone decides. Pure except for the counter.
 * Spec: EX-T15.
 */
import { Predicate } from "effect"
import type { Message, ToolPart } from "@daybook/log/domain/Message"
import type { ToolContent } from "@daybook/log/domain/Values"
import type { ToolOutput } from "../domain/ToolOutput.ts"
import { repeated } from "../request/Reminders.ts"
import type { Settled } from "../tool/ToolRegistry.ts"
import { referenceOf } from "../workspace/ToolOutputStore.ts"

/** Repeats in a row, from which on the result carries a reminder. */
const remindFrom = 3

const mark = "\n<reminder>\nThis call gave the same result"

/** JSON with sorted keys: models do not keep a stable key order. */
const stable = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) =>
    Predicate.isRecord(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner
  )

/** The result text without the reminder. */
const plain = (text: string): string => {
  const at = text.indexOf(mark)
  return at < 0 ? text : text.slice(0, at)
}

const keyOf = (name: string, input: unknown, failed: boolean, result: string): string =>
  stable([name, Predicate.isRecord(input) ? input : { input }, failed, plain(result)])

/** The text of a result, without the names of spill files: each call has its own. */
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

/** Settled local calls since the last prompt, newest first. */
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
  /** Returns the result to record: with a reminder when it repeated often enough. */
  readonly note: (name: string, input: unknown, settled: Settled) => Settled
}

/** Starts the count from the shown messages. */
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
