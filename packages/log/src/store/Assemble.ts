/** Builds sessions, inputs and messages from projected rows. Pure; every row passes its schema. Spec: PJ-5. */
import { Array as Arr, Either, ParseResult } from "effect"
import { parseAddressKey } from "../domain/Address.ts"
import { joined } from "../domain/LongText.ts"
import { Input, Message, Session } from "../domain/Message.ts"
import type { InputRow, MessageRow, PartRow, SessionRow } from "../projection/Tables.ts"
import { MessageUnreadable } from "./StoreError.ts"

/** Drops absent fields: schemas distinguish absent fields from undefined ones. */
const present = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null))

const parse = (text: string | null): unknown => (text === null ? undefined : JSON.parse(text))

const record = (text: string | null): Record<string, unknown> => {
  const value = parse(text)
  return typeof value === "object" && value !== null ? { ...value } : {}
}

/** Decodes stored JSON. Text that is not JSON fails like JSON of the wrong shape. */
const attempt = <A>(
  decode: (value: unknown) => Either.Either<A, ParseResult.ParseIssue>,
  build: () => unknown
): Either.Either<A, string> =>
  Either.try({ try: build, catch: (cause) => (cause instanceof Error ? cause.message : String(cause)) }).pipe(
    Either.flatMap((value) => Either.mapLeft(decode(value), ParseResult.TreeFormatter.formatIssueSync))
  )

const decodeSession = ParseResult.decodeUnknownEither(Session)
const decodeInput = ParseResult.decodeUnknownEither(Input)
const decodeMessage = ParseResult.decodeUnknownEither(Message)

const toSession = (row: SessionRow): Either.Either<Session, string> =>
  attempt(decodeSession, () =>
    present({
      id: row.id,
      parentID: row.parent_id,
      location: parse(row.location),
      title: row.title,
      agent: row.agent,
      model: parse(row.model),
      cost: row.cost,
      tokens: {
        input: row.tokens_input,
        output: row.tokens_output,
        reasoning: row.tokens_reasoning,
        cache: { read: row.tokens_cache_read, write: row.tokens_cache_write }
      },
      activity:
        row.activity_id === null
          ? undefined
          : present({ id: row.activity_id, state: row.activity_state, error: parse(row.activity_error) }),
      compaction:
        row.compaction_running !== null
          ? present({ id: row.compaction_running, state: "running", next: row.compaction_requested })
          : row.compaction_requested !== null
            ? { id: row.compaction_requested, state: "requested" }
            : undefined,
      prunedSeq: row.pruned_seq,
      frame: row.frame,
      budget: parse(row.budget),
      address: row.address === null ? undefined : parseAddressKey(row.address),
      root: row.root,
      createdAt: row.time_created,
      updatedAt: row.time_updated
    })
  )

const toInput = (row: InputRow): Either.Either<Input, string> =>
  attempt(decodeInput, () =>
    present({
      id: row.id,
      sessionID: row.session_id,
      prompt: parse(row.prompt),
      delivery: row.delivery,
      admittedSeq: row.admitted_seq,
      promotedSeq: row.withdrawn_seq === null ? row.promoted_seq : undefined,
      withdrawnSeq: row.withdrawn_seq,
      createdAt: row.time_created
    })
  )

const toolPart = (row: PartRow): Record<string, unknown> => {
  const called = record(row.called)
  const settled = record(row.settled)
  const callSide = record(JSON.stringify(called["provider"] ?? {}))
  const resultSide = record(JSON.stringify(settled["provider"] ?? {}))
  const progress = record(row.progress)
  return present({
    type: "tool",
    id: row.key,
    name: row.name,
    state: row.status,
    raw: row.raw,
    input: called["input"],
    provider:
      row.called === null && row.settled === null
        ? undefined
        : present({
            executed: callSide["executed"] ?? resultSide["executed"],
            metadata: callSide["metadata"],
            resultMetadata: resultSide["metadata"]
          }),
    structured: settled["structured"] ?? progress["structured"],
    content: settled["content"] ?? progress["content"],
    outputPaths: settled["outputPaths"],
    error: settled["error"],
    result: settled["result"],
    createdAt: row.time_created,
    ranAt: row.time_ran,
    completedAt: row.time_settled
  })
}

const toPart = (row: PartRow): Record<string, unknown> => {
  if (row.kind === "tool") return toolPart(row)
  const settled = record(row.settled)
  return present({
    type: row.kind,
    id: row.key,
    text: settled["text"],
    providerMetadata: row.kind === "reasoning" ? (settled["providerMetadata"] ?? parse(row.opened)) : undefined
  })
}

const textOf = ({ text, type }: Record<string, unknown>): string | undefined =>
  type === "text" && typeof text === "string" ? text : undefined

/** Builds a message with its parts in order; a user message takes its prompt from its input row. */
const toMessage = (
  row: MessageRow,
  parts: ReadonlyArray<PartRow>,
  prompt: string | null
): Either.Either<Message, string> =>
  attempt(decodeMessage, () => {
    const base = { id: row.id, seq: row.seq, createdAt: row.time_created, type: row.type }
    switch (row.type) {
      case "user":
        return { ...base, ...record(prompt) }
      case "assistant":
        return present({
          ...base,
          ...record(row.data),
          ...record(row.settled),
          content: joined(parts.map(toPart), textOf, (part, text) => ({ ...part, text })),
          completedAt: row.time_settled
        })
      case "shell":
        return present({
          ...base,
          ...record(row.data),
          ...record(parts[0]?.settled ?? null),
          completedAt: parts[0]?.time_settled
        })
      default:
        return { ...base, ...record(row.data) }
    }
  })

/** The message id that a part belongs to: an assistant message's id, or a shell's call id. */
export const partOwner = (row: MessageRow): string => {
  if (row.type !== "shell") return row.id
  const callID = record(row.data)["callID"]
  return typeof callID === "string" ? callID : row.id
}

const readable = <A>(sessionID: string, messageID: string, decoded: Either.Either<A, string>) =>
  Either.mapLeft(decoded, (details) => new MessageUnreadable({ sessionID, messageID, details }))

/** The session of a row. */
export const sessionOf = (row: SessionRow): Either.Either<Session, MessageUnreadable> =>
  readable(row.id, "", toSession(row))

/** The sessions of rows. */
export const sessionsOf = (rows: ReadonlyArray<SessionRow>): Either.Either<ReadonlyArray<Session>, MessageUnreadable> =>
  Either.all(rows.map(sessionOf))

/** The input of a row. */
export const inputOf = (row: InputRow): Either.Either<Input, MessageUnreadable> =>
  readable(row.session_id, row.id, toInput(row))

/** Builds one message from its row, parts and prompt. */
export const assembleOne = (
  sessionID: string,
  row: MessageRow,
  parts: ReadonlyArray<PartRow>,
  prompt: string | null
): Either.Either<Message, MessageUnreadable> => readable(sessionID, row.id, toMessage(row, parts, prompt))

/** Rows of messages, with the rows of their parts and inputs. */
export interface MessageRows {
  readonly messages: ReadonlyArray<MessageRow>
  readonly parts: ReadonlyArray<PartRow>
  readonly inputs: ReadonlyArray<InputRow>
}

/** Builds messages from their rows, parts and prompts. */
export const assemble = (
  sessionID: string,
  { inputs, messages, parts }: MessageRows
): Either.Either<ReadonlyArray<Message>, MessageUnreadable> => {
  const byMessage = Arr.groupBy(parts, (part) => part.message_id)
  const prompts = new Map(inputs.map((input) => [input.id, input.prompt]))
  return Either.all(
    messages.map((row) => assembleOne(sessionID, row, byMessage[partOwner(row)] ?? [], prompts.get(row.id) ?? null))
  )
}
