/** Says in words where the history of a session goes on, for people: they know prompts and answers, not ids. Spec: CL-830. */
import { Effect } from "effect"
import { Sessions } from "@daybook/core/session/Sessions"
import type { MessageID, SessionID } from "@daybook/log/domain/Identifiers"
import type { Message } from "@daybook/log/domain/Message"
import { EventLog } from "@daybook/log/log/EventLog"
import { oneLine } from "../render/Plain.ts"

/** How far back from the end of the log the messages are looked for, in events. A page of messages holds them. */
const distances = [100, 1_000]

const most = 500

/** The last messages of the history, from further and further back until they are enough. The store pages forwards. */
export const lastMessages = Effect.fnUntraced(function* (
  sessionID: SessionID,
  enough: (messages: ReadonlyArray<Message>) => boolean
) {
  const sessions = yield* Sessions
  const head = yield* (yield* EventLog).latest(sessionID)
  let found: ReadonlyArray<Message> = []
  for (const distance of distances) {
    const cursor = distance >= head ? undefined : head - distance
    found = (yield* sessions.messages({ sessionID, limit: most, cursor })).items
    if (cursor === undefined || enough(found)) return found
  }
  return found
})

/** The text of an answer, in one line. */
export const answerText = (message: Message, length: number): string =>
  message.type === "assistant"
    ? oneLine(message.content.flatMap((part) => (part.type === "text" ? [part.text ?? ""] : [])).join(" "), length)
    : ""

const quoted = (text: string): string => `"${oneLine(text, 60)}"`

/** Names a place of the history by its prompt and the answer so far. Pure. */
export const placeText = (prompt: Message | undefined, last: Message | undefined): string => {
  const asked = prompt?.type === "user" ? quoted(prompt.text) : undefined
  if (last === undefined) return "before its first prompt"
  if (last.type === "user") return `after ${quoted(last.text)}`
  const answer = answerText(last, 200)
  if (asked === undefined) return answer === "" ? "after an earlier message" : `after ${quoted(answer)}`
  return answer === "" ? `after a part of the answer to ${asked}` : `after ${quoted(answer)}, the answer to ${asked}`
}

/** Where the history of a session goes on, if it goes on after this message. */
export const placeOf = Effect.fnUntraced(function* (sessionID: SessionID, leafID: MessageID | undefined) {
  if (leafID === undefined) return placeText(undefined, undefined)
  const last = yield* (yield* Sessions).message(sessionID, leafID)
  const before = (messages: ReadonlyArray<Message>) =>
    messages.slice(0, messages.findIndex(({ id }) => id === leafID) + 1).findLast(({ type }) => type === "user")
  const messages = yield* lastMessages(sessionID, (found) => before(found) !== undefined)
  return placeText(before(messages), last)
})
