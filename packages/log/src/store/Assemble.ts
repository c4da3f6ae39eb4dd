/**
 * Builds sessions, inputs and messages from projected rows and the events that the rows refer to. Pure; every result
 * passes its schema. Spec: PJ-5, PJ-15.
 */
import { Array as Arr, Either, ParseResult, type Schema } from "effect"
import { parseAddressKey } from "../domain/Address.ts"
import { joined } from "../domain/LongText.ts"
import { Input, Message, samePart, Session, type Withheld } from "../domain/Message.ts"
import type { Tokens } from "../domain/Values.ts"
import type { SessionEvent } from "../events/SessionEvents.ts"
import { plain } from "../projection/Change.ts"
import type { InputRow, MessageRow, PartRow, SessionRow } from "../projection/Tables.ts"
import { compile } from "../support/Conforms.ts"
import type { EventsBySeq } from "./Content.ts"
import { MessageUnreadable } from "./StoreError.ts"
import { messageOf } from "../support/SystemError.ts"

/** Drops absent fields: schemas distinguish absent fields from undefined ones. */
const present = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null))

const parse = (text: string | null): unknown => (text === null ? undefined : JSON.parse(text))

const record = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? { ...value } : {}

/** An event that a row refers to. Throws if it is absent or unreadable; `attempt` catches that. */
const eventAt = (events: EventsBySeq, seq: number): SessionEvent => {
  const found = events.get(seq)
  if (found === undefined) throw new Error(`event ${seq}, which holds its content, is missing`)
  return Either.getOrThrowWith(found, (error) => error)
}

const dataOf = (event: SessionEvent | undefined): Record<string, unknown> => record(event?.data)

const dataAt = (events: EventsBySeq, seq: number | null): Record<string, unknown> =>
  seq === null ? {} : dataOf(eventAt(events, seq))

/** Decodes stored JSON. Text that is not JSON fails like JSON of the wrong shape. */
const attempt = <A>(decode: (value: unknown) => Either.Either<A, ParseResult.ParseIssue>, build: () => unknown) =>
  Either.try({ try: build, catch: messageOf }).pipe(
    Either.flatMap((value) => Either.mapLeft(decode(value), ParseResult.TreeFormatter.formatIssueSync))
  )

/** Decodes what was stored. What conforms to the schema has its type; the decoder reports what does not. */
const decoderOf = <A, I>(schema: Schema.Schema<A, I>) => {
  const conforms = compile(schema.ast)
  const decode = ParseResult.decodeUnknownEither(schema)
  return (value: unknown): Either.Either<A, ParseResult.ParseIssue> =>
    conforms(value) ? Either.right(value as A) : decode(value)
}

const decodeSession = decoderOf(Session)
const decodeInput = decoderOf(Input)
const decodeMessage = decoderOf(Message)

export const tokensOf = (row: SessionRow): Tokens => ({
  input: row.tokens_input,
  output: row.tokens_output,
  reasoning: row.tokens_reasoning,
  cache: { read: row.tokens_cache_read, write: row.tokens_cache_write }
})

const toSession = (row: SessionRow): Either.Either<Session, string> =>
  attempt(decodeSession, () =>
    present({
      id: row.id,
      parentID: row.parent_id,
      location: parse(row.location),
      title: row.title,
      provisional: row.provisional === 1 ? true : undefined,
      agent: row.agent,
      model: parse(row.model),
      cost: row.cost,
      tokens: tokensOf(row),
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
      path: parse(row.path),
      forked: parse(row.forked),
      origin: parse(row.origin),
      instructions: row.instructions,
      address: row.address === null ? undefined : parseAddressKey(row.address),
      root: row.root,
      imported: parse(row.imported),
      createdAt: row.time_created,
      updatedAt: row.time_updated
    })
  )

const toInput = (row: InputRow, events: EventsBySeq): Either.Either<Input, string> =>
  attempt(decodeInput, () => {
    const admission = eventAt(events, row.admitted_seq)
    return present({
      id: row.id,
      sessionID: row.session_id,
      prompt: dataOf(admission)["prompt"],
      delivery: row.delivery,
      admittedSeq: row.admitted_seq,
      promotedSeq: row.withdrawn_seq === null ? row.promoted_seq : undefined,
      withdrawnSeq: row.withdrawn_seq,
      createdAt: admission.created
    })
  })

const toolPart = (row: PartRow, events: EventsBySeq): Record<string, unknown> => {
  const [called, settled] = [row.called, row.settled].map((seq) => (seq === null ? undefined : eventAt(events, seq)))
  const [call, result, progress] = [dataOf(called), dataOf(settled), dataAt(events, row.progress)]
  const [callSide, resultSide] = [record(call["provider"]), record(result["provider"])]
  const raw = dataAt(events, row.raw)["text"]
  return present({
    type: "tool",
    id: row.key,
    name: row.name,
    state: row.status,
    raw: typeof raw === "string" ? plain(raw) : undefined,
    input: call["input"],
    provider:
      called === undefined && settled === undefined
        ? undefined
        : present({
            executed: callSide["executed"] ?? resultSide["executed"],
            metadata: callSide["metadata"],
            resultMetadata: resultSide["metadata"]
          }),
    structured: result["structured"] ?? progress["structured"],
    content: result["content"] ?? progress["content"],
    outputPaths: result["outputPaths"],
    error: result["error"],
    result: result["result"],
    createdAt: row.time_created,
    ranAt: called?.created,
    completedAt: settled?.created
  })
}

const toPart = (row: PartRow, events: EventsBySeq): Record<string, unknown> => {
  if (row.kind === "tool") return toolPart(row, events)
  const settled = dataAt(events, row.settled)
  return present({
    type: row.kind,
    id: row.key,
    text: settled["text"],
    providerMetadata: settled["providerMetadata"] ?? dataAt(events, row.opened)["providerMetadata"]
  })
}

const isEdit = ({ kind }: PartRow): boolean => kind === "edit"

const editEvents = (parts: ReadonlyArray<PartRow>, events: EventsBySeq): ReadonlyArray<SessionEvent> =>
  parts.flatMap((part) => (isEdit(part) && part.settled !== null ? [eventAt(events, part.settled)] : []))

/** The last edit of the message, and of each result. */
const editsOf = (parts: ReadonlyArray<PartRow>, events: EventsBySeq): ReadonlyArray<unknown> | undefined => {
  const last = new Map<unknown, unknown>()
  for (const event of editEvents(parts, events)) {
    if (event.type !== "session.next.context.edited") continue
    const { messageID: _, ...edit } = event.data
    last.set(edit.callID, edit)
  }
  return last.size === 0 ? undefined : [...last.values()]
}

/** The parts that models are not shown: the last event of each part and model holds, without a reason it is shown. */
const withheldOf = (parts: ReadonlyArray<PartRow>, events: EventsBySeq): ReadonlyArray<Withheld> | undefined => {
  let withheld: ReadonlyArray<Withheld> = []
  for (const event of editEvents(parts, events)) {
    if (event.type !== "session.next.part.withheld") continue
    const { messageID: _, ...part } = event.data
    const others = withheld.filter((other) => !samePart(other, part))
    withheld = part.reason === undefined ? others : [...others, part]
  }
  return withheld.length === 0 ? undefined : withheld
}

const textOf = ({ text, type }: Record<string, unknown>): string | undefined =>
  type === "text" && typeof text === "string" ? text : undefined

/** The fields of a message that its events hold. */
const contentOf = (
  row: MessageRow,
  parts: ReadonlyArray<PartRow>,
  input: InputRow | undefined,
  events: EventsBySeq
): Record<string, unknown> => {
  switch (row.type) {
    case "user":
      return record(input === undefined ? undefined : dataAt(events, input.admitted_seq)["prompt"])
    case "assistant": {
      const settled = row.settled === null ? undefined : eventAt(events, row.settled)
      return {
        ...(settled?.type === "session.next.step.failed" ? { finish: "error" } : {}),
        ...dataAt(events, row.seq),
        ...dataOf(settled),
        content: joined(
          parts.filter((part) => !isEdit(part)).map((part) => toPart(part, events)),
          textOf,
          (part, text) => ({ ...part, text })
        ),
        completedAt: settled?.created
      }
    }
    case "shell": {
      const ended = parts[0]?.settled ?? null
      const completedAt = ended === null ? undefined : eventAt(events, ended).created
      return { ...dataAt(events, row.seq), ...dataAt(events, ended), completedAt }
    }
    case "compaction":
    case "branch-summary": {
      const { text: summary, ...data } = dataAt(events, row.seq)
      return { ...data, summary }
    }
    default:
      return dataAt(events, row.seq)
  }
}

/** Builds a message with its parts in order; a user message takes its prompt from the admission of its input. */
const toMessage = (row: MessageRow, parts: ReadonlyArray<PartRow>, input: InputRow | undefined, events: EventsBySeq) =>
  attempt(decodeMessage, () => {
    // First for the order of fields, which is the schema's, and last, because they win over what the events hold.
    const own = { type: row.type, id: row.id, seq: row.seq, createdAt: row.time_created }
    return present({
      ...own,
      edits: editsOf(parts, events),
      withheld: withheldOf(parts, events),
      ...contentOf(row, parts, input, events),
      ...own
    })
  })

/** The message id that a part belongs to: an assistant message's id, or a shell's call id. */
export const partOwner = (row: MessageRow): string => row.call_id ?? row.id

const known = (seqs: ReadonlyArray<number | null>) => seqs.filter((seq) => seq !== null)

/** The events that hold the content of these rows. */
export const eventsOf = ({ inputs, messages, parts }: Omit<MessageRows, "events">): ReadonlyArray<number> => [
  ...messages.flatMap(({ seq, settled, type }) => (type === "user" ? [] : known([seq, settled]))),
  ...parts.flatMap(({ called, opened, progress, raw, settled }) => known([opened, raw, called, progress, settled])),
  ...inputs.map(({ admitted_seq }) => admitted_seq)
]

const readable = <A>(sessionID: string, messageID: string, decoded: Either.Either<A, string>) =>
  Either.mapLeft(decoded, (details) => new MessageUnreadable({ sessionID, messageID, details }))

export const sessionOf = (row: SessionRow) => readable(row.id, "", toSession(row))

export const sessionsOf = (rows: ReadonlyArray<SessionRow>) => Either.all(rows.map(sessionOf))

export const inputOf = (row: InputRow, events: EventsBySeq) => readable(row.session_id, row.id, toInput(row, events))

export interface MessageRows {
  readonly messages: ReadonlyArray<MessageRow>
  readonly parts: ReadonlyArray<PartRow>
  readonly inputs: ReadonlyArray<InputRow>
  readonly events: EventsBySeq
}

/** Builds one message from its row, its parts, its input and their events. */
export const assembleOne = (
  sessionID: string,
  row: MessageRow,
  parts: ReadonlyArray<PartRow>,
  input: InputRow | undefined,
  events: EventsBySeq
): Either.Either<Message, MessageUnreadable> => readable(sessionID, row.id, toMessage(row, parts, input, events))

/** Builds messages from their rows, parts, inputs and events. */
export const assemble = (sessionID: string, { events, inputs, messages, parts }: MessageRows) => {
  const byMessage = Arr.groupBy(parts, (part) => part.message_id)
  const byID = new Map(inputs.map((input) => [input.id, input]))
  return Either.all(
    messages.map((row) => assembleOne(sessionID, row, byMessage[partOwner(row)] ?? [], byID.get(row.id), events))
  )
}
