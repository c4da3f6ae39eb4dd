/** Makes the events of one record of a foreign log, without its place in the tree. Pure. Spec: IM-2..IM-9. */
import { createHash } from "node:crypto"
import { ActivityID, MessageID, PartID, SessionID } from "@daybook/log/domain/Identifiers"
import { fitting } from "@daybook/log/domain/LongText"
import { defaultAgent, type Tokens, type ToolContent } from "@daybook/log/domain/Values"
import { type Draft, draft } from "@daybook/log/events/SessionEvents"
import {
  type AnswerPart,
  type Content,
  type Dialect,
  type Item,
  type Spending,
  textOf
} from "../conversation/Conversation.ts"
import { nothing } from "../reading/Tolerant.ts"

// Derives ids from a foreign log, so that the same log always becomes the same session.

const hashed = (parts: ReadonlyArray<string>): string =>
  createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 26)

const unchecked = { disableValidation: true } as const

/** The entry logs of one family share their ids. */
const family = (dialect: Dialect): string => (dialect === "xcsh" || dialect === "omp" ? "pi" : dialect)

/** The session of a log; `copy` tells sessions apart that were imported from one log as new ones. */
export const sessionIDOf = (dialect: Dialect, id: string, copy?: string): SessionID =>
  SessionID.make(`ses_${hashed([family(dialect), id, ...(copy === undefined ? [] : [copy])])}`, unchecked)

export const messageIDOf = (sessionID: SessionID, key: string): MessageID =>
  MessageID.make(`msg_${hashed([sessionID, key])}`, unchecked)

const suffix = (messageID: MessageID): string => messageID.slice("msg_".length)

const partIDOf = (messageID: MessageID, index: number): PartID =>
  PartID.make(`prt_${suffix(messageID)}.${index}`, unchecked)

export const activityIDOf = (messageID: MessageID): ActivityID => ActivityID.make(`act_${suffix(messageID)}`, unchecked)

const shellCallOf = (messageID: MessageID): string => `call_${suffix(messageID)}`

type Of<Tag extends Item["_tag"]> = Extract<Item, { readonly _tag: Tag }>

/** A call whose result may follow. */
export interface Call {
  readonly assistantMessageID: MessageID
  readonly callID: string
  readonly tool: string
}

const dataUri = (mime: string, data: string): string => `data:${mime};base64,${data}`

/** The event form of tokens: input includes what a cache held. */
export const tokensOf = ({ cacheRead, cacheWrite, input, output, reasoning }: Spending): Tokens => ({
  input: input + cacheRead + cacheWrite,
  output,
  reasoning,
  cache: { read: cacheRead, write: cacheWrite }
})

/** The admission and the promotion of a prompt; an activity starts between them. */
export const prompt = (
  messageID: MessageID,
  { content, time }: Pick<Of<"User">, "content" | "time">
): readonly [admitted: Draft, promoted: Draft] => {
  const files = content.flatMap((part) =>
    part.type === "media" ? [{ uri: dataUri(part.mime, part.data), mime: part.mime }] : []
  )
  const asked = { text: textOf(content), ...(files.length === 0 ? {} : { files }) }
  return [
    draft("session.next.prompt.admitted", { messageID, prompt: asked, delivery: "steer" }),
    draft("session.next.prompt.promoted", { messageID, prompt: asked, timeCreated: time })
  ]
}

/** A long text in parts, as the runtime stores it (EX-R11). */
const pieces = (text: string): ReadonlyArray<string> => {
  const all: Array<string> = []
  let rest = text
  do {
    const piece = fitting(0, rest)
    all.push(piece)
    rest = rest.slice(piece.length)
  } while (rest !== "")
  return all
}

/** A failed answer says why; the types are those of the runtime. */
const errorOf = ({ aborted, error }: Of<"Answer">) =>
  aborted === true
    ? { type: "aborted", message: error ?? "the answer was interrupted" }
    : error === undefined
      ? undefined
      : { type: "provider", message: error }

/** The events of an answer, and its calls. */
export const answer = (
  messageID: MessageID,
  item: Of<"Answer">
): { readonly drafts: ReadonlyArray<Draft>; readonly calls: ReadonlyMap<string, Call> } => {
  const assistantMessageID = messageID
  const { model, parts, provider, spent = nothing } = item
  const drafts: Array<Draft> = [
    draft("session.next.step.started", {
      assistantMessageID,
      agent: defaultAgent,
      model: { providerID: provider, id: model }
    })
  ]
  const calls = new Map<string, Call>()
  let index = 0
  const add = (part: AnswerPart): void => {
    if (part.type === "text") {
      for (const text of pieces(part.text)) {
        const textID = partIDOf(messageID, ++index)
        drafts.push(draft("session.next.text.started", { assistantMessageID, textID }))
        drafts.push(draft("session.next.text.ended", { assistantMessageID, textID, text }))
      }
      return
    }
    if (part.type === "reasoning") {
      const reasoningID = partIDOf(messageID, ++index)
      drafts.push(draft("session.next.reasoning.started", { assistantMessageID, reasoningID }))
      drafts.push(draft("session.next.reasoning.ended", { assistantMessageID, reasoningID, text: part.text }))
      return
    }
    // A call id is unique within its message.
    const callID = calls.has(part.id) ? `${part.id}#${++index}` : part.id
    calls.set(part.id, { assistantMessageID, callID, tool: part.name })
    drafts.push(draft("session.next.tool.input.started", { assistantMessageID, callID, name: part.name }))
    drafts.push(
      draft("session.next.tool.called", {
        assistantMessageID,
        callID,
        tool: part.name,
        input: part.input,
        provider: { executed: false }
      })
    )
  }
  parts.forEach(add)
  const error = errorOf(item)
  const used = { cost: spent.cost, tokens: tokensOf(spent) }
  drafts.push(
    error === undefined
      ? draft("session.next.step.ended", { assistantMessageID, finish: finishOf(item, calls.size > 0), ...used })
      : draft("session.next.step.failed", { assistantMessageID, error, ...(item.spent === undefined ? {} : used) })
  )
  return { drafts, calls }
}

/** The runtime's word for why a model stopped. */
const finishes: ReadonlyMap<string, string> = new Map([
  ["stop", "stop"],
  ["end_turn", "stop"],
  ["stop_sequence", "stop"],
  ["toolUse", "tool-calls"],
  ["tool_use", "tool-calls"],
  ["length", "length"],
  ["max_tokens", "length"],
  ["refusal", "content-filter"]
])

const finishOf = ({ finish }: Of<"Answer">, called: boolean): string =>
  finish === undefined ? (called ? "tool-calls" : "stop") : (finishes.get(finish) ?? "other")

const contentPart = (part: Content[number]): ToolContent =>
  part.type === "text" ? part : { type: "file", uri: dataUri(part.mime, part.data), mime: part.mime }

const toolContent = (content: Content): ReadonlyArray<ToolContent> =>
  content.length === 0 ? [{ type: "text", text: "" }] : content.map(contentPart)

export const result = ({ assistantMessageID, callID }: Call, { content, failed }: Of<"Result">): Draft =>
  failed
    ? draft("session.next.tool.failed", {
        assistantMessageID,
        callID,
        error: { type: "tool.failed", message: textOf(content) },
        provider: { executed: false }
      })
    : draft("session.next.tool.success", {
        assistantMessageID,
        callID,
        structured: {},
        content: toolContent(content),
        provider: { executed: false }
      })

export const charged = (spent: Spending | undefined) =>
  spent === undefined ? {} : { cost: spent.cost, tokens: tokensOf(spent) }

/** An edit of the context. A call that stays keeps its result. */
export const edit = (
  target: { readonly messageID: MessageID; readonly callID?: string },
  { calls, content }: Of<"Edit">
): Draft =>
  draft("session.next.context.edited", {
    ...target,
    ...(content === undefined ? {} : { content: content.map(contentPart) }),
    ...(calls === undefined ? {} : { calls: calls.map(({ id: callID, input }) => ({ callID, input })) })
  })

/** What the output says about how the command ended. */
const ending = ({ cancelled, exitCode }: Of<"Command">): string =>
  cancelled ? "\n[cancelled]" : exitCode === undefined || exitCode === 0 ? "" : `\n[exit code ${exitCode}]`

export const command = (messageID: MessageID, item: Of<"Command">): ReadonlyArray<Draft> => {
  const callID = shellCallOf(messageID)
  return [
    draft("session.next.shell.started", { messageID, callID, command: item.command }),
    draft("session.next.shell.ended", { callID, output: `${item.output}${ending(item)}` })
  ]
}

/** A text that neither the person nor the model wrote. With media it is a prompt, because only prompts hold files. */
export const note = (messageID: MessageID, item: Of<"Note">): ReadonlyArray<Draft> =>
  item.content.some(({ type }) => type === "media")
    ? prompt(messageID, item)
    : [draft("session.next.synthetic", { messageID, text: textOf(item.content) })]

/** The first event of the session. */
export const created = (
  head: { readonly cwd?: string | undefined; readonly title?: string | undefined },
  directory: string
): Draft =>
  draft("session.created", {
    location: { directory: head.cwd ?? directory },
    ...(head.title === undefined ? {} : { title: head.title })
  })
