/** Records text and reasoning: fragments that start, grow and end. Spec: EX-R1, EX-R11 in specs/execution.md. */
import { Either } from "effect"
import { fitting } from "@daybook/log/domain/LongText"
import type { ProviderMetadata } from "@daybook/log/domain/Values"
import { type Draft, draft } from "@daybook/log/events/SessionEvents"
import { isBlank } from "@daybook/log/support/Text"
import {
  fault,
  type Fragment,
  isRecord,
  liveStep,
  receive,
  type Result,
  type State,
  step,
  withEntry
} from "./RecorderState.ts"

/** Metadata arrives in pieces (a signature with the last delta); pieces of one provider are merged. */
const mergeMetadata = (a: ProviderMetadata, b: ProviderMetadata | undefined): ProviderMetadata => {
  if (b === undefined) return a
  const merged: Record<string, unknown> = { ...a }
  for (const [provider, piece] of Object.entries(b)) {
    const before = merged[provider]
    if (piece !== undefined && piece !== null)
      merged[provider] = isRecord(before) && isRecord(piece) ? { ...before, ...piece } : piece
  }
  return merged
}

const optionalMetadata = (metadata: ProviderMetadata) =>
  Object.keys(metadata).length === 0 ? {} : { providerMetadata: metadata }

/** Part ids are generated, since providers reuse theirs within one answer. */
const partID = (state: State): string => `prt_${state.messageID.slice("msg_".length)}.${state.parts + 1}`

const fragmentKey = (kind: Fragment["kind"], id: string) => `${kind} ${id}`

export const startFragment = (state: State, kind: Fragment["kind"], id: string, metadata: ProviderMetadata): Result => {
  const key = fragmentKey(kind, id)
  if (state.open.has(key)) return fault(`${kind} ${id} was started twice`)
  const own = partID(state)
  const open = withEntry(state.open, key, { id: own, kind, text: "", metadata })
  const next = { ...state, open, parts: state.parts + 1 }
  const assistantMessageID = state.messageID
  return step(next, [
    kind === "text"
      ? draft("session.next.text.started", { assistantMessageID, textID: own })
      : draft("session.next.reasoning.started", { assistantMessageID, reasoningID: own, ...optionalMetadata(metadata) })
  ])
}

export const extendFragment = (
  state: State,
  kind: Fragment["kind"],
  id: string,
  delta: string,
  metadata: ProviderMetadata
): Result => {
  const key = fragmentKey(kind, id)
  const fragment = state.open.get(key)
  if (fragment === undefined) return fault(`${kind} ${id} continued before it was started`)
  if (kind === "text") {
    const now = fitting(fragment.text.length, delta)
    if (now !== delta) return goOn(state, id, now, delta.slice(now.length), metadata)
  }
  const grown = { ...fragment, text: fragment.text + delta, metadata: mergeMetadata(fragment.metadata, metadata) }
  const received = receive(state.received, delta, kind)
  const spoken = state.spoken || (kind === "text" && !isBlank(delta))
  const next = { ...state, received, spoken, open: withEntry(state.open, key, grown) }
  if (delta === "") return step(next, [])
  const { messageID: assistantMessageID, sessionID } = state
  return liveStep(
    next,
    kind === "text"
      ? { type: "session.next.text.delta", sessionID, data: { assistantMessageID, textID: fragment.id, delta } }
      : {
          type: "session.next.reasoning.delta",
          sessionID,
          data: { assistantMessageID, reasoningID: fragment.id, delta }
        }
  )
}

/** The part is full: ends it and continues the text in a new one (EX-R11). */
const goOn = (state: State, id: string, now: string, rest: string, metadata: ProviderMetadata): Result =>
  Either.gen(function* () {
    const filled = now === "" ? undefined : yield* extendFragment(state, "text", id, now, metadata)
    const ended = yield* endFragment(filled?.state ?? state, "text", id, metadata)
    const begun = yield* startFragment(ended.state, "text", id, metadata)
    const further = yield* extendFragment(begun.state, "text", id, rest, metadata)
    const steps = [...(filled === undefined ? [] : [filled]), ended, begun, further]
    return {
      state: further.state,
      drafts: steps.flatMap(({ drafts }) => drafts),
      live: steps.flatMap(({ live }) => live)
    }
  })

const endedFragment = (state: State, fragment: Fragment): Draft => {
  const assistantMessageID = state.messageID
  const { id, kind, metadata, text } = fragment
  const ended = { assistantMessageID, text, ...optionalMetadata(metadata) }
  return kind === "text"
    ? draft("session.next.text.ended", { ...ended, textID: id })
    : draft("session.next.reasoning.ended", { ...ended, reasoningID: id })
}

export const endFragment = (state: State, kind: Fragment["kind"], id: string, metadata: ProviderMetadata): Result => {
  const key = fragmentKey(kind, id)
  const fragment = state.open.get(key)
  if (fragment === undefined) return fault(`${kind} ${id} ended before it was started`)
  const open = new Map(state.open)
  open.delete(key)
  const whole = { ...fragment, metadata: mergeMetadata(fragment.metadata, metadata) }
  return step({ ...state, open }, [endedFragment(state, whole)])
}

/** Ends every open fragment with its text so far. */
export const closeFragments = (state: State): ReadonlyArray<Draft> =>
  [...state.open.values()].map((fragment) => endedFragment(state, fragment))
