/**
 * Generates random logs that a session could have. Payloads come from the event schemas' arbitraries; then ids are replaced so
 * that every event refers to something that exists and is open. Events that cannot fit are dropped.
 */
import { Arbitrary, FastCheck as fc } from "effect"
import type { NonEmptyReadonlyArray } from "effect/Array"
import { MessageID } from "../../packages/log/src/domain/Identifiers.ts"
import { type Draft, durableDefinitions, type DurableType } from "../../packages/log/src/events/SessionEvents.ts"

const arbitraries = new Map<DurableType, fc.Arbitrary<Draft>>(
  durableDefinitions.map((definition) => [
    definition.type,
    // A type with a payload that fits its schema is a draft; mapping over the tuple of definitions loses that.
    Arbitrary.make(definition.data as never).map((data) => ({ type: definition.type, data }) as Draft)
  ])
)

/** A draft of the given type, with arbitrary ids. */
export const draftOf = (type: DurableType): fc.Arbitrary<Draft> => arbitraries.get(type) ?? fc.oneof()

/** A draft of any type, with arbitrary ids. */
const anyDraft: fc.Arbitrary<Draft> = fc.oneof(...arbitraries.values())

type Part = { readonly message: MessageID; readonly key: string }

/** The open items of a log: waiting prompts, shells, steps, texts and calls. */
const makeState = (name: string) => ({
  name,
  count: 0,
  waiting: [] as Array<Extract<Draft, { type: "session.next.prompt.admitted" }>["data"]>,
  shells: [] as Array<string>,
  assistants: [] as Array<MessageID>,
  unsettled: [] as Array<MessageID>,
  texts: [] as Array<Part>,
  reasonings: [] as Array<Part>,
  inputs: [] as Array<Part>,
  running: [] as Array<Part>
})
type State = ReturnType<typeof makeState>

/** Makes the draft fit the state and updates the state; undefined if it cannot fit. */
const fit = (state: State, draft: Draft, pick: number): Draft | undefined => {
  const fresh = (): MessageID => MessageID.make(`msg_${state.name}-${(state.count += 1)}`)
  const key = (id: string): string => `${id}${(state.count += 1)}`
  const one = <A>(from: ReadonlyArray<A>): A | undefined => from[pick % Math.max(1, from.length)]
  const remove = <A>(from: Array<A>): A | undefined => from.splice(pick % Math.max(1, from.length), 1)[0]
  switch (draft.type) {
    case "session.created":
      return undefined
    case "session.next.agent.switched":
      return { ...draft, data: { ...draft.data, messageID: fresh() } }
    case "session.next.model.switched":
      return { ...draft, data: { ...draft.data, messageID: fresh() } }
    case "session.next.prompted":
      return { ...draft, data: { ...draft.data, messageID: fresh() } }
    case "session.next.context.updated":
      return { ...draft, data: { ...draft.data, messageID: fresh() } }
    case "session.next.synthetic":
      return { ...draft, data: { ...draft.data, messageID: fresh() } }
    case "session.next.branch.summarized":
      return { ...draft, data: { ...draft.data, messageID: fresh() } }
    case "session.next.compaction.ended":
      return { ...draft, data: { ...draft.data, messageID: fresh() } }
    case "session.next.prompt.admitted": {
      const data = { ...draft.data, messageID: fresh() }
      state.waiting.push(data)
      return { ...draft, data }
    }
    case "session.next.prompt.promoted": {
      const input = remove(state.waiting)
      return input && { ...draft, data: { ...draft.data, messageID: input.messageID, prompt: input.prompt } }
    }
    case "session.next.prompt.withdrawn": {
      const input = remove(state.waiting)
      return input && { ...draft, data: { messageID: input.messageID } }
    }
    case "session.next.addressed":
      // The session's only address, unique in the store like its name.
      return { ...draft, data: { ...draft.data, address: { ...draft.data.address, session: `at-${state.name}` } } }
    case "session.next.shell.started": {
      const data = { ...draft.data, messageID: fresh(), callID: key(draft.data.callID) }
      state.shells.push(data.callID)
      return { ...draft, data }
    }
    case "session.next.shell.ended": {
      const callID = remove(state.shells)
      return callID === undefined ? undefined : { ...draft, data: { ...draft.data, callID } }
    }
    case "session.next.step.started": {
      const assistantMessageID = fresh()
      state.assistants.push(assistantMessageID)
      state.unsettled.push(assistantMessageID)
      return { ...draft, data: { ...draft.data, assistantMessageID } }
    }
    case "session.next.step.ended": {
      const assistantMessageID = remove(state.unsettled)
      return assistantMessageID && { ...draft, data: { ...draft.data, assistantMessageID } }
    }
    case "session.next.step.failed": {
      const assistantMessageID = remove(state.unsettled)
      return assistantMessageID && { ...draft, data: { ...draft.data, assistantMessageID } }
    }
    case "session.next.text.started": {
      const assistantMessageID = one(state.assistants)
      if (assistantMessageID === undefined) return undefined
      const textID = key(draft.data.textID)
      state.texts.push({ message: assistantMessageID, key: textID })
      return { ...draft, data: { assistantMessageID, textID } }
    }
    case "session.next.text.ended": {
      const part = remove(state.texts)
      return part && { ...draft, data: { ...draft.data, assistantMessageID: part.message, textID: part.key } }
    }
    case "session.next.reasoning.started": {
      const assistantMessageID = one(state.assistants)
      if (assistantMessageID === undefined) return undefined
      const reasoningID = key(draft.data.reasoningID)
      state.reasonings.push({ message: assistantMessageID, key: reasoningID })
      return { ...draft, data: { ...draft.data, assistantMessageID, reasoningID } }
    }
    case "session.next.reasoning.ended": {
      const part = remove(state.reasonings)
      return part && { ...draft, data: { ...draft.data, assistantMessageID: part.message, reasoningID: part.key } }
    }
    case "session.next.tool.input.started": {
      const assistantMessageID = one(state.assistants)
      if (assistantMessageID === undefined) return undefined
      const callID = key(draft.data.callID)
      state.inputs.push({ message: assistantMessageID, key: callID })
      return { ...draft, data: { ...draft.data, assistantMessageID, callID } }
    }
    case "session.next.tool.input.ended": {
      const part = one(state.inputs)
      return part && { ...draft, data: { ...draft.data, assistantMessageID: part.message, callID: part.key } }
    }
    case "session.next.tool.called": {
      const part = remove(state.inputs)
      if (part === undefined) return undefined
      state.running.push(part)
      return { ...draft, data: { ...draft.data, assistantMessageID: part.message, callID: part.key } }
    }
    case "session.next.tool.progress": {
      const part = one(state.running)
      return part && { ...draft, data: { ...draft.data, assistantMessageID: part.message, callID: part.key } }
    }
    case "session.next.tool.success": {
      const part = remove(state.running)
      return part && { ...draft, data: { ...draft.data, assistantMessageID: part.message, callID: part.key } }
    }
    case "session.next.tool.failed": {
      const part = remove(pick % 2 === 0 ? state.running : state.inputs)
      return part && { ...draft, data: { ...draft.data, assistantMessageID: part.message, callID: part.key } }
    }
    default:
      return draft
  }
}

/** A log that begins with the session's creation; its message ids contain `name`, which must be unique in the store. */
export const plausibleLog = (name: string, maxLength = 60): fc.Arbitrary<NonEmptyReadonlyArray<Draft>> =>
  fc
    .tuple(draftOf("session.created"), fc.array(fc.tuple(anyDraft, fc.nat(1000)), { maxLength, size: "max" }))
    .map(([first, rest]) => {
      const state = makeState(name)
      return [first, ...rest.flatMap(([draft, pick]) => fit(state, draft, pick) ?? [])] as const
    })

/** Splits the log into runs of random lengths, for appends. */
export const cut = <A>(items: NonEmptyReadonlyArray<A>, lengths: ReadonlyArray<number>) => {
  const runs: Array<NonEmptyReadonlyArray<A>> = []
  for (let from = 0, n = 0; from < items.length; n++) {
    const [head, ...rest] = items.slice(from, from + 1 + ((lengths[n % Math.max(1, lengths.length)] ?? 0) % 8))
    if (head === undefined) break
    runs.push([head, ...rest])
    from += 1 + rest.length
  }
  return runs
}
