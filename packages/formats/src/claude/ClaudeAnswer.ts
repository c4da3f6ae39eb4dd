/** Assembles one answer from the lines of an API message, which has one block on each line. Spec: FM-133, FM-140. */
import type { JsonRecord } from "@daybook/log/domain/Json"
import type { AnswerPart, Item, Place, Spent } from "../conversation/Conversation.ts"
import { isNothing, plus } from "../reading/Spending.ts"
import type { ClaudeRecord } from "./ClaudeRecord.ts"

/** An answer that may grow. */
export interface Draft {
  readonly base: {
    readonly key: string
    readonly parent: string | null
    readonly time: number
    readonly place: Place
    readonly record: JsonRecord
  }
  readonly messageID: string | undefined
  readonly model: string
  readonly parts: Array<AnswerPart>
  /** Where a part is, by what makes it the same as a part of another line. */
  readonly known: Map<string, number>
  /** The parts of the same message that an earlier answer has. */
  readonly earlier: ReadonlySet<string>
  readonly error: string | undefined
  finish: string | undefined
  aborted: boolean
  spent: Spent
}

/** Claude Code wrote the message itself: an error of the API, or a filler. No tokens were spent. */
export const isSynthetic = ({ isApiErrorMessage, message }: ClaudeRecord): boolean =>
  isApiErrorMessage === true || message?.model === "<synthetic>"

const textOf = (parts: ReadonlyArray<AnswerPart>): string =>
  parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n")

const identityOf = (part: AnswerPart): string =>
  part.type === "call" ? `call ${part.id}` : `${part.type} ${part.text}`

/** Adds parts; one that is there already replaces that one. */
const addParts = ({ earlier, known, parts }: Draft, added: ReadonlyArray<AnswerPart>): void => {
  for (const part of added) {
    const identity = identityOf(part)
    if (earlier.has(identity)) continue
    const at = known.get(identity) ?? parts.length
    known.set(identity, at)
    parts[at] = part
  }
}

/** An answer with the blocks of a line. `before` is an answer of the same message that has ended. */
export const draftOf = (
  base: Draft["base"],
  fields: ClaudeRecord,
  parts: ReadonlyArray<AnswerPart>,
  spent: Spent,
  before?: Draft
): Draft => {
  const failed = fields.isApiErrorMessage === true
  const draft: Draft = {
    base,
    messageID: fields.message?.id,
    model: fields.message?.model ?? "unknown",
    parts: [],
    known: new Map(),
    earlier: new Set(before === undefined ? [] : [...before.earlier, ...before.known.keys()]),
    error: failed ? textOf(parts) || "The request failed." : undefined,
    finish: fields.message?.stop_reason,
    aborted: false,
    spent
  }
  if (!failed) addParts(draft, parts)
  return draft
}

/** Whether the answer says and spends nothing. */
export const isEmpty = ({ error, parts, spent }: Draft): boolean =>
  parts.length === 0 && error === undefined && isNothing(spent)

/** Adds the blocks of a further line. */
export const grow = (
  draft: Draft,
  parts: ReadonlyArray<AnswerPart>,
  finish: string | undefined,
  spent: Spent
): void => {
  addParts(draft, parts)
  draft.finish = finish ?? draft.finish
  draft.spent = plus(draft.spent, spent)
}

export const complete = ({ aborted, base, error, finish, model, parts, spent }: Draft): Item => ({
  _tag: "Answer",
  ...base,
  provider: "anthropic",
  model,
  parts,
  ...(finish === undefined ? {} : { finish }),
  ...(error === undefined ? {} : { error }),
  ...(aborted ? { aborted: true as const } : {}),
  ...(isNothing(spent) ? {} : { spent })
})
